package cli

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/importer"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

type importOptions struct {
	app    *app
	kind   string // openapi, curl, postman, har
	read   func(data []byte, o importer.Options) (*importer.Result, error)
	from   string // file, address, curl line, "-"
	narrow importer.Options
	all    bool
	yes    bool
	dryRun bool
	json   bool
}

func (a *app) importCommand() *cobra.Command {
	return noun(&cobra.Command{
		Use:   "import",
		Short: "Make wrappers from what describes an API",
		Long: `Makes wrappers from an OpenAPI document, a curl line, a Postman collection or a
recording of a browser (HAR). What is found is listed, and you choose what to
save; docs/import.md says what becomes of what. A wrapper sends exactly what its
source prescribes: what cannot be sent exactly is refused, with the reason.

What looks like a credential is left out, and the command that stores it is
printed. Imported wrappers are no tools of their own until "wrapper expose" makes
them.

Import again to follow the source: what it changed is updated, a wrapper that you
edited is kept, and so is one that you made yourself.`,
		Example: "  hbrestd import openapi petstore.yaml --dry-run\n  hbrestd import curl -",
	}, a.importOpenAPICommand(), a.importCurlCommand(), a.importPostmanCommand(), a.importHARCommand())
}

func (a *app) importOpenAPICommand() *cobra.Command {
	o := &importOptions{app: a, kind: "openapi", read: importer.OpenAPI}
	return o.command(&cobra.Command{
		Use:   "openapi FILE|URL|-",
		Short: "Make wrappers from an OpenAPI document",
		Long: `Reads an OpenAPI document: version 2.0 (Swagger), 3.0 or 3.1, JSON or YAML, at
most 20 MB. The daemon fetches an address, under its outbound policy and without a
credential. Each operation becomes a wrapper, or is refused with the reason.

On a terminal it lists what it found and asks what to save. A script chooses with
--yes and --only or --all.`,
		Example: `  hbrestd import openapi petstore.yaml --dry-run
  hbrestd import openapi petstore.yaml --only 'pets.*' --method get --prefix shop
  hbrestd import openapi https://api.example.com/openapi.json --tag orders
  hbrestd import openapi petstore.yaml --only '/pets*' --yes`,
		Args: takes(1, 1, "a file, an address or - for stdin"),
	})
}

func (a *app) importCurlCommand() *cobra.Command {
	o := &importOptions{app: a, kind: "curl", read: func(data []byte, o importer.Options) (*importer.Result, error) {
		return importer.Curl(string(data), o)
	}}
	return o.command(&cobra.Command{
		Use:   "curl 'curl ...'|-",
		Short: "Make a wrapper from a curl line",
		Long: `Reads one curl command as API documentation and browsers give it. With - it is
read from stdin: paste it, then press Ctrl-D; the shell's history does not keep
it. Nothing is run, and no file is read. Values become arguments with those values
as their defaults.`,
		Example: "  hbrestd import curl -\n  hbrestd import curl - --dry-run\n  hbrestd import curl - --prefix shop --yes",
		Args:    takes(1, 1, "a curl line in quotes, or - for stdin"),
	})
}

func (a *app) importPostmanCommand() *cobra.Command {
	o := &importOptions{app: a, kind: "postman", read: importer.Postman}
	return o.command(&cobra.Command{
		Use:   "postman FILE|-",
		Short: "Make wrappers from a Postman collection",
		Long: `Reads a collection that Postman exported, version 2.0 or 2.1. Folders are tags.
Scripts are not run. On a terminal it lists what it found and asks what to save; a
script chooses with --yes and --only or --all.`,
		Example: "  hbrestd import postman shop.postman_collection.json --dry-run\n  hbrestd import postman shop.json --tag Orders\n  hbrestd import postman shop.json --all --yes",
		Args:    takes(1, 1, "a file, or - for stdin"),
	})
}

func (a *app) importHARCommand() *cobra.Command {
	o := &importOptions{app: a, kind: "har", read: importer.HAR}
	return o.command(&cobra.Command{
		Use:   "har FILE|-",
		Short: "Make wrappers from a recording of a browser",
		Long: `Reads a HAR file, version 1.2, at most 20 MB, as the network tools of browsers
save it. Calls of one kind become one wrapper. Cookies and credentials are left
out. On a terminal it lists what it found and asks what to save; a script chooses
with --yes and --only or --all.`,
		Example: "  hbrestd import har shop.har --dry-run\n  hbrestd import har shop.har --only '/api/*' --yes",
		Args:    takes(1, 1, "a file, or - for stdin"),
	})
}

// command completes a command of import by what all have in common.
func (o *importOptions) command(cmd *cobra.Command) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.from = args[0]
		return o.run(cmd.Context())
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.narrow.Only, "only", nil, "only those whose id, path or \"METHOD /path\" fits this `pattern`, with * and ?; may be repeated")
	f.StringArrayVar(&o.narrow.Tags, "tag", nil, "only those with this `tag`; may be repeated")
	f.StringArrayVar(&o.narrow.Methods, "method", nil, "only those with this `method`; may be repeated")
	f.StringVar(&o.narrow.Prefix, "prefix", "", "begin every id with this `name` and a dot")
	f.StringVar(&o.narrow.BaseURL, "base-url", "", "send the requests to this `address` instead")
	f.BoolVar(&o.all, "all", false, "save all that are found, of those that fit")
	f.BoolVarP(&o.dryRun, "dry-run", "n", false, "show what would be saved, and save nothing")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask; needs --only or --all, except for a curl line")
	addJSON(cmd, &o.json)
	return cmd
}

// narrowed reports whether only a part of the source is looked at.
func (o *importOptions) narrowed() bool {
	return len(o.narrow.Only)+len(o.narrow.Tags)+len(o.narrow.Methods) > 0
}

// asks reports whether a person is to choose.
func (o *importOptions) asks() bool { return !o.yes && !o.dryRun && !o.json && o.app.interactive() }

// chosen refuses a command line that saves without a person's choice.
func (o *importOptions) chosen() error {
	switch {
	case o.dryRun || o.asks():
		return nil
	case !o.yes && o.app.interactive(): // --json
		return usage("nobody is asked with --json: choose with --yes and --only PATTERN or --all, or look with --dry-run")
	case !o.yes:
		return usage("nothing is saved without a choice, and nobody can be asked here: choose with --yes and --only PATTERN or --all, or look with --dry-run")
	case o.kind != "curl" && !o.all && len(o.narrow.Only) == 0:
		return usage("--yes needs a choice: --only PATTERN, or --all")
	}
	return nil
}

func (o *importOptions) run(ctx context.Context) error {
	if err := o.chosen(); err != nil {
		return err
	}
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	data, source, err := o.source(ctx, d)
	if err != nil {
		return err
	}
	found, err := o.read(data, o.narrow)
	if err != nil {
		return err
	}
	r := o.report(found, source)
	if err := o.compare(ctx, d, r); err != nil {
		if !o.dryRun || !fault.Is(err, "BRIDGE_UNREACHABLE") {
			return err
		}
		r.Notes = append(r.Notes, "hbrestd does not run, so this is not compared with what is saved")
	}
	var save []*importDraft
	if !o.dryRun {
		if save, err = o.choose(ctx, r); err != nil {
			return err
		}
		if err := o.save(ctx, d, r, save); err != nil {
			return err
		}
	}
	r.secrets(save, o.dryRun)
	if o.json {
		err = o.app.printJSON(r)
	} else {
		err = o.end(r, save)
	}
	if err != nil {
		return err
	}
	return o.nothing(r)
}

// source reads what is to be imported, and names it without what may be a
// credential.
func (o *importOptions) source(ctx context.Context, d control.Backend) (data []byte, source string, err error) {
	switch {
	case o.kind == "curl" && o.from != "-":
		return []byte(o.from), "", nil
	case o.kind == "curl" && o.app.interactive():
		o.app.say("paste the curl line, then press Ctrl-D on a line of its own")
	case o.kind == "openapi" && isAddress(o.from):
		u, err := url.Parse(strings.TrimSpace(o.from))
		if err != nil || u.Host == "" {
			return nil, "", usage("the address cannot be read")
		}
		r, err := d.Fetch(ctx, &control.FetchRequest{URL: u.String()})
		if err != nil {
			return nil, "", err
		}
		return r.Body, (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(), nil
	}
	if data, err = o.app.readInput(o.from); err != nil {
		var f *fault.Error
		if o.kind == "curl" && !errors.As(err, &f) {
			err = failed(exitFailed, "", "stdin cannot be read")
		}
		return nil, "", err
	}
	if o.from == "-" {
		return data, "", nil
	}
	if source, err = filepath.Abs(o.from); err != nil {
		source = o.from
	}
	return data, source, nil
}

func isAddress(s string) bool {
	s = strings.ToLower(strings.TrimSpace(s))
	return strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://")
}

// compare says of each draft what saving it would do, and what was imported from
// this source before and is not in it any more.
func (o *importOptions) compare(ctx context.Context, d control.Backend, r *importReport) error {
	m, err := d.Manifest(ctx, 0)
	if err != nil {
		return err
	}
	list, err := d.Origins(ctx)
	if err != nil {
		return err
	}
	saved := map[string]api.ManifestEntry{} // by id in lower case
	for _, e := range m.Wrappers {
		saved[strings.ToLower(e.ID)] = e
	}
	origins := map[string]control.ImportedWrapper{}
	for _, w := range list.Origins {
		origins[w.ID] = w
	}
	for _, draft := range r.Drafts {
		was, imported := origins[draft.ID]
		switch e, there := saved[strings.ToLower(draft.ID)]; {
		case !there:
			draft.State = stateNew
		case e.ID != draft.ID || !imported || !r.same(was.ImportOrigin, draft, e.Host):
			draft.State = stateTaken
		case was.Edited:
			draft.State = stateEdited
			if was.SHA256 == control.Digest(sha256.Sum256(draft.Wrapper)) {
				continue
			}
			if err := draft.differs(ctx, d); err != nil {
				return err
			}
		case was.SHA256 == control.Digest(sha256.Sum256(draft.Wrapper)):
			draft.State = stateUnchanged
		default:
			draft.State = stateChanged
			if err := draft.differs(ctx, d); err != nil {
				return err
			}
		}
	}
	if !o.narrowed() {
		r.missing(list.Origins)
	}
	return nil
}

// differs reads what is saved, for the diff. Whether it is a tool of its own is
// no difference: an import leaves that as it is.
func (draft *importDraft) differs(ctx context.Context, d control.Backend) error {
	doc, err := d.Wrapper(ctx, draft.ID)
	if err != nil {
		return err
	}
	draft.before, draft.after = doc, draft.Wrapper
	if v, err := recipe.Decode(doc, recipe.DecodeLimits{}); err == nil {
		if o, ok := v.(recipe.Object); ok {
			draft.before = recipe.Encode(slices.DeleteFunc(o, func(m recipe.Member) bool { return m.Key == "exposeAsTool" }))
		}
	}
	return nil
}

// save saves the chosen drafts, all or none.
func (o *importOptions) save(ctx context.Context, d control.Backend, r *importReport, drafts []*importDraft) error {
	if len(drafts) == 0 {
		return nil
	}
	if n := len(drafts); n > control.MaxDocuments {
		return usage("%d are chosen, and at most %d are saved in one step: choose with --only, --tag or --method", n, control.MaxDocuments)
	}
	q := &control.ApplyRequest{}
	for _, draft := range drafts {
		q.Documents = append(q.Documents, control.ApplyDocument{
			Source: draft.Operation, Wrapper: draft.Wrapper,
			Origin: &control.ImportOrigin{Kind: r.Kind, Source: draft.source, Title: r.Title, Operation: draft.Operation},
		})
	}
	done, err := d.Apply(ctx, q)
	if err != nil {
		return err
	}
	r.Revision = done.Revision
	for i, c := range done.Changes {
		drafts[i].Saved = c.Action != "unchanged"
		drafts[i].Warnings = c.Warnings
	}
	return nil
}

// nothing is the error of an import that found nothing to save and says why.
func (o *importOptions) nothing(r *importReport) error {
	switch {
	case len(r.Drafts) > 0:
		return nil
	case len(r.Refused) == 1:
		return failed(exitFailed, "docs/import.md lists what cannot be sent exactly.", "nothing can be imported: %s", r.Refused[0].Reason)
	case len(r.Refused) > 0:
		return failed(exitFailed, "docs/import.md lists what cannot be sent exactly.", "nothing can be imported: %s refused, each with its reason", plural(len(r.Refused), "operation is", "operations are"))
	case o.narrowed():
		return failed(exitFailed, "Run it with --dry-run and without --only, --tag and --method to see what there is.", "no operation fits")
	}
	return failed(exitFailed, "", "there is no operation in it")
}

// states lets a person see at a glance what saving would do.
const (
	stateNew       = "new"
	stateChanged   = "changed"   // its source has changed, and nobody has edited it
	stateUnchanged = "unchanged" // it is saved already
	stateEdited    = "edited"    // kept: somebody edited it
	stateTaken     = "taken"     // kept: another wrapper has the id
)

// savable lists the drafts that saving would change something of.
func (r *importReport) savable() []*importDraft {
	return slices.DeleteFunc(slices.Clone(r.Drafts), func(d *importDraft) bool {
		return d.State != stateNew && d.State != stateChanged
	})
}

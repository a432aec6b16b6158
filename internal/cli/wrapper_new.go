package cli

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/importer"
	"github.com/hyperbolic-gateway/hb-rest/internal/redact"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

type newOptions struct {
	app    *app
	id     string
	sample string
	url    string
	curl   string
}

func (a *app) wrapperNewCommand() *cobra.Command {
	o := &newOptions{app: a}
	cmd := &cobra.Command{
		Use:   "new [ID]",
		Short: "Write a wrapper in your editor, from a draft",
		Long: `Opens the draft of a wrapper in $VISUAL or $EDITOR and saves it when the editor
ends. --url makes the request of the draft from an address: its query becomes
members. --curl makes it from a curl line, as API documentation and browsers give
them; with - you paste the line, and no shell keeps it. What looks like a
credential is left out. --from-sample makes the recipe from one real answer of
the API. Nothing is sent.

While something is wrong with the document, it is opened again with what is wrong
on top; leave the file as it is, or empty it, to give up. What you wrote is kept
in a file whenever it is not saved.`,
		Example: "  hbrestd wrapper new weather --url 'https://api.example.com/v1/weather?city=Oslo'\n  hbrestd wrapper new orders.list --url https://api.example.com/orders --from-sample answer.json\n  hbrestd wrapper new orders.create --curl -",
		Args:    takes(0, 1, "the id of the wrapper"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.id = args[0]
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&o.sample, "from-sample", "", "draft the recipe from the answer in this `file`")
	cmd.Flags().StringVar(&o.url, "url", "", "draft the request from this `address`")
	cmd.Flags().StringVar(&o.curl, "curl", "", "draft the request from this curl `line`; - to paste it")
	return cmd
}

func (o *newOptions) run(ctx context.Context) error {
	if !o.app.interactive() {
		return failed(exitFailed, "Write the document to a file, and save it with `hbrestd wrapper apply FILE`; docs/wrapper-format.md describes it.",
			"an editor needs a terminal, and there is none")
	}
	if o.sample == "-" {
		return usage("--from-sample needs a file: stdin is the editor's")
	}
	if o.url != "" && o.curl != "" {
		return usage("--url and --curl do not go together: each makes the request")
	}
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	m, err := d.Manifest(ctx, 0)
	if err != nil {
		return err
	}
	var taken []string
	for _, e := range m.Wrappers {
		taken = append(taken, strings.ToLower(e.ID))
	}
	if slices.Contains(taken, strings.ToLower(o.id)) {
		return fault.New("WRAPPER_EXISTS", "there is a wrapper with the id %q already", o.id).
			With(fault.Field("id"), fault.Hint("`hbrestd wrapper edit %s` changes it; or choose another id.", o.id))
	}
	doc, notes, err := o.draft(taken)
	if err != nil {
		return err
	}
	about := []string{"Complete the wrapper below, then save and close. Lines that begin with // up here are not part of it.", "docs/wrapper-format.md describes each member."}
	w := &writing{app: o.app, name: textMember(recipe.Encode(doc), "id"), first: pretty(recipe.Encode(doc)), about: append(about, notes...), drafted: true}
	w.save = func(ctx context.Context, doc json.RawMessage) error {
		r, err := d.Change(ctx, &api.ChangeRequest{Action: "create", Wrapper: doc})
		if err != nil {
			return err
		}
		return o.app.saved("created", r.ID, r.Warnings)
	}
	return w.run(ctx)
}

// draft is a document to begin with, and what its reader should know.
func (o *newOptions) draft(taken []string) (recipe.Object, []string, error) {
	if o.curl != "" {
		return o.fromCurl(taken)
	}
	var notes []string
	request := recipe.Object{{Key: "method", Value: "GET"}, {Key: "url", Value: "https://api.example.com/"}}
	id := "new"
	if o.url != "" {
		u, err := url.Parse(o.url)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return nil, nil, usage("--url is no address that begins with https://")
		}
		request, notes = requestOf(u)
		id = idOf(u)
	}
	if o.id != "" {
		id = o.id
	} else {
		id = free(id, taken)
	}
	doc := recipe.Object{
		{Key: "schemaVersion", Value: json.Number("1")},
		{Key: "id", Value: id},
		{Key: "name", Value: id},
		{Key: "description", Value: ""},
		{Key: "request", Value: request},
	}
	if o.url != "" {
		notes = append(notes, "What an agent chooses becomes {{name}} in url, query or body, with a property of that name in inputSchema.")
		doc = append(doc, recipe.Member{Key: "inputSchema", Value: recipe.Object{{Key: "type", Value: "object"}, {Key: "properties", Value: recipe.Object{}}}})
	}
	return o.withResponse(doc, notes)
}

// fromCurl is the draft for a curl line.
func (o *newOptions) fromCurl(taken []string) (recipe.Object, []string, error) {
	line := o.curl
	if line == "-" {
		o.app.say("paste the curl line, then press Ctrl-D on a line of its own")
		data, err := o.app.readInput("-")
		if err != nil {
			return nil, nil, err
		}
		line = string(data)
	}
	r, err := importer.Curl(line, importer.Options{})
	if err != nil {
		return nil, nil, err
	}
	if len(r.Drafts) == 0 {
		why := "it names no request"
		if len(r.Refused) > 0 {
			why = r.Refused[0].Reason
		}
		return nil, nil, fault.New("IMPORT_INVALID", "no wrapper can be made of this curl line: %s", why).
			With(fault.Hint("Begin with --url, and write what is missing by hand."))
	}
	made := r.Drafts[0]
	v, err := recipe.Decode(made.Document, recipe.DecodeLimits{})
	if err != nil {
		return nil, nil, err
	}
	doc, _ := v.(recipe.Object)
	id := o.id
	if id == "" {
		id = free(made.ID, taken)
	}
	doc = with(doc, "id", id)
	notes := slices.Concat(r.Notes, made.Notes)
	for _, place := range r.Dropped {
		notes = append(notes, "Left out, because a wrapper holds no credential: "+place+".")
	}
	if made.Secret != nil && made.Secret.Command != "" {
		notes = append(notes, "Store it with `"+made.Secret.Command+"`.")
	}
	return o.withResponse(doc, notes)
}

// with is an object with another value of one member.
func with(o recipe.Object, key string, v recipe.Value) recipe.Object {
	out := slices.Clone(o)
	i := slices.IndexFunc(out, func(m recipe.Member) bool { return m.Key == key })
	if i < 0 {
		return append(out, recipe.Member{Key: key, Value: v})
	}
	out[i].Value = v
	return out
}

// withResponse completes a draft by the recipe for the sample.
func (o *newOptions) withResponse(doc recipe.Object, notes []string) (recipe.Object, []string, error) {
	if o.sample == "" {
		return doc, append(notes, "Without \"response\" an agent reads the whole answer; --from-sample FILE drafts one from a real answer."), nil
	}
	name, _ := member(doc, "id").(string)
	rec, more, err := o.response(name)
	if err != nil {
		return nil, nil, err
	}
	return with(doc, "response", rec), append(notes, more...), nil
}

// response is the recipe for the sample.
func (o *newOptions) response(name string) (recipe.Object, []string, error) {
	data, err := o.app.readInput(o.sample)
	if err != nil {
		return nil, nil, err
	}
	v, err := decodeText(o.sample, data)
	if err != nil {
		return nil, nil, err
	}
	rec, found := recipe.Derive(v, recipe.DeriveOptions{Name: name, Skip: redact.CredentialKey})
	var notes []string
	for _, n := range found {
		if n.Code == "paging_hint" {
			notes = append(notes, "The list seems to have pages; if the names are right, add to response: \"pagination\": "+compactJSON(json.RawMessage(n.Message)))
			continue
		}
		notes = append(notes, n.Message)
	}
	if rec == nil {
		why := "there is nothing to show in it"
		if len(notes) > 0 {
			why = notes[len(notes)-1]
		}
		return nil, nil, fault.New("DERIVE_NOTHING", "no recipe could be made of %s: %s", o.sample, why)
	}
	return rec.Document(), notes, nil
}

// requestOf is the request that fetches an address, without what looks like a
// credential.
func requestOf(u *url.URL) (recipe.Object, []string) {
	var notes []string
	left := func(what string) {
		notes = append(notes, what+" was left out: a wrapper holds no credential. Store it with `hbrestd secret set NAME --host "+u.Hostname()+"`, and write \"auth\": \"NAME\" into request.")
	}
	if u.User != nil {
		left("The user name in the address")
	}
	plain := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	if plain.Path == "" {
		plain.Path = "/"
	}
	request := recipe.Object{{Key: "method", Value: "GET"}, {Key: "url", Value: plain.String()}}
	var query recipe.Object
	for _, pair := range strings.Split(u.RawQuery, "&") {
		if pair == "" {
			continue
		}
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(rawName)
		value, verr := url.QueryUnescape(rawValue)
		if err != nil || verr != nil {
			notes = append(notes, "A part of the query cannot be read and was left out.") // not shown: it may be a credential
			continue
		}
		if redact.CredentialQuery(name) || redact.CredentialPair(name, value) {
			left("The query parameter " + name)
			continue
		}
		i := slices.IndexFunc(query, func(m recipe.Member) bool { return m.Key == name })
		if i < 0 {
			query = append(query, recipe.Member{Key: name, Value: value})
			continue
		}
		list, several := query[i].Value.(recipe.Array)
		if !several {
			list = recipe.Array{query[i].Value}
		}
		query[i].Value = append(list, value)
	}
	if len(query) > 0 {
		request = append(request, recipe.Member{Key: "query", Value: query})
	}
	return request, notes
}

// idOf is an id that tells of an address: "example.orders".
func idOf(u *url.URL) string {
	labels := strings.Split(strings.ToLower(u.Hostname()), ".")
	labels = slices.DeleteFunc(labels[:max(len(labels)-1, 1)], func(l string) bool { return l == "api" || l == "www" })
	parts := []string{"api"}
	if n := len(labels); n > 0 && !numeric(labels[n-1]) {
		parts[0] = labels[n-1]
	}
	for _, s := range slices.Backward(strings.Split(strings.ToLower(u.Path), "/")) {
		if s != "" && !numeric(s) && !(s[0] == 'v' && numeric(s[1:])) {
			parts = append(parts, s)
			break
		}
	}
	for i, part := range parts {
		parts[i] = strings.Trim(strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_' {
				return r
			}
			return '-'
		}, part), ".-_")
	}
	id := strings.Trim(strings.Join(parts, "."), ".")
	if id == "" {
		return "new"
	}
	return id[:min(len(id), 90)]
}

func numeric(s string) bool { return s == "" || strings.Trim(s, "0123456789") == "" }

// free is an id that no wrapper has.
func free(id string, taken []string) string {
	out := id
	for n := 2; slices.Contains(taken, strings.ToLower(out)); n++ {
		out = id + "-" + strconv.Itoa(n)
	}
	return out
}

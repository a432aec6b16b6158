package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

func (a *app) wrapperEditCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "edit ID",
		Short: "Change a wrapper in your editor",
		Long: `Opens a wrapper's document in $VISUAL or $EDITOR and saves it when the editor
ends. While something is wrong with it, it is opened again with what is wrong on
top; leave the file as it is, or empty it, to give up. When the wrapper was
changed by somebody else meanwhile, nothing is saved and you are shown what they
changed. What you wrote is kept in a file whenever it is not saved.

An editor with a window must be told to wait: EDITOR="code --wait".`,
		Example: "  hbrestd wrapper edit orders.list\n  EDITOR='code --wait' hbrestd wrapper edit orders.list",
		Args:    takes(1, 1, "the id of a wrapper"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.editWrapper(cmd.Context(), args[0])
		},
		ValidArgsFunction: a.completeIDs(1),
	}
}

func (a *app) editWrapper(ctx context.Context, id string) error {
	if !a.interactive() {
		return failed(exitFailed, fmt.Sprintf("`hbrestd wrapper show %s > FILE` writes it, and `hbrestd wrapper apply FILE` saves it again.", id),
			"an editor needs a terminal, and there is none")
	}
	d, err := a.daemon()
	if err != nil {
		return err
	}
	stored, err := d.Wrapper(ctx, id)
	if err != nil {
		return err
	}
	stored = bytes.TrimSpace(stored)
	w := &writing{app: a, name: id, first: pretty(stored), about: []string{"Change the wrapper " + id + " below, then save and close."}}
	w.save = func(ctx context.Context, doc json.RawMessage) error {
		if got := textMember(doc, "id"); got != id {
			return oneProblem("wrapper.id", fmt.Sprintf("is %q; an edit keeps the id", got), "`hbrestd wrapper new` makes another wrapper")
		}
		r, err := d.Apply(ctx, &control.ApplyRequest{Documents: []control.ApplyDocument{{Wrapper: doc, Seen: control.Digest(sha256.Sum256(stored))}}})
		if fault.Is(err, "WRAPPER_CHANGED") {
			return a.overtaken(ctx, d, id, stored, err)
		}
		if err != nil {
			return err
		}
		return a.saved(r.Changes[0].Action, id, r.Changes[0].Warnings)
	}
	err = w.run(ctx)
	if errors.Is(err, errLeftAsIs) {
		a.say("%s is as it was", id)
		return nil
	}
	return err
}

// overtaken shows what somebody else has made of the wrapper.
func (a *app) overtaken(ctx context.Context, d control.Backend, id string, before json.RawMessage, err error) error {
	now, gone := d.Wrapper(ctx, id)
	if gone == nil {
		if perr := a.print(unified(id+" as you opened it", id+" as it is now", pretty(before), pretty(now))); perr != nil {
			return perr
		}
	}
	return err
}

func (a *app) saved(action, id string, warnings []api.Warning) error {
	if err := a.print(fmt.Sprintf("%-9s  %s\n", clean(action), clean(id))); err != nil {
		return err
	}
	a.warnings(id, warnings)
	return nil
}

// errLeftAsIs ends an edit whose file was not touched.
var errLeftAsIs = errors.New("the file was left as it is")

// A writing is a document in a file that a person edits until it can be saved.
type writing struct {
	app     *app
	name    string   // of the file; an id, or something like one
	first   string   // the document as it is handed to the person
	about   []string // comments on top at first
	drafted bool     // first is not saved anywhere: it is kept too
	// save saves the document. An error with code WRAPPER_INVALID, WRAPPER_EXISTS
	// or BAD_JSON is shown to the person, who goes on; another one ends the edit.
	save func(ctx context.Context, doc json.RawMessage) error

	path string
}

// maxRounds bounds how often a file is opened again: an editor that changes it
// each time and never mends it may be a script.
const maxRounds = 100

func (w *writing) run(ctx context.Context) error {
	editor, err := w.app.editor()
	if err != nil {
		return err
	}
	if err := w.create(); err != nil {
		return err
	}
	body := w.first
	text := comments(w.about) + body
	for range maxRounds {
		if err := os.WriteFile(w.path, []byte(text), 0o600); err != nil {
			return w.kept(body, err)
		}
		if err := w.app.open(editor, w.path); err != nil {
			data, rerr := w.readBack()
			if rerr != nil {
				return w.keptAnew(body, fmt.Errorf("%w; and %w", err, rerr))
			}
			return w.kept(uncommented(data), err)
		}
		data, err := w.readBack()
		if err != nil {
			return w.keptAnew(body, fmt.Errorf("nothing was saved: %w", err))
		}
		written := uncommented(data)
		switch {
		case strings.TrimSpace(written) == "":
			return w.kept(body, errors.New("the file was emptied, and nothing was saved"))
		case string(data) == text:
			return w.kept(body, errLeftAsIs)
		}
		body = written
		err = w.try(ctx, body)
		if err == nil {
			return os.Remove(w.path)
		}
		problems := w.problems(body, err)
		if problems == nil || ctx.Err() != nil {
			return w.kept(body, err)
		}
		text = comments(problems) + body
	}
	return w.kept(body, fmt.Errorf("it was opened %d times, and nothing was saved", maxRounds))
}

// create makes the file where nobody else of this machine can read it.
func (w *writing) create() error {
	places, err := w.app.places()
	if err != nil {
		return err
	}
	dir := filepath.Dir(places.ControlSocket) // of mode 0700, checked by whoever connects to it
	if info, err := os.Stat(dir); err != nil || !info.IsDir() || w.app.goos == "windows" {
		if dir, err = os.MkdirTemp("", "hbrestd-draft-"); err != nil { // of mode 0700 too
			return err
		}
	}
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, w.name)
	f, err := os.CreateTemp(dir, "draft-"+plain[:min(len(plain), 100)]+"-*.json") // of mode 0600
	if err != nil {
		return err
	}
	w.path = f.Name()
	return f.Close()
}

// try saves a text if it is one document.
func (w *writing) try(ctx context.Context, body string) error {
	docs, problem := split("", []byte(body))
	switch {
	case problem != nil:
		return fault.New("BAD_JSON", "it is not JSON")
	case len(docs) > 1:
		return oneProblem("the file", fmt.Sprintf("holds %d documents", len(docs)), "leave one of them")
	}
	return w.save(ctx, docs[0].Wrapper)
}

func oneProblem(field, message, hint string) error {
	return fault.New("WRAPPER_INVALID", "%s: %s", field, message).With(fault.Details([]fault.Detail{{Field: field, Code: "ID_INVALID", Message: message, Hint: hint}}))
}

// problems are the comments for what the person can mend; nil: it is nothing
// that they can.
func (w *writing) problems(body string, err error) []string {
	var f *fault.Error
	if !errors.As(err, &f) {
		return nil
	}
	out := []string{"Nothing is saved yet:"}
	switch f.Code {
	case "BAD_JSON":
		out = append(out, "") // its place depends on how many lines stand above
	case "WRAPPER_INVALID", "WRAPPER_EXISTS":
		for _, d := range f.Details {
			line := "- " + d.Field + ": " + d.Message
			if d.Hint != "" {
				line += " (" + d.Hint + ")"
			}
			out = append(out, line)
		}
		if len(f.Details) == 0 {
			out = append(out, "- "+f.Message)
		}
	default:
		return nil
	}
	out = append(out, "Mend it, then save and close; or close the file as it is to give up.")
	if f.Code == "BAD_JSON" {
		out[1] = "- " + misplaced(body, len(out))
	}
	return out
}

// misplaced says where in the file a text is not JSON, below so many comments.
func misplaced(body string, above int) string {
	offset, message := len(body), "the document ends too early"
	_, err := recipe.Decode([]byte(body), recipe.DecodeLimits{})
	var bad *recipe.DecodeError
	if errors.As(err, &bad) {
		offset, message = int(bad.Offset), bad.Message
	}
	place := at("", []byte(comments(make([]string, above))+body), len(comments(make([]string, above)))+offset)
	line, column, _ := strings.Cut(strings.TrimPrefix(place, ":"), ":")
	return fmt.Sprintf("line %s, column %s: %s", line, column, message)
}

// comments are lines on top of a document that are not part of it.
func comments(lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight("// "+clean(l), " ") + "\n")
	}
	return b.String()
}

// uncommented is a file without the comments on top.
func uncommented(data []byte) string {
	rest := strings.TrimPrefix(string(data), "\ufeff")
	for rest != "" {
		line, after, _ := strings.Cut(rest, "\n")
		if trimmed := strings.TrimSpace(line); trimmed != "" && !strings.HasPrefix(trimmed, "//") {
			break
		}
		rest = after
	}
	return rest
}

// readBack is the file as the editor left it: a pipe or a device in its place
// might never end.
func (w *writing) readBack() ([]byte, error) {
	info, err := os.Stat(w.path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a plain file any more", w.path)
	}
	if err != nil {
		return nil, err
	}
	return w.app.readInput(w.path)
}

// keptAnew is kept when the file is gone or cannot be read: what was written in
// earlier rounds gets another one, and what is in the place stays.
func (w *writing) keptAnew(body string, err error) error {
	if body == w.first && !w.drafted {
		return err
	}
	if cerr := w.create(); cerr != nil {
		return fmt.Errorf("%w; and what was written before could not be kept: %w", err, cerr)
	}
	return w.kept(body, err)
}

// kept ends an edit that saved nothing. What the person wrote, or was drafted for
// them, stays, without the comments, so that apply takes it.
func (w *writing) kept(body string, err error) error {
	if body == w.first && !w.drafted {
		_ = os.Remove(w.path) // it is what is saved
		return err
	}
	if werr := os.WriteFile(w.path, []byte(body), 0o600); werr != nil {
		return fmt.Errorf("%w; and the file could not be kept: %w", err, werr)
	}
	w.app.say("your text is kept in %s; `hbrestd wrapper apply %s` saves it", w.path, w.app.typed(w.path))
	if errors.Is(err, errLeftAsIs) {
		return errors.New("the file was left as it is, and nothing was saved")
	}
	return err
}

// typed is a path as one types it into a shell.
func (a *app) typed(path string) string {
	if a.goos == "windows" {
		return `"` + path + `"`
	}
	return shellLine([]string{path})
}

// textMember is a text of a document's top; "" if there is none.
func textMember(doc json.RawMessage, key string) string {
	v, err := recipe.Decode(doc, recipe.DecodeLimits{})
	if err != nil {
		return ""
	}
	s, _ := member(v, key).(string)
	return s
}

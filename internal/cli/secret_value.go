package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// values gets one value for each place; nil is to keep the saved one. They are
// the caller's to wipe, also beside an error.
func (o *secretOptions) values(ctx context.Context, person *asker, s *control.SecretInfo, places []control.ValuePlace) ([][]byte, error) {
	var values [][]byte
	var err error
	if o.stdin {
		o.app.warn("the value comes through a pipe: whatever wrote it there may keep it, and others may have seen it")
		values, err = readValues(o.app.stdin, len(places))
	} else {
		values, err = askValues(ctx, person, s, places)
	}
	if err != nil {
		return values, err
	}
	for i, p := range places {
		switch {
		case len(values[i]) > 0:
		case p.Empty:
			values[i] = []byte{}
		case p.Keep:
			values[i] = nil
		default:
			return values, failed(exitInvalid, "", "no %s was given; nothing was changed", p.What())
		}
	}
	return values, nil
}

func askValues(ctx context.Context, person *asker, s *control.SecretInfo, places []control.ValuePlace) ([][]byte, error) {
	about := fmt.Sprintf("The credential %s will be sent to %s.", clean(s.Name), clean(strings.Join(s.AllowedHosts, ", ")))
	if s.OAuth != nil {
		about += fmt.Sprintf("\nIts client secret will be sent to %s.", clean(s.OAuth.TokenURL))
	}
	var values [][]byte
	for i, p := range places {
		text := about
		if i > 0 {
			text = fmt.Sprintf("The credential %s:", clean(s.Name))
		}
		switch {
		case p.Keep:
			text += "\nAn empty entry keeps the saved one."
		case p.Empty:
			text += "\nIt may be empty when the user name is a key."
		}
		v, err := person.value(ctx, text, clean(p.Prompt))
		if err != nil {
			return values, err
		}
		values = append(values, v)
	}
	return values, nil
}

// readValues reads one line for each of n values. An input that is empty is n
// empty lines.
func readValues(in io.Reader, n int) ([][]byte, error) {
	all, err := readWiping(in)
	defer clear(all)
	if err != nil {
		return nil, err
	}
	rest := bytes.TrimSuffix(bytes.TrimSuffix(all, []byte("\n")), []byte("\r"))
	if len(rest) == 0 {
		return make([][]byte, n), nil
	}
	var values [][]byte
	for more := true; more; {
		var line []byte
		line, rest, more = bytes.Cut(rest, []byte("\n"))
		values = append(values, bytes.Clone(bytes.TrimSuffix(line, []byte("\r"))))
	}
	if len(values) != n {
		return values, usage("stdin has %s, and the credential has %s: give one line for each",
			plural(len(values), "line", "lines"), plural(n, "value", "values"))
	}
	return values, nil
}

func readWiping(in io.Reader) ([]byte, error) {
	var all []byte
	var chunk [4096]byte
	defer clear(chunk[:])
	for {
		n, err := in.Read(chunk[:])
		var tooLong error
		if all, tooLong = appendWiping(all, chunk[:n]); tooLong != nil {
			return nil, tooLong
		}
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return all, fmt.Errorf("reading stdin: %w", err)
		}
	}
}

func wipe(values [][]byte) {
	for _, v := range values {
		clear(v[:cap(v)])
	}
}

// keptOf counts the values that stay.
func keptOf(values [][]byte) int {
	n := 0
	for _, v := range values {
		if v == nil {
			n++
		}
	}
	return n
}

func plainWord(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// inFlags names in an error of the daemon what the person has given, in place of
// the members of the call: flags, and the values by their prompts.
func (o *secretOptions) inFlags(err error, q *control.SecretPut, places []control.ValuePlace) error {
	var f *fault.Error
	var own coded // said by this command itself, in its own words
	if errors.As(err, &own) || !errors.As(err, &f) {
		return err
	}
	said := *f
	said.Field = o.flagOf(f.Field, q, places)
	said.Details = nil
	for _, d := range f.Details {
		d.Field = o.flagOf(d.Field, q, places)
		said.Details = append(said.Details, d)
	}
	if rest, ok := strings.CutPrefix(f.Message, f.Field+":"); ok && f.Field != "" {
		said.Message = said.Field + ":" + rest
	} else if len(f.Details) > 0 {
		if rest, ok := strings.CutPrefix(f.Message, f.Details[0].Field+":"); ok {
			said.Message = said.Details[0].Field + ":" + rest
		}
	}
	if len(said.Details) > 1 {
		said.Message = fmt.Sprintf("nothing was changed: there are %d problems", len(said.Details))
	}
	return &said
}

// flagOf is where a person gave what a member of the call holds.
func (o *secretOptions) flagOf(field string, q *control.SecretPut, places []control.ValuePlace) string {
	name, index, found := strings.Cut(field, "[")
	i, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
	if !found || err != nil {
		i = -1
	}
	at := func(n int) bool { return i >= 0 && i < n }
	switch name {
	case "name":
		return "NAME"
	case "allowedHosts", "hosts":
		if at(len(q.AllowedHosts)) {
			return "--host " + q.AllowedHosts[i]
		}
		return "--host"
	case "headers":
		if at(len(q.Headers)) {
			return "--header " + q.Headers[i].Name
		}
		return "--header"
	case "value":
		switch {
		case !at(len(places)):
			return "the value"
		case o.stdin && len(places) > 1:
			return fmt.Sprintf("%s (line %d of stdin)", places[i].What(), i+1)
		}
		return places[i].What()
	case "oauth":
		return "--oauth2"
	case "oauth.tokenUrl":
		return "--token-url"
	case "oauth.clientId":
		return "--client-id"
	case "oauth.scope":
		return "--scope"
	case "oauth.audience":
		return "--audience"
	case "oauth.authStyle":
		return "--auth-style"
	}
	return field
}

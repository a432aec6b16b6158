package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

// A place is one value of a credential.
type valuePlace struct {
	prompt string // "Value for X-App-Key"
	keep   bool   // there is a saved one, which an empty entry keeps
	empty  bool   // it may be empty: a password of Basic
}

// placesOf says which values a credential has, and which of them are saved.
func placesOf(q *control.SecretPut, old *control.SecretInfo) []valuePlace {
	keep := old != nil && old.Problem == "" && old.Kind == q.Kind
	switch q.Kind {
	case "basic":
		return []valuePlace{{prompt: "User name", keep: keep}, {prompt: "Password", keep: keep, empty: !keep}}
	case "oauth2":
		return []valuePlace{{prompt: "Client secret", keep: keep}}
	}
	var places []valuePlace
	for _, h := range q.Headers {
		p := valuePlace{prompt: "Value for " + h.Name}
		if keep {
			p.keep = len(old.Headers) == len(q.Headers) // one may have got another name
			for _, was := range old.Headers {
				p.keep = p.keep || strings.EqualFold(was.Name, h.Name)
			}
		}
		places = append(places, p)
	}
	return places
}

// values gets one value for each place; nil is to keep the saved one. They are
// the caller's to wipe, also beside an error.
func (o *secretOptions) values(ctx context.Context, person *asker, q *control.SecretPut, places []valuePlace) ([][]byte, error) {
	var values [][]byte
	var err error
	if o.stdin {
		o.app.warn("the value comes through a pipe: whatever wrote it there may keep it, and others may have seen it")
		values, err = readValues(o.app.stdin, len(places))
	} else {
		values, err = o.askValues(ctx, person, q, places)
	}
	if err != nil {
		return values, err
	}
	for i, p := range places {
		switch {
		case len(values[i]) > 0:
		case p.empty:
			values[i] = []byte{}
		case p.keep:
			values[i] = nil
		default:
			return values, failed(exitInvalid, "", "no %s was given; nothing was changed", strings.ToLower(p.prompt[:1])+p.prompt[1:])
		}
	}
	return values, nil
}

func (o *secretOptions) askValues(ctx context.Context, person *asker, q *control.SecretPut, places []valuePlace) ([][]byte, error) {
	about := fmt.Sprintf("The credential %s will be sent to %s.", clean(q.Name), clean(strings.Join(q.AllowedHosts, ", ")))
	if q.OAuth != nil {
		about += fmt.Sprintf("\nIts client secret will be sent to %s.", clean(q.OAuth.TokenURL))
	}
	var values [][]byte
	for i, p := range places {
		text := about
		if i > 0 {
			text = fmt.Sprintf("The credential %s:", clean(q.Name))
		}
		switch {
		case p.keep:
			text += "\nAn empty entry keeps the saved one."
		case p.empty:
			text += "\nIt may be empty when the user name is a key."
		}
		v, err := person.value(ctx, text, clean(p.prompt))
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

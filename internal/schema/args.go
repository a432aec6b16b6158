package schema

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// Limits of the arguments of one call.
const (
	MaxArgsBytes = 1 << 20 // length of their JSON text
	MaxArgsDepth = 32      // arrays and objects inside each other
	// MaxArgsValues bounds the values of all kinds in them. A megabyte of
	// embeddings has 100 000; a megabyte of {} has 350 000, and checking each
	// against 200 properties takes seconds.
	MaxArgsValues = 200_000
)

// DecodeArgs reads the arguments of a call: one JSON object in UTF-8 without
// duplicate keys, with nothing after it, within the limits. Absent, empty and
// null read as no arguments. Errors are ARGS_INVALID faults.
func DecodeArgs(raw []byte) (recipe.Object, error) {
	if len(raw) > MaxArgsBytes {
		return nil, fault.OneProblem("ARGS_INVALID", "TOO_LONG", "args", "the arguments can have %d bytes, these have %d", MaxArgsBytes, len(raw))
	}
	if len(bytes.TrimLeft(raw, " \t\r\n")) == 0 {
		return recipe.Object{}, nil
	}
	// Duplicate keys are found below: all of them, and without comparing each
	// key with each other one.
	v, err := recipe.Decode(raw, recipe.DecodeLimits{Depth: MaxArgsDepth})
	if err != nil {
		return nil, notArgs(err)
	}
	switch v := v.(type) {
	case nil:
		return recipe.Object{}, nil
	case recipe.Object:
		if n := values(v); n > MaxArgsValues {
			return nil, fault.OneProblem("ARGS_INVALID", "TOO_MANY", "args", "the arguments can hold %d values, these hold %d", MaxArgsValues, n)
		}
		if dups := Duplicates(v, "args"); len(dups) > 0 {
			return nil, ArgsInvalid(dups)
		}
		return v, nil
	}
	return nil, ArgsInvalid([]recipe.Problem{{Field: "args", Code: "TYPE", Message: "expected an object with the arguments by name, got " + typeOf(v), Hint: typeHint("object", v)}})
}

// values counts v and everything in it.
func values(v recipe.Value) int {
	n := 1
	switch v := v.(type) {
	case recipe.Array:
		for _, e := range v {
			n += values(e)
		}
	case recipe.Object:
		for _, m := range v {
			n += values(m.Value)
		}
	}
	return n
}

func notArgs(err error) error {
	code, message := fault.Code("TYPE"), "not one JSON object"
	var de *recipe.DecodeError
	if errors.As(err, &de) {
		message = "not one JSON object: " + de.Error()
		if de.Kind == "depth" {
			code, message = "RANGE", de.Error()
		}
	}
	return fault.OneProblem("ARGS_INVALID", code, "args", "%s", message)
}

// ArgsInvalid makes the fault for arguments that do not fit: all problems as
// details, the first one, and how many there are, in its message.
func ArgsInvalid(problems []recipe.Problem) *fault.Error {
	if len(problems) == 0 {
		return nil
	}
	details := make([]fault.Detail, len(problems))
	for i, p := range problems {
		details[i] = fault.Detail{Field: p.Field, Code: fault.Code(p.Code), Message: p.Message, Hint: p.Hint}
	}
	first := problems[0]
	message := first.Field + ": " + first.Message
	if n := len(problems) - 1; n > 0 {
		message += fmt.Sprintf(" (and %s more)", count(n, "problem"))
	}
	e := fault.New("ARGS_INVALID", "%s", message).With(fault.Details(details))
	if len(problems) == 1 && first.Hint != "" {
		e = e.With(fault.Hint("%s", first.Hint))
	}
	return e
}

// Duplicates lists the members of v, at any depth, whose key an earlier member
// of the same object has, at most recipe.MaxProblems. field is the place of v.
func Duplicates(v recipe.Value, field string) []recipe.Problem {
	var out []recipe.Problem
	duplicates(v, field, &out)
	return out
}

func duplicates(v recipe.Value, field string, out *[]recipe.Problem) {
	if len(*out) >= recipe.MaxProblems {
		return
	}
	switch v := v.(type) {
	case recipe.Array:
		for i, e := range v {
			if compound(e) {
				duplicates(e, fmt.Sprintf("%s[%d]", field, i), out)
			}
		}
	case recipe.Object:
		var seen map[string]bool // once they are too many to compare one by one
		if len(v) > 8 {
			seen = make(map[string]bool, len(v))
		}
		for i, m := range v {
			if (seen[m.Key] || seen == nil && has(v[:i], m.Key)) && len(*out) < recipe.MaxProblems {
				*out = append(*out, recipe.Problem{Field: at(field, m.Key), Code: "DUPLICATE", Message: fmt.Sprintf("key %q appears twice", clip(m.Key))})
			}
			if seen != nil {
				seen[m.Key] = true
			}
			if compound(m.Value) {
				duplicates(m.Value, at(field, m.Key), out)
			}
		}
	}
}

func has(o recipe.Object, key string) bool {
	_, ok := o.Get(key)
	return ok
}

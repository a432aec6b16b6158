package store_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
)

func TestSealed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := store.Open(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.GetSealed("a"); got != nil || err != nil {
		t.Errorf("missing: %q %v", got, err)
	}
	for _, step := range []struct {
		name, value string
		ok          bool
	}{
		{"a", "first", true},
		{"a", "\x00second", true},
		{"b", strings.Repeat("x", store.MaxSealedBytes), true},
		{"c", strings.Repeat("x", store.MaxSealedBytes+1), false},
		{"c", "", false},
		{"", "x", false},
		{strings.Repeat("n", 100), "x", true},
		{strings.Repeat("n", 101), "x", false},
	} {
		if err := s.PutSealed(step.name, []byte(step.value)); (err == nil) != step.ok {
			t.Errorf("put %.10q (%d bytes): %v", step.name, len(step.value), err)
		}
	}
	if err := s.DeleteSealed("b"); err != nil {
		t.Error(err)
	}
	if err := s.DeleteSealed("never"); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = store.Open(path, store.Options{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	names, err := s.ListSealed()
	if err != nil || !slices.Equal(names, []string{"a", strings.Repeat("n", 100)}) {
		t.Errorf("%v %v", names, err)
	}
	got, err := s.GetSealed("a")
	if err != nil || !bytes.Equal(got, []byte("\x00second")) {
		t.Errorf("%q %v", got, err)
	}
	got[0] = 'X' // the caller's copy
	if again, _ := s.GetSealed("a"); again[0] != 0 {
		t.Error("the store handed out its own bytes")
	}
}

func TestSealedLimit(t *testing.T) {
	s, err := store.Open(filepath.Join(t.TempDir(), "store.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range store.MaxSealed {
		if err := s.PutSealed(strconv.Itoa(i), []byte("x")); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := s.PutSealed("one more", []byte("x")); !fault.Is(err, "BAD_REQUEST") {
		t.Errorf("one over the limit: %v", err)
	}
	if err := s.PutSealed("7", []byte("y")); err != nil {
		t.Errorf("replacing at the limit: %v", err)
	}
}

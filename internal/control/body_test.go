package control

import (
	"bytes"
	"io"
	"testing"
)

// A body comes out whole, and nothing of it is left once it is closed.
func TestOnceBody(t *testing.T) {
	data := []byte("the value of a credential")
	b := &onceBody{rest: data, all: data}
	got, err := io.ReadAll(io.LimitReader(b, 9))
	if err != nil || string(got) != "the value" {
		t.Fatalf("%q, %v", got, err)
	}
	rest, err := io.ReadAll(b)
	if err != nil || string(rest) != " of a credential" {
		t.Fatalf("%q, %v", rest, err)
	}
	for range 2 {
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(data, make([]byte, len(data))) {
			t.Fatalf("%q is left", data)
		}
	}
	if n, err := b.Read(make([]byte, 9)); n != 0 || err != io.EOF {
		t.Errorf("read %d after the end: %v", n, err)
	}
}

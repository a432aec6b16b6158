package store_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/store"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// large is a store of n wrappers of about 1 KiB each, a usual size.
func large(b *testing.B, n int) string {
	b.Helper()
	var ws []*wrapper.Wrapper
	for i := range n {
		ws = append(ws, parse(fmt.Sprintf("service%d.operation%d", i%97, i), "An operation",
			fmt.Sprintf(`,"description":%q,"input":{"type":"object","properties":{"id":{"type":"string"},"limit":{"type":"integer","default":20}}},
			"response":{"schemaVersion":1,"select":"$.items","mode":"table","fields":{"Id":{"path":"id"},"Name":{"path":"name"}}}`, strings.Repeat("words ", 100))))
	}
	path := filepath.Join(b.TempDir(), "store.db")
	store.Build(b, path, ws)
	return path
}

func open(b *testing.B, path string) *store.Store {
	s, err := store.Open(path, store.Options{})
	if err != nil || s.Recovered() != "" {
		b.Fatal(err, s.Recovered())
	}
	return s
}

func BenchmarkOpen10000(b *testing.B) {
	path := large(b, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		s := open(b, path)
		b.StopTimer()
		_ = s.Close()
		b.StartTimer()
	}
}

func BenchmarkFirstList10000(b *testing.B) {
	path := large(b, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		s := open(b, path)
		b.StartTimer()
		if n := len(s.List()); n != 10_000 {
			b.Fatal(n)
		}
		b.StopTimer()
		_ = s.Close()
		b.StartTimer()
	}
}

func BenchmarkList10000(b *testing.B) {
	s := open(b, large(b, 10_000))
	defer s.Close()
	b.ReportAllocs()
	for b.Loop() {
		_ = s.List()
	}
}

func BenchmarkGet(b *testing.B) {
	s := open(b, large(b, 10_000))
	defer s.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Get("service1.operation98"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMarkVerified(b *testing.B) {
	s := open(b, large(b, 100))
	defer s.Close()
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Second)
		s.MarkVerified("service1.operation1", now)
	}
}

func BenchmarkUpdate10000(b *testing.B) {
	s := open(b, large(b, 10_000))
	defer s.Close()
	w := parse("service1.operation98", "changed")
	for b.Loop() {
		if _, err := s.By(store.Human).Update(w); err != nil {
			b.Fatal(err)
		}
	}
}

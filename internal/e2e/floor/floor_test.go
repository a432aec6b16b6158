package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
)

// read decodes with every number as it is written.
func read(t *testing.T, text []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		t.Fatal(err)
	}
}

type item struct {
	ID            json.Number
	Title         string
	Price, Rating json.Number
	Stock         json.Number
}

// The scan writes what encoding/json reads.
func TestTable(t *testing.T) {
	array, n := big()
	var all []item
	read(t, array, &all)
	if len(all) != n {
		t.Fatalf("%d items in the array, want %d", len(all), n)
	}
	for name, at := range map[string]struct {
		text  []byte
		key   string
		most  int
		items []item
	}{
		"list":  {products(10, n), "products", 50, all[:10]},
		"none":  {products(0, n), "products", 50, nil},
		"big":   {array, "", 50, all[:50]},
		"other": {[]byte(` { "total" : -1 , "x" : { "products" : [ 1 ] , "s" : "\"]\\" } , "products" : [ { "stock" : 7 , "id" : 9007199254740993 , "title" : "a" , "price" : 5.00 , "rating" : 1e3 } ] } `), "products", 50, []item{{"9007199254740993", "a", "5.00", "1e3", "7"}}},
	} {
		want := header
		for _, i := range at.items {
			want += fmt.Sprintf("\n| %s | %s | %s | %s | %s |", i.ID, strings.ReplaceAll(i.Title, "|", `\|`), i.Price, i.Rating, i.Stock)
		}
		got, err := table(at.text, at.key, at.most)
		if err != nil || string(got) != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, want)
		}
	}
}

func TestTableOfWhatIsNone(t *testing.T) {
	whole := string(products(3, 3))
	for i := range len(whole) - len(`],"total":3,"limit":3}`) { // behind the list nothing is looked at
		if out, err := table([]byte(whole[:i]), "products", 2); err == nil {
			t.Fatalf("cut after %d bytes it gave %s", i, out)
		}
	}
	for _, text := range []string{`{"other":[]}`, `{"products":{}}`, `{"products":[1]}`, `{"products":[{"id":1 "title":2}]}`, `[]`} {
		if out, err := table([]byte(text), "products", 2); err == nil {
			t.Errorf("%s gave %s", text, out)
		}
	}
}

// The sizes that the package comment of the benchmark promises, and numbers that a float64 does not keep.
func TestData(t *testing.T) {
	array, n := big()
	if len(array) > bigSize || len(array) < bigSize-2000 {
		t.Errorf("the array has %d bytes", len(array))
	}
	if size := len(array) / n; size < 1300 || size > 1500 {
		t.Errorf("a product has %d bytes", size)
	}
	text := order(firstID)
	if len(text) < 950 || len(text) > 1150 {
		t.Errorf("the object has %d bytes", len(text))
	}
	var o struct {
		ID      json.Number
		Deposit json.Number
	}
	read(t, text, &o)
	if o.ID != "9007199254740993" || o.Deposit != "5.00" {
		t.Errorf("%+v", o)
	}
	for i := range 50 {
		var p item
		read(t, product(i), &p)
		id, err := p.ID.Int64()
		if err != nil || id <= 1<<53 || int64(float64(id)) == id {
			t.Errorf("id %s is one that a float64 keeps, %v", p.ID, err)
		}
		if f, err := p.Price.Float64(); err != nil || math.Abs(f*100-math.Round(f*100)) > 1e-6 || !strings.Contains(p.Price.String(), ".") {
			t.Errorf("price %s", p.Price)
		}
	}
}

func BenchmarkTable(b *testing.B) {
	array, _ := big()
	b.SetBytes(int64(len(array)))
	for b.Loop() {
		if _, err := table(array, "", 50); err != nil {
			b.Fatal(err)
		}
	}
}

package main

import "fmt"

// What the API says follows from the number of an item alone, so that every run
// on every machine reads the same bytes. Ids are odd and above 2^53: a program
// that reads numbers as floating point changes each of them. Prices have two
// decimals, some of them zeros, which such a program drops.

// firstID is 2^53+1, the least integer that a float64 does not hold.
const firstID = 9007199254740993

// bigSize is what the big array stays under: 5 MB, the most that hb-rest takes
// of an answer with little room left.
const bigSize = 5_000_000

var (
	things   = []string{"Desk lamp", "Kettle", "Rain jacket", "Bike light", "Notebook", "Headphones", "Camera strap"}
	kinds    = []string{"plain", "folding", "with a bag | blue", "small", "for two"}
	brands   = []string{"Northern Goods", "Example & Daughters", "Plain Works"}
	comments = []string{"Arrived on time, and it does what it says.", "The hinge broke after a week of careful use.", "I would buy it again for the price."}
)

func price(i int) string { return fmt.Sprintf("%d.%02d", 5+i*37%1900, i*10%100) }

// product is an item of about 1.4 KB as shops send them, of which a reader wants five members.
func product(i int) []byte {
	id, title := firstID+2*int64(i), things[i%len(things)]+", "+kinds[i%len(kinds)]
	b := fmt.Appendf(nil, `{"id":%d,"title":%q,"description":"%s number %d is light, lasts long and comes with all that is needed to begin. It was looked at by hand before it left the workshop, and it can be given back for thirty days.","category":"household","brand":%q,"price":%s,"rating":%d.%02d,"stock":%d,`,
		id, title, title, i+1, brands[i%len(brands)], price(i), 2+i%3, i*7%100, i*13%150)
	b = fmt.Appendf(b, `"sku":"SKU-%06d","weightGrams":%d,"dimensions":{"width":%d.50,"height":%d.25,"depth":3.00},"tags":["household","new","gift"],"reviews":[`,
		i, 100+i%900, 1+i%40, 1+i%30)
	for k := range 3 {
		if k > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"rating":%d,"comment":%q,"date":"2026-01-%02dT10:15:00Z","reviewer":{"id":%d,"name":"Reviewer %d","email":"reviewer.%d@shop.example.com"}}`,
			1+(i+k)%5, comments[(i+k)%len(comments)], 1+(i+k)%28, id+int64(k), i+k, i+k)
	}
	return fmt.Appendf(b, `],"shipping":"Leaves within three working days","warranty":"2 years","returns":"30 days","createdAt":"2026-01-31T10:15:00Z","updatedAt":"2026-02-01T08:00:00Z","barcode":"%013d","images":["https://cdn.example.com/products/%d/front.webp","https://cdn.example.com/products/%d/back.webp"],"thumbnail":"https://cdn.example.com/products/%d/small.webp"}`,
		4006381333931+i, i, i, i)
}

// products is {"products":[...],"total":n,"limit":n}.
func products(limit, total int) []byte {
	b := []byte(`{"products":[`)
	for i := range limit {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, product(i)...)
	}
	return fmt.Appendf(b, `],"total":%d,"limit":%d}`, total, limit)
}

// big is one array, and how many products it has.
func big() (array []byte, n int) {
	array = make([]byte, 1, bigSize)
	array[0] = '['
	for {
		p := product(n)
		if len(array)+len(p)+2 > bigSize {
			return append(array, ']'), n
		}
		if n > 0 {
			array = append(array, ',')
		}
		array = append(array, p...)
		n++
	}
}

// order is an object of about 1 KB.
func order(id int64) []byte {
	b := fmt.Appendf(nil, `{"id":%d,"status":"shipped","customer":{"id":%d,"name":"Ada Example","email":"ada@example.com","phone":"+1 555 0100","address":{"street":"1 Long Road","city":"Springfield","zip":"12345","country":"US"}},"currency":"EUR","total":124.40,"tax":19.86,"deposit":5.00,"lines":[`,
		id, id+2)
	for i := range 5 {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"sku":"SKU-%06d","title":%q,"quantity":%d,"price":%s}`, i, things[i], i+1, price(i))
	}
	return append(b, `],"notes":"Leave it at the door, please, before noon if that can be done, and ring twice: the bell is on the left.","createdAt":"2026-01-31T10:15:00Z","updatedAt":"2026-02-01T08:00:00Z","carrier":"Example Post","trackingNumber":"EX123456789","flags":["paid","insured"],"weightGrams":2412,"gift":false,"coupon":null}`...)
}

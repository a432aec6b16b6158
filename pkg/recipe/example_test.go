package recipe_test

import (
	"fmt"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// Numbers keep their digits, members their order.
func ExampleDecode() {
	v, err := recipe.Decode([]byte(`{"id": 9007199254740993, "price": 30.00}`), recipe.DecodeLimits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(recipe.Encode(v)))

	_, err = recipe.Decode([]byte(`{"id": 1, "na`), recipe.DecodeLimits{})
	fmt.Println(err)
	// Output:
	// {"id":9007199254740993,"price":30.00}
	// the text ends too early at byte 13
}

func ExampleParsePath() {
	v, err := recipe.Decode([]byte(`{"link": [{"rel": "self", "url": "/a"}, {"rel": "next", "url": "/b"}]}`), recipe.DecodeLimits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := recipe.ParsePath("$.link[?@.rel=='next'].url")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Resolve(v))

	_, err = recipe.ParsePath("$.link[0")
	fmt.Println(err)
	// Output:
	// [/b]
	// ']' missing at character 9
}

// Everything wrong is reported at once, each with its field.
func ExampleParse() {
	doc, err := recipe.Decode([]byte(`{
		"schemaVersion": 1,
		"select": "products",
		"mode": "table",
		"fields": {"Unit price": {"path": "price", "format": "money"}}
	}`), recipe.DecodeLimits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, report := recipe.Parse(doc)
	for _, p := range report.Problems {
		fmt.Printf("%s %s: %s\n", p.Field, p.Code, p.Message)
	}
	// Output:
	// response.select PATH_ROOT: must start with $
	// response.fields['Unit price'].format FORMAT_UNKNOWN: unknown format "money"
}

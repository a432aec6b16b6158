package importer

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// Names of parameters that choose a page, in lower case without - _ . $ [ ].
var (
	pageNames   = []string{"page", "pagenumber", "pagenum", "pageno", "currentpage", "pageindex"}
	offsetNames = []string{"offset", "skip", "startat", "startindex", "recordoffset"}
	sizeNames   = []string{"perpage", "pagesize", "limit", "size", "count", "pagelimit", "maxresults", "maxitems", "rows", "top", "take", "pagesizelimit", "resultsperpage"}
	cursorNames = []string{
		"cursor", "nextcursor", "pagetoken", "nextpagetoken", "after", "startingafter", "startcursor", "continuationtoken",
		"nexttoken", "continuation", "continue", "marker", "pagecursor", "pageafter", "next",
	}
	totalNames = []string{"total", "total_count", "totalCount", "totalResults", "total_results", "totalItems", "total_items"}
)

func pagingName(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("-_.$[]", r) {
			return -1
		}
		return r
	}, strings.ToLower(s))
}

// paging says how further pages are read, nil when there are none or the
// document leaves it open. It takes the arguments away that the walk sets.
func (op *operation) paging(r *recipe.Recipe, sample recipe.Value, hints []recipe.Note) recipe.Object {
	if op.method != "GET" || r.Mode == "document" {
		return nil
	}
	var hint recipe.Object
	for _, n := range hints {
		if n.Code == "paging_hint" {
			v, _ := recipe.Decode([]byte(n.Message), recipe.DecodeLimits{})
			hint, _ = v.(recipe.Object)
		}
	}
	for _, find := range []func() recipe.Object{
		func() recipe.Object { return op.linkPaging(hint) },
		func() recipe.Object { return op.cursorPaging(hint) },
		func() recipe.Object { return op.offsetPaging(sample) },
	} {
		plan := find()
		if plan == nil {
			continue
		}
		if _, report := recipe.Parse(append(r.Document(), recipe.Member{Key: "pagination", Value: plan})); !report.OK() {
			continue
		}
		op.owned(plan)
		return plan
	}
	if op.param1(pageNames) != "" || op.param1(cursorNames) != "" && op.param1(cursorNames) != "next" {
		op.notes.add("it has pages, but the document does not say enough about them: response.pagination is missing")
	}
	return nil
}

// param1 is the one query parameter with a name among those, "" when there is
// none or more than one.
func (op *operation) param1(names []string) string {
	found := ""
	for _, m := range op.query {
		if slices.Contains(names, pagingName(m.Key)) {
			if found != "" {
				return ""
			}
			found = m.Key
		}
	}
	return found
}

func (op *operation) linkPaging(hint recipe.Object) recipe.Object {
	if text(hint, "type") == "link" {
		return hint
	}
	if op.answer == nil {
		return nil
	}
	for _, m := range op.answer.headers {
		if strings.EqualFold(m.Key, "Link") && (text(hint, "type") != "cursor" || op.cursorParam(hint) == "") {
			return recipe.Object{{Key: "type", Value: "link"}, {Key: "nextUrl", Value: "header:Link"}}
		}
	}
	return nil
}

// cursorParam is the declared parameter that a cursor goes into.
func (op *operation) cursorParam(hint recipe.Object) string {
	guess := text(hint, "cursorParam")
	if has(op.query, guess) {
		return guess
	}
	return op.param1(cursorNames)
}

func (op *operation) cursorPaging(hint recipe.Object) recipe.Object {
	if text(hint, "type") != "cursor" || text(hint, "in") == "body" {
		return nil
	}
	name := op.cursorParam(hint)
	if name == "" {
		return nil
	}
	plan := slices.Clone(hint)
	for i := range plan {
		if plan[i].Key == "cursorParam" {
			plan[i].Value = name
		}
	}
	return plan
}

// offsetPaging reads "page and size" and "offset and size" from the
// parameters, where both have names that leave no doubt.
func (op *operation) offsetPaging(sample recipe.Value) recipe.Object {
	page, offset, size := op.param1(pageNames), op.param1(offsetNames), op.param1(sizeNames)
	if size == "" || (page == "") == (offset == "") {
		return nil
	}
	limit := op.argOf(size)
	if limit == nil || !isInteger(limit) {
		return nil
	}
	n, ok := pageSize(limit)
	if !ok {
		return nil
	}
	param := page + offset
	arg := op.argOf(param)
	if arg == nil || !isInteger(arg) {
		return nil
	}
	plan := recipe.Object{{Key: "type", Value: "offset"}, {Key: "offsetParam", Value: param}, {Key: "limitParam", Value: size}, {Key: "pageSize", Value: json.Number(strconv.Itoa(n))}}
	start, ok := firstPlace(arg, page != "")
	if !ok {
		return nil
	}
	if page != "" {
		plan = append(plan, recipe.Member{Key: "start", Value: start}, recipe.Member{Key: "step", Value: "page"})
	} else if start != "0" {
		plan = append(plan, recipe.Member{Key: "start", Value: start})
	}
	if o, ok := sample.(recipe.Object); ok {
		for _, name := range totalNames {
			if _, ok := get(o, name).(json.Number); ok {
				plan = append(plan, recipe.Member{Key: "total", Value: name})
				break
			}
		}
	}
	return plan
}

// firstPlace is the number of the first page or item: 0 or 1, as the default,
// the least value or, for pages, the example says. An offset that says nothing
// begins at 0; a page, and a startIndex, which counts from 1 in SCIM and from 0
// elsewhere, could be either.
func firstPlace(arg *argument, page bool) (json.Number, bool) {
	places := []recipe.Value{arg.first, get(arg.schema, "minimum")}
	if page {
		places = append(places, firstExample(arg.schema))
	}
	for _, v := range places {
		if n := numberText(v); n == "0" || n == "1" {
			return n, true
		}
	}
	least := number(get(arg.schema, "minimum"))
	return "0", !page && !strings.HasPrefix(pagingName(arg.name), "startindex") && (least == nil || least.Sign() <= 0)
}

func firstExample(schema recipe.Object) recipe.Value {
	if list := array(schema, "examples"); len(list) > 0 {
		return list[0]
	}
	return nil
}

func isInteger(a *argument) bool {
	return text(a.schema, "type") == "integer" || text(a.schema, "type") == "number"
}

// pageSize is how many items to ask for: what the API gives by itself, within
// what it allows.
func pageSize(a *argument) (int, bool) {
	whole := func(v recipe.Value) int {
		n, _ := strconv.Atoi(string(numberText(v)))
		return n
	}
	least, most, own := whole(get(a.schema, "minimum")), whole(get(a.schema, "maximum")), whole(a.first)
	n := own
	if n < 1 {
		n = 50
	}
	if most > 0 {
		n = min(n, most)
	}
	n = max(n, least)
	return n, n >= 1 && n <= 1000
}

func numberText(v recipe.Value) json.Number {
	n, _ := v.(json.Number)
	return n
}

// argOf is the argument of a query parameter.
func (op *operation) argOf(param string) *argument {
	hole, ok := get(op.query, param).(string)
	if !ok {
		return nil
	}
	for i := range op.args.list {
		if "{{"+op.args.list[i].name+"}}" == hole {
			return &op.args.list[i]
		}
	}
	return nil
}

// owned takes the arguments away that the walk through offset pages sets
// itself; max_pages says how far it goes. A link or a cursor leaves them: they
// say where the walk begins.
func (op *operation) owned(plan recipe.Object) {
	if text(plan, "type") != "offset" {
		op.notes.add("further pages are read by themselves (%s)", text(plan, "type"))
		return
	}
	names := []string{text(plan, "offsetParam"), text(plan, "limitParam")}
	for _, name := range names {
		hole := get(op.query, name)
		op.query = slices.DeleteFunc(slices.Clone(op.query), func(m recipe.Member) bool { return m.Key == name })
		op.args.list = slices.DeleteFunc(slices.Clone(op.args.list), func(a argument) bool { return "{{"+a.name+"}}" == hole })
	}
	op.notes.add("pages are read by %s and %s, which are no arguments", names[0], names[1])
}

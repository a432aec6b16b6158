package recipe

import (
	"encoding/json"
	"strconv"
	"strings"
)

// A pagingSpot is an object of the answer that may speak of further pages.
type pagingSpot struct {
	path string
	o    Object
}

// Members that hold what an envelope says about paging.
var pagingPlaces = []string{
	"links", "_links", "meta", "metadata", "pagination", "paging", "page", "page_info", "pageInfo",
	"response_metadata", "message", "data", "cursors", "result", "response",
}

// Members that hold the next page's address.
var nextURLNames = nameSet("next", "nexturl", "nextlink", "nextpageuri", "nextpageurl", "nextrecordsurl", "odatanextlink", "nexthref")

// Members that hold the next page's cursor, and the parameter it usually goes
// into.
var cursorNames = []struct {
	key, param string
	body       bool
}{
	{"nextPageToken", "pageToken", false},
	{"next_page_token", "page_token", false},
	{"next_cursor", "cursor", false},
	{"nextCursor", "cursor", false},
	{"next-cursor", "cursor", false},
	{"nextCursorMark", "cursorMark", false},
	{"endCursor", "after", false},
	{"end_cursor", "after", false},
	{"after", "after", false},
	{"continue", "continue", false},
	{"LastEvaluatedKey", "ExclusiveStartKey", true},
	{"LastEvaluatedTableName", "ExclusiveStartTableName", true},
	{"NextToken", "NextToken", true},
}

// pagingHint notes how the next pages could be read, when the sample says
// that there are any. The hint is not part of the recipe: parameter names
// are not in an answer, so they are a guess.
func (d *deriver) pagingHint(v Value, doc Object) {
	spots := pagingSpots(v)
	for _, guess := range []func([]pagingSpot) Object{linkHint, cursorHint, lastIDHint(doc), offsetHint, pageHint} {
		hint := guess(spots)
		if hint == nil {
			continue
		}
		// Only what a recipe may hold is worth saying.
		if _, report := Parse(append(doc[:len(doc):len(doc)], Member{"pagination", hint})); report.OK() {
			d.note("paging_hint", "%s", Encode(hint))
			return
		}
	}
}

func pagingSpots(v Value) []pagingSpot {
	root, path := v, "$"
	if a, ok := v.(Array); ok && len(a) == 2 {
		root, path = a[0], "$[0]"
	}
	o, ok := root.(Object)
	if !ok {
		return nil
	}
	spots := []pagingSpot{{path, o}}
	for i := 0; i < len(spots) && len(spots) < 40; i++ {
		if strings.Count(spots[i].path, ".") > 1 {
			continue
		}
		for _, name := range pagingPlaces {
			if inner, ok := memberValue(spots[i].o, name).(Object); ok {
				spots = append(spots, pagingSpot{spots[i].path + memberSegment(name), inner})
			}
		}
	}
	return spots
}

// linkHint finds an address of the next page.
func linkHint(spots []pagingSpot) Object {
	for _, s := range spots {
		for _, m := range s.o[:min(len(s.o), deriveMembers)] {
			if !nextURLNames[normal(m.Key)] {
				continue
			}
			path := s.path + memberSegment(m.Key)
			switch v := m.Value.(type) {
			case string:
				if !strings.HasPrefix(v, "http") && !strings.HasPrefix(v, "/") && !strings.HasPrefix(v, "?") {
					continue
				}
			case Object:
				href, ok := memberValue(v, "href").(string)
				if !ok || href == "" {
					continue
				}
				path += ".href"
			case nil:
				if normal(m.Key) == "next" && !hasMember(s.o, "previous", "prev", "count", "total") {
					continue
				}
			default:
				continue
			}
			return append(Object{{"type", "link"}, {"nextUrl", path}}, totalHint(spots)...)
		}
		if relations, ok := memberValue(s.o, "link").(Array); ok {
			for _, r := range relations[:min(len(relations), deriveItems)] {
				if o, ok := r.(Object); ok && memberValue(o, "relation") == "next" && isFullString(memberValue(o, "url")) {
					return Object{{"type", "link"}, {"nextUrl", s.path + ".link[?@.relation=='next'].url"}}
				}
			}
		}
	}
	return nil
}

// cursorHint finds a token for the next page.
func cursorHint(spots []pagingSpot) Object {
	for _, s := range spots {
		for _, c := range cursorNames {
			v, ok := s.o.Get(c.key)
			if !ok {
				continue
			}
			path := s.path + memberSegment(c.key)
			param := c.param
			switch v.(type) {
			case string, json.Number:
			case nil:
				if c.key == "after" || c.key == "continue" {
					continue
				}
			case Object:
				if c.key == "continue" {
					param = "*"
				} else if !c.body {
					continue
				}
			default:
				continue
			}
			if c.key == "next_cursor" && memberValue(s.o, "object") == "list" {
				param = "start_cursor"
			}
			hint := Object{{"type", "cursor"}, {"next", path}, {"cursorParam", param}}
			if c.body {
				hint = append(hint, Member{"in", "body"})
			}
			if _, ok := memberValue(s.o, "has_more").(bool); ok {
				hint = append(hint, Member{"hasMore", s.path + ".has_more"})
			}
			return append(hint, totalHint(spots)...)
		}
	}
	return nil
}

// lastIDHint serves lists that say has_more and continue after the id of
// their last item.
func lastIDHint(doc Object) func([]pagingSpot) Object {
	return func(spots []pagingSpot) Object {
		list, _ := memberValue(doc, "select").(string)
		record, _ := memberValue(doc, "record").(Object)
		if len(spots) == 0 || memberValue(record, "id") != "id" || strings.Contains(list, "[*]") {
			return nil
		}
		if _, ok := memberValue(spots[0].o, "has_more").(bool); !ok {
			return nil
		}
		return Object{
			{"type", "cursor"}, {"next", list + "[-1].id"}, {"cursorParam", "starting_after"}, {"hasMore", spots[0].path + ".has_more"},
		}
	}
}

// offsetHint finds a start and a size: skip and limit, startAt and maxResults.
func offsetHint(spots []pagingSpot) Object {
	pairs := [][2]string{{"skip", "limit"}, {"startAt", "maxResults"}, {"offset", "limit"}, {"start", "rows"}, {"from", "size"}}
	for _, s := range spots {
		for _, p := range pairs {
			if _, ok := memberValue(s.o, p[0]).(json.Number); !ok {
				continue
			}
			size := pageCount(memberValue(s.o, p[1]))
			if size < 1 || size > 1000 {
				continue
			}
			hint := Object{
				{"type", "offset"}, {"offsetParam", p[0]}, {"limitParam", p[1]}, {"pageSize", json.Number(strconv.Itoa(size))},
			}
			if _, ok := memberValue(s.o, "isLast").(bool); ok {
				hint = append(hint, Member{"hasMore", s.path + ".isLast"}, Member{"hasMoreWhen", false})
			}
			return append(hint, totalHint(spots)...)
		}
	}
	return nil
}

// pageHint finds a page number beside a number of pages.
func pageHint(spots []pagingSpot) Object {
	sizes := []string{"per_page", "perPage", "page_size", "pageSize", "hitsPerPage", "limit"}
	for _, s := range spots {
		page := pageCount(memberValue(s.o, "page"))
		if page < 0 || !hasMember(s.o, "pages", "nbPages", "num_pages", "numPages", "total_pages", "totalPages", "last_page", "page_count") {
			continue
		}
		for _, name := range sizes {
			size := pageCount(memberValue(s.o, name))
			if size < 1 || size > 1000 {
				continue
			}
			// Where a page 0 exists, pages are counted from 0.
			start := "1"
			if page == 0 || hasMember(s.o, "nbPages") {
				start = "0"
			}
			hint := Object{
				{"type", "offset"},
				{"offsetParam", "page"},
				{"limitParam", name},
				{"pageSize", json.Number(strconv.Itoa(size))},
				{"start", json.Number(start)},
				{"step", "page"},
			}
			return append(hint, totalHint(spots)...)
		}
	}
	return nil
}

// totalHint finds how many items there are on all pages.
func totalHint(spots []pagingSpot) Object {
	for _, s := range spots {
		for _, name := range []string{"total", "total_count", "totalCount", "@odata.count", "numFound", "nbHits", "count", "total-results"} {
			if n := pageCount(memberValue(s.o, name)); n >= 0 {
				return Object{{"total", s.path + memberSegment(name)}}
			}
		}
	}
	return nil
}

func hasMember(o Object, names ...string) bool {
	for _, n := range names {
		if _, ok := o.Get(n); ok {
			return true
		}
	}
	return false
}

// pageCount reads a count, which some APIs write as text; -1 is none.
func pageCount(v Value) int {
	n, err := strconv.Atoi(sampleText(v))
	if err != nil || n < 0 {
		return -1
	}
	return n
}

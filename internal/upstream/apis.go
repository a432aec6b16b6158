package upstream

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// An API plays one well-known API that hands out a collection in pages: its
// parameter names, its envelope, and its way to the next page. It is strict: a
// request that lacks a filter, a header or the page size, has one twice or one
// too many, or comes with a cursor that was never handed out, gets status 400.
type API struct {
	Name    string             // of its recipe in docs/paging.md
	Request string             // the request object of a wrapper; ORIGIN and SIZE are to be replaced
	Key     func(i int) string // the JSON text by which the recipe's first field tells item i

	page func(*call) any
}

// Handler serves a collection of so many items in pages of size.
func (a *API) Handler(items, size int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{r: r, header: w.Header(), origin: "http://" + r.Host, items: items, size: size}
		if r.TLS != nil {
			c.origin = "https://" + r.Host
		}
		c.header.Set("Content-Type", "application/json; charset=utf-8")
		status, body := c.serve(a.page)
		out, err := json.Marshal(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.WriteHeader(status)
		_, _ = w.Write(out)
	})
}

// A call is one request for a page.
type call struct {
	r           *http.Request
	header      http.Header // of the answer
	origin      string
	items, size int
}

// A refusal says what is wrong with a request.
type refusal string

func (c *call) serve(page func(*call) any) (status int, body any) {
	defer func() {
		if why := recover(); why != nil {
			said, ok := why.(refusal)
			if !ok {
				panic(why)
			}
			status, body = http.StatusBadRequest, object{"message": string(said)}
		}
	}()
	return http.StatusOK, page(c)
}

func (c *call) refuse(format string, args ...any) { panic(refusal(fmt.Sprintf(format, args...))) }

type object map[string]any

// params are the query's parameters, which must be these and no others, each
// once: "name=value", or "name?" for one that may be missing.
func (c *call) params(want ...string) url.Values {
	q, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		c.refuse("query: %v", err)
	}
	var known []string
	for _, w := range want {
		name, value, exact := strings.Cut(w, "=")
		name, optional := strings.CutSuffix(name, "?")
		known = append(known, name)
		switch got := q[name]; {
		case len(got) == 0 && optional:
		case len(got) != 1:
			c.refuse("%s: want it once, got %q", name, got)
		case exact && got[0] != value:
			c.refuse("%s: want %q, got %q", name, value, got[0])
		case got[0] == "":
			c.refuse("%s is empty", name)
		}
	}
	for name := range q {
		if !slices.Contains(known, name) {
			c.refuse("unknown parameter %s", name)
		}
	}
	return q
}

// needs refuses a request that is not for this method and path, or lacks one of
// the headers, "Name: value".
func (c *call) needs(method, path string, headers ...string) {
	if c.r.Method != method || c.r.URL.Path != path {
		c.refuse("no route for %s %s", c.r.Method, c.r.URL.Path)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if got := c.r.Header.Values(name); len(got) != 1 || got[0] != value {
			c.refuse("%s: want %q once, got %q", name, value, got)
		}
	}
}

// body is the request's JSON object, which has these members and, perhaps, the
// optional one; all but that one are compared as JSON text.
func (c *call) body(optional string, want object) json.RawMessage {
	var got map[string]json.RawMessage
	if err := json.NewDecoder(c.r.Body).Decode(&got); err != nil {
		c.refuse("body: %v", err)
	}
	for name := range got {
		if _, known := want[name]; !known && name != optional {
			c.refuse("body.%s is not known", name)
		}
	}
	for name, value := range want {
		text, err := json.Marshal(value)
		if err != nil || string(got[name]) != string(text) {
			c.refuse("body.%s: want %s, got %s", name, text, got[name])
		}
	}
	return got[optional]
}

// number reads a parameter that counts, from least on.
func (c *call) number(q url.Values, name string, least int) int {
	if !q.Has(name) {
		return least
	}
	n, err := strconv.Atoi(q.Get(name))
	if err != nil || n < least {
		c.refuse("%s: %q is not a number from %d on", name, q.Get(name), least)
	}
	return n
}

// after is where the page behind a cursor begins: it must be one that next made.
func (c *call) after(cursor string, next func(from int) string) int {
	if cursor == "" {
		return 0
	}
	for from := 1; from <= c.items; from++ {
		if cursor == next(from) {
			return from
		}
	}
	c.refuse("the cursor %q was never handed out", cursor)
	return 0
}

// list is the page that begins at an item, and where the next one begins; 0
// when there is none.
func (c *call) list(from, size int, item func(i int) any) (page []any, next int) {
	page = []any{}
	for i := from; i < min(from+size, c.items); i++ {
		page = append(page, item(i))
	}
	if from+size < c.items {
		next = from + size
	}
	return page, next
}

func (c *call) sized(name string) string { return name + "=" + strconv.Itoa(c.size) }

func number(first, step int) func(int) string {
	return func(i int) string { return strconv.Itoa(first + i*step) }
}

func text(format string) func(int) string {
	return func(i int) string { return strconv.Quote(fmt.Sprintf(format, i)) }
}

// raw is a key as a member's value.
func raw(key string) json.RawMessage { return json.RawMessage(key) }

// APIs are the eighteen of docs/paging.md, in its order.
func APIs() []*API {
	return []*API{
		{"github", `{"method":"GET","url":"ORIGIN/repos/octo/demo/issues","query":{"state":"open"},"headers":{"Accept":"application/vnd.github+json"}}`, number(5347, -3), github},
		{"gitlab", `{"method":"GET","url":"ORIGIN/api/v4/projects/7/issues?state=opened"}`, number(900, -1), gitlab},
		{"stripe", `{"method":"GET","url":"ORIGIN/v1/charges","query":{"customer":"cus_9"}}`, text("ch_3M%03d"), stripe},
		{"slack", `{"method":"GET","url":"ORIGIN/api/conversations.list","query":{"exclude_archived":"true","types":"public_channel,private_channel"}}`, text("C0%03dAB"), slack},
		{"jira", `{"method":"GET","url":"ORIGIN/rest/agile/1.0/board?type=scrum"}`, number(84, 2), jira},
		{"notion", `{"method":"POST","url":"ORIGIN/v1/databases/d9824bdc/query","headers":{"Notion-Version":"2022-06-28"},"body":{"filter":{"property":"Done","checkbox":{"equals":true}},"page_size":SIZE}}`, text("59833787-2cf9-4fdf-8782-%012d"), notion},
		{"salesforce", `{"method":"GET","url":"ORIGIN/services/data/v60.0/query","query":{"q":"SELECT Id, Name FROM Account WHERE Name LIKE 'A%'"}}`, text("001D000000Iqh%02dIAB"), salesforce},
		{"odata", `{"method":"GET","url":"ORIGIN/v1.0/users","query":{"$filter":"accountEnabled eq true","$count":"true","$top":"SIZE"},"headers":{"ConsistencyLevel":"eventual"}}`, text("87d349ed-44d7-43e1-9a83-%012d"), odata},
		{"jsonapi", `{"method":"GET","url":"ORIGIN/articles","query":{"filter[state]":"published","page[size]":"SIZE"},"headers":{"Accept":"application/vnd.api+json"}}`, text("%d"), jsonapi},
		{"hal", `{"method":"GET","url":"ORIGIN/shop/orders","query":{"status":"shipped"},"headers":{"Accept":"application/hal+json"}}`, text("/shop/orders/%d"), hal},
		{"hydra", `{"method":"GET","url":"ORIGIN/api/books","query":{"available":"true"},"headers":{"Accept":"application/ld+json"}}`, text("/api/books/%d"), hydra},
		{"twilio", `{"method":"GET","url":"ORIGIN/2010-04-01/Accounts/AC1/Messages.json","query":{"To":"+15558675310"}}`, text("SM%032d"), twilio},
		{"kubernetes", `{"method":"GET","url":"ORIGIN/api/v1/namespaces/default/pods","query":{"labelSelector":"app=web,tier!=db"}}`, text("web-7c5ddbdf54-%05d"), kubernetes},
		{"dynamodb", `{"method":"POST","url":"ORIGIN/","headers":{"X-Amz-Target":"DynamoDB_20120810.Scan"},"body":{"Limit":SIZE,"TableName":"Thread"}}`, text("thread %d"), dynamodb},
		{"mediawiki", `{"method":"GET","url":"ORIGIN/w/api.php?action=query&format=json&list=backlinks&bltitle=Main_Page","query":{"bllimit":"SIZE"}}`, number(104, 7), mediawiki},
		{"fhir", `{"method":"GET","url":"ORIGIN/fhir/Patient","query":{"birthdate":"ge1970-01-01","_count":"SIZE"},"headers":{"Accept":"application/fhir+json"}}`, text("pat-%d"), fhir},
		{"mastodon", `{"method":"GET","url":"ORIGIN/api/v1/timelines/public?local=true"}`, func(i int) string { return strconv.Quote(number(110_000_000_000_000_999, -11)(i)) }, mastodon},
		{"sentry", `{"method":"GET","url":"ORIGIN/api/0/projects/acme/web/issues/","query":{"query":"is:unresolved"}}`, text("WEB-%d"), sentry},
	}
}

// The path changes with the second page, as it does on the real one.
func github(c *call) any {
	first, later := "/repos/octo/demo/issues", "/repositories/1000/issues"
	c.needs("GET", map[bool]string{false: first, true: later}[c.r.URL.Query().Has("page")], "Accept: application/vnd.github+json")
	if c.r.UserAgent() == "" || strings.HasPrefix(c.r.UserAgent(), "Go-http-client") {
		c.refuse("a User-Agent is required")
	}
	n := c.number(c.params("state=open", c.sized("per_page"), "page?"), "page", 1)
	page, next := c.list((n-1)*c.size, c.size, func(i int) any {
		return object{"number": raw(number(5347, -3)(i)), "title": fmt.Sprintf("issue | %d", i), "user": object{"login": "ada"}}
	})
	link := func(n int, rel string) string {
		return fmt.Sprintf(`<%s%s?state=open&per_page=%d&page=%d>; rel="%s"`, c.origin, later, c.size, n, rel)
	}
	var links []string
	if n > 1 {
		links = append(links, link(n-1, "prev"), link(1, "first"))
	}
	if next > 0 {
		links = append(links, link(n+1, "next"), link((c.items+c.size-1)/c.size, "last"))
	}
	c.header.Set("Link", strings.Join(links, ", "))
	return page
}

func gitlab(c *call) any {
	c.needs("GET", "/api/v4/projects/7/issues")
	n := c.number(c.params("state=opened", c.sized("per_page"), "page?"), "page", 1)
	page, next := c.list((n-1)*c.size, c.size, func(i int) any {
		return object{"id": i, "iid": raw(number(900, -1)(i)), "title": "t"}
	})
	c.header.Set("X-Page", strconv.Itoa(n))
	c.header.Set("X-Total", strconv.Itoa(c.items))
	c.header.Set("X-Next-Page", "") // there on the last page too, and empty
	if next > 0 {
		c.header.Set("X-Next-Page", strconv.Itoa(n+1))
	}
	return page
}

func stripe(c *call) any {
	c.needs("GET", "/v1/charges")
	q := c.params("customer=cus_9", c.sized("limit"), "starting_after?")
	id := func(i int) string { return fmt.Sprintf("ch_3M%03d", i) }
	from := c.after(q.Get("starting_after"), func(from int) string { return id(from - 1) })
	page, next := c.list(from, c.size, func(i int) any {
		return object{"id": id(i), "object": "charge", "amount": 2099, "currency": "eur"}
	})
	return object{"object": "list", "url": "/v1/charges", "has_more": next > 0, "data": page}
}

// The third page is short: Slack filters after it has paged.
func slack(c *call) any {
	c.needs("GET", "/api/conversations.list")
	q := c.params("exclude_archived=true", "types=public_channel,private_channel", c.sized("limit"), "cursor?")
	cursor := func(from int) string {
		return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "team:C0%03d", from))
	}
	from, size := c.after(q.Get("cursor"), cursor), c.size
	if from == 2*size {
		size -= 3
	}
	page, next := c.list(from, size, func(i int) any { return object{"id": fmt.Sprintf("C0%03dAB", i), "name": "general"} })
	meta := object{"next_cursor": ""}
	if next > 0 {
		meta["next_cursor"] = cursor(next)
	}
	return object{"ok": true, "channels": page, "response_metadata": meta}
}

func jira(c *call) any {
	c.needs("GET", "/rest/agile/1.0/board")
	from := c.number(c.params("type=scrum", c.sized("maxResults"), "startAt?"), "startAt", 0)
	page, next := c.list(from, c.size, func(i int) any {
		return object{"id": raw(number(84, 2)(i)), "name": "board", "type": "scrum"}
	})
	return object{"maxResults": c.size, "startAt": from, "total": c.items, "isLast": next == 0, "values": page}
}

func notion(c *call) any {
	c.needs("POST", "/v1/databases/d9824bdc/query", "Notion-Version: 2022-06-28", "Content-Type: application/json")
	c.params()
	cursor := c.body("start_cursor", object{"filter": json.RawMessage(`{"property":"Done","checkbox":{"equals":true}}`), "page_size": c.size})
	next := func(from int) string { return text("33e19cb9-751f-4993-b74d-%012d")(from) }
	from := c.after(string(cursor), next) // null is refused, as on the real one
	page, more := c.list(from, c.size, func(i int) any {
		return object{"object": "page", "id": raw(text("59833787-2cf9-4fdf-8782-%012d")(i)), "last_edited_time": "2026-03-01T19:05:00.000Z"}
	})
	out := object{"object": "list", "results": page, "next_cursor": nil, "has_more": more > 0, "type": "page_or_database"}
	if more > 0 {
		out["next_cursor"] = raw(next(more))
	}
	return out
}

// The filter is the API's own matter after the first page.
func salesforce(c *call) any {
	const base = "/services/data/v60.0/query"
	from := 0
	if c.r.URL.Path == base {
		c.needs("GET", base)
		c.params("q=SELECT Id, Name FROM Account WHERE Name LIKE 'A%'")
	} else {
		c.needs("GET", c.r.URL.Path)
		c.params()
		from = c.after(strings.TrimPrefix(c.r.URL.Path, base+"/"), func(from int) string { return fmt.Sprintf("01gD0000002HU6KIAW-%d", from) })
	}
	page, next := c.list(from, c.size, func(i int) any {
		return object{"attributes": object{"type": "Account"}, "Id": fmt.Sprintf("001D000000Iqh%02dIAB", i), "Name": "Acme"}
	})
	out := object{"totalSize": c.items, "done": next == 0, "records": page}
	if next > 0 {
		out["nextRecordsUrl"] = fmt.Sprintf("%s/01gD0000002HU6KIAW-%d", base, next)
	}
	return out
}

// The count is in the first answer only.
func odata(c *call) any {
	c.needs("GET", "/v1.0/users", "ConsistencyLevel: eventual")
	q := c.params("$filter=accountEnabled eq true", "$count=true", "$top="+strconv.Itoa(c.size), "$skiptoken?")
	token := func(from int) string { return fmt.Sprintf("RFNwdAIAAQ+/%d==", from) }
	from := c.after(q.Get("$skiptoken"), token)
	page, next := c.list(from, c.size, func(i int) any {
		return object{"id": fmt.Sprintf("87d349ed-44d7-43e1-9a83-%012d", i), "displayName": "Ada"}
	})
	out := object{"@odata.context": c.origin + "/v1.0/$metadata#users", "value": page}
	if from == 0 {
		out["@odata.count"] = c.items
	}
	if next > 0 {
		out["@odata.nextLink"] = c.origin + "/v1.0/users?$filter=accountEnabled%20eq%20true&$count=true&$top=" + strconv.Itoa(c.size) + "&$skiptoken=" + url.QueryEscape(token(next))
	}
	return out
}

// Every other next link is an object with href.
func jsonapi(c *call) any {
	c.needs("GET", "/articles", "Accept: application/vnd.api+json")
	n := c.number(c.params("filter[state]=published", c.sized("page[size]"), "page[number]?"), "page[number]", 1)
	page, next := c.list((n-1)*c.size, c.size, func(i int) any {
		return object{"type": "articles", "id": strconv.Itoa(i), "attributes": object{"title": "Rails is Omakase"}}
	})
	links := object{"self": c.origin + c.r.URL.RequestURI(), "next": nil}
	if next > 0 {
		u := fmt.Sprintf("%s/articles?filter%%5Bstate%%5D=published&page%%5Bnumber%%5D=%d&page%%5Bsize%%5D=%d", c.origin, n+1, c.size)
		links["next"] = u
		if n%2 == 0 {
			links["next"] = object{"href": u, "meta": object{"page": n + 1}}
		}
	}
	c.header.Set("Content-Type", "application/vnd.api+json")
	return object{"jsonapi": object{"version": "1.1"}, "links": links, "data": page}
}

// The link is relative to the folder of the page.
func hal(c *call) any {
	c.needs("GET", "/shop/orders", "Accept: application/hal+json")
	n := c.number(c.params("status=shipped", "page?"), "page", 1)
	page, next := c.list((n-1)*c.size, c.size, func(i int) any {
		return object{"_links": object{"self": object{"href": fmt.Sprintf("/shop/orders/%d", i)}}, "total": 30.0, "status": "shipped"}
	})
	links := object{"self": object{"href": c.r.URL.RequestURI()}, "find": object{"href": "/shop/orders{?id}", "templated": true}}
	if next > 0 {
		links["next"] = object{"href": fmt.Sprintf("orders?status=shipped&page=%d", n+1)}
	}
	c.header.Set("Content-Type", "application/hal+json")
	return object{"_links": links, "currentlyProcessing": 14, "_embedded": object{"order": page}}
}

func hydra(c *call) any {
	c.needs("GET", "/api/books", "Accept: application/ld+json")
	n := c.number(c.params("available=true", "page?"), "page", 1)
	page, next := c.list((n-1)*c.size, c.size, func(i int) any {
		return object{"@id": fmt.Sprintf("/api/books/%d", i), "@type": "Book", "name": "n"}
	})
	at := func(n int) string { return fmt.Sprintf("/api/books?available=true&page=%d", n) }
	view := object{"@id": at(n), "@type": "hydra:PartialCollectionView", "hydra:first": at(1)}
	if next > 0 {
		view["hydra:next"] = at(n + 1)
	}
	c.header.Set("Content-Type", "application/ld+json; charset=utf-8")
	return object{"@context": "/api/contexts/Book", "@type": "hydra:Collection", "hydra:totalItems": c.items, "hydra:member": page, "hydra:view": view}
}

func twilio(c *call) any {
	const path = "/2010-04-01/Accounts/AC1/Messages.json"
	c.needs("GET", path)
	q := c.params("To=+15558675310", c.sized("PageSize"), "Page?", "PageToken?")
	token := func(from int) string { return fmt.Sprintf("PASM%d", from) }
	from := c.after(q.Get("PageToken"), token)
	if n := c.number(q, "Page", 0); n*c.size != from {
		c.refuse("Page %d is not at %s", n, q.Get("PageToken"))
	}
	page, next := c.list(from, c.size, func(i int) any {
		return object{"sid": raw(text("SM%032d")(i)), "body": "Hi", "status": "delivered", "to": "+15558675310"}
	})
	out := object{"messages": page, "page": from / c.size, "page_size": c.size, "uri": c.r.URL.RequestURI(), "next_page_uri": nil}
	if next > 0 {
		out["next_page_uri"] = fmt.Sprintf("%s?To=%%2B15558675310&PageSize=%d&Page=%d&PageToken=%s", path, c.size, next/c.size, token(next))
	}
	return out
}

func kubernetes(c *call) any {
	c.needs("GET", "/api/v1/namespaces/default/pods")
	q := c.params("labelSelector=app=web,tier!=db", c.sized("limit"), "continue?")
	token := func(from int) string {
		return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `{"v":"meta.k8s.io/v1","rv":7,"start":"web-%d\u0000"}`, from))
	}
	from := c.after(q.Get("continue"), token)
	page, next := c.list(from, c.size, func(i int) any {
		return object{"metadata": object{"name": fmt.Sprintf("web-7c5ddbdf54-%05d", i)}, "status": object{"phase": "Running"}}
	})
	meta := object{"resourceVersion": "7"}
	if next > 0 {
		meta["continue"], meta["remainingItemCount"] = token(next), c.items-next
	}
	return object{"kind": "PodList", "apiVersion": "v1", "metadata": meta, "items": page}
}

// The second page is empty, with a key: Scan filters after it has read. The key
// holds a number past 53 bits, which must come back to the digit.
func dynamodb(c *call) any {
	c.needs("POST", "/", "X-Amz-Target: DynamoDB_20120810.Scan", "Content-Type: application/json")
	c.params()
	key := func(from int, of string) json.RawMessage {
		return raw(fmt.Sprintf(`{"Id":{"S":"thread %d%s"},"At":{"N":"9007199254740993"},"Raw":90071992547409930%d}`, from, of, from))
	}
	got := string(c.body("ExclusiveStartKey", object{"Limit": c.size, "TableName": "Thread"}))
	if got == string(key(c.size, "")) {
		return object{"Count": 0, "ScannedCount": c.size, "Items": []any{}, "LastEvaluatedKey": key(c.size, " filtered")}
	}
	from := c.after(strings.Replace(got, " filtered", "", 1), func(from int) string { return string(key(from, "")) })
	page, next := c.list(from, c.size, func(i int) any {
		return object{"Id": object{"S": fmt.Sprintf("thread %d", i)}, "PostedBy": object{"S": "ada"}}
	})
	out := object{"Count": len(page), "ScannedCount": len(page), "Items": page}
	if next > 0 {
		out["LastEvaluatedKey"] = key(next, "")
	}
	return out
}

func mediawiki(c *call) any {
	c.needs("GET", "/w/api.php")
	q := c.params("action=query", "format=json", "list=backlinks", "bltitle=Main_Page", c.sized("bllimit"), "blcontinue?", "continue?")
	cursor := func(from int) string { return fmt.Sprintf("0|%d", from) }
	from := c.after(q.Get("blcontinue"), cursor)
	if want := map[bool]string{true: "-||"}[from > 0]; q.Get("continue") != want {
		c.refuse("continue %q does not belong to blcontinue %q", q.Get("continue"), q.Get("blcontinue"))
	}
	page, next := c.list(from, c.size, func(i int) any {
		return object{"pageid": raw(number(104, 7)(i)), "ns": 0, "title": "T"}
	})
	out := object{"query": object{"backlinks": page}}
	if next > 0 {
		out["continue"] = object{"blcontinue": cursor(next), "continue": "-||"}
	} else {
		out["batchcomplete"] = ""
	}
	return out
}

// The following pages are at the base, under the id of the search.
func fhir(c *call) any {
	from := 0
	if c.r.URL.Path == "/fhir" {
		c.needs("GET", "/fhir", "Accept: application/fhir+json")
		from = c.number(c.params("_getpages=5c3c6cd7", "_getpagesoffset?", c.sized("_count"), "_bundletype=searchset"), "_getpagesoffset", 1)
	} else {
		c.needs("GET", "/fhir/Patient", "Accept: application/fhir+json")
		c.params("birthdate=ge1970-01-01", c.sized("_count"))
	}
	page, next := c.list(from, c.size, func(i int) any {
		id := fmt.Sprintf("pat-%d", i)
		return object{"fullUrl": c.origin + "/fhir/Patient/" + id, "resource": object{"resourceType": "Patient", "id": id, "birthDate": "1974-12-25"}}
	})
	links := []any{object{"relation": "self", "url": c.origin + c.r.URL.RequestURI()}}
	if next > 0 {
		links = append(links, object{"relation": "next", "url": fmt.Sprintf("%s/fhir?_getpages=5c3c6cd7&_getpagesoffset=%d&_count=%d&_bundletype=searchset", c.origin, next, c.size)})
	}
	c.header.Set("Content-Type", "application/fhir+json;charset=UTF-8")
	return object{"resourceType": "Bundle", "type": "searchset", "total": c.items, "link": links, "entry": page}
}

// A full page always has a next link; the one after the last is empty and has none.
func mastodon(c *call) any {
	const path = "/api/v1/timelines/public"
	c.needs("GET", path)
	q := c.params("local=true", c.sized("limit"), "max_id?")
	id := number(110_000_000_000_000_999, -11)
	from := c.after(q.Get("max_id"), func(from int) string { return id(from - 1) })
	page, _ := c.list(from, c.size, func(i int) any {
		return object{"id": id(i), "content": "<p>hello</p>", "account": object{"acct": "ada"}}
	})
	if len(page) == c.size {
		c.header.Add("Link", fmt.Sprintf(`<%s%s?local=true&limit=%d&max_id=%s>; rel="next", <%s%s?local=true&limit=%d&min_id=%s>; rel="prev"`,
			c.origin, path, c.size, id(from+len(page)-1), c.origin, path, c.size, id(from)))
	}
	return page
}

// The header always names a next page.
func sentry(c *call) any {
	const path = "/api/0/projects/acme/web/issues/"
	c.needs("GET", path)
	q := c.params("query=is:unresolved", "cursor?")
	cursor := func(from int) string { return fmt.Sprintf("1443575000000:%d:0", from) }
	from := c.after(q.Get("cursor"), cursor)
	page, next := c.list(from, c.size, func(i int) any {
		return object{"shortId": fmt.Sprintf("WEB-%d", i), "title": "TypeError", "count": "17"}
	})
	link := func(from int, rel string, results bool) string {
		return fmt.Sprintf(`<%s%s?query=is%%3Aunresolved&cursor=%s>; rel="%s"; results="%t"; cursor="%s"`, c.origin, path, cursor(from), rel, results, cursor(from))
	}
	c.header.Set("Link", link(max(from-c.size, 0), "previous", from > 0)+", "+link(from+c.size, "next", next > 0))
	return page
}

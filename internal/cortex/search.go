package cortex

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// Bounds of Query.Limit.
const (
	DefaultLimit = 5
	MaxLimit     = 50
)

// candidates are the best chunks of one pass, from which pages are chosen.
const candidates = 200

// tooCommon is the number of chunks above which a word alone is no reason to
// look at a chunk: weighing a thousand takes about 5 ms.
const tooCommon = 4000

// What a match is worth in the title, the headings, the text, and as a part or
// another form of a word (docs/cortex.md says how it was chosen).
const bm25 = "bm25(words, 4.0, 2.0, 1.0, 0.5)"

// A page read just now scores up to recencyBonus more than one read long ago;
// the bonus halves with every recencyHalf.
const (
	recencyBonus = 0.1
	recencyHalf  = 30 * 24 * time.Hour
)

// A Query asks for pages. Everything but Text may be left out.
type Query struct {
	Text    string    // plain words; "quoted words" must stand together
	Wrapper string    // only what this wrapper read
	Host    string    // only from this host, as in Page.Host
	Since   time.Time // only what was read then or later
	Limit   int       // pages; default DefaultLimit, at most MaxLimit
}

// A Hit is a page that was found, by its best chunk. All of it is data from
// outside.
type Hit struct {
	Wrapper string
	Key     string // as in Page.Key
	Title   string
	URL     string
	Host    string
	At      time.Time // when it was read, UTC, milliseconds
	Heading string    // headings above the chunk, outermost first, separated by " > "
	Snippet string    // one line of Markdown around the match, at most about 300 characters; **matched** words are marked
	Score   float64   // higher is better; comparable within one answer only
}

// Search returns the pages that have all words of the question, best first,
// and if they are fewer than the limit, then those that have some. If there is
// none, words are looked for inside longer words too. A question without a
// word is ARGS_INVALID; other errors are CORTEX_UNAVAILABLE, CORTEX_TIMEOUT
// and CALL_CANCELLED.
func (x *Index) Search(ctx context.Context, q Query) ([]Hit, error) {
	if q.Limit <= 0 {
		q.Limit = DefaultLimit
	}
	q.Limit = min(q.Limit, MaxLimit)
	p := parse(q.Text)
	if len(p.units) == 0 {
		return nil, fault.New("ARGS_INVALID", "the query has no word to search for").With(fault.Field("query"),
			fault.Hint("Search for a few words that stand in the document, or a name or id from it."))
	}
	var hits []Hit
	err := x.use(ctx, false, false, "searching the index", func(db *sql.DB) error {
		s := search{ctx: ctx, db: db, q: q, p: p, now: x.o.Now(), seen: map[int64]bool{}}
		if err := s.run(); err != nil {
			return err
		}
		var err error
		hits, err = s.load()
		return err
	})
	return hits, err
}

type match struct {
	chunk int64
	score float64
}

// A search is the work of one Search.
type search struct {
	ctx  context.Context
	db   *sql.DB
	q    Query
	p    question
	now  time.Time
	seen map[int64]bool // pages
	best []match        // the best chunk of each page, best page first
}

func (s *search) run() error {
	all := s.p.all()
	if err := s.words(all); err != nil {
		return err
	}
	if len(s.best) < s.q.Limit {
		loose, err := s.p.loose(s.common)
		if err != nil {
			return err
		}
		if loose != all {
			if err := s.words(loose); err != nil {
				return err
			}
		}
	}
	if len(s.best) == 0 {
		return s.inside()
	}
	return nil
}

// words adds the pages that match an FTS5 expression.
func (s *search) words(expr string) error {
	where, args := s.filter()
	rows, err := s.db.QueryContext(s.ctx, `SELECT words.rowid, p.at, -`+bm25+` AS score FROM words CROSS JOIN pages p ON p.id = words.rowid >> 12
		WHERE words MATCH ?`+where+` ORDER BY score DESC, words.rowid DESC LIMIT ?`, append(append([]any{expr}, args...), candidates)...)
	return s.collect(rows, err)
}

// common reports whether at least tooCommon chunks match an expression.
func (s *search) common(expr string) (bool, error) {
	var n int
	err := s.db.QueryRowContext(s.ctx, "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)", expr, tooCommon).Scan(&n)
	return n >= tooCommon, err
}

// inside adds the pages that have the longest word of the question somewhere
// inside a word. It reads every text and is the last resort.
func (s *search) inside() error {
	longest := ""
	for _, w := range s.p.longer {
		if len(w) > len(longest) {
			longest = w
		}
	}
	if len(longest) < 3 || slices.ContainsFunc(s.p.units, func(u unit) bool { return u.phrase }) {
		return nil
	}
	where, args := s.filter()
	like := "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(longest) + "%"
	rows, err := s.db.QueryContext(s.ctx, `SELECT c.id, p.at, 1.0 FROM chunks c CROSS JOIN pages p ON p.id = c.id >> 12
		WHERE (c.text LIKE ? ESCAPE '\' OR p.title LIKE ? ESCAPE '\')`+where+` ORDER BY c.id DESC LIMIT ?`, append(append([]any{like, like}, args...), candidates)...)
	s.p.marks.inside = longest
	return s.collect(rows, err)
}

func (s *search) filter() (where string, args []any) {
	if s.q.Wrapper != "" {
		where, args = where+" AND p.wrapper = ?", append(args, s.q.Wrapper)
	}
	if s.q.Host != "" {
		where, args = where+" AND p.host = ?", append(args, strings.ToLower(s.q.Host))
	}
	if !s.q.Since.IsZero() {
		where, args = where+" AND p.at >= ?", append(args, s.q.Since.UnixMilli())
	}
	return where, args
}

// collect adds the best chunk of each page that is not there yet, up to the
// limit.
func (s *search) collect(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	var found []match
	for rows.Next() {
		var m match
		var at int64
		if err := rows.Scan(&m.chunk, &at, &m.score); err != nil {
			return err
		}
		age := max(s.now.Sub(time.UnixMilli(at)), 0)
		m.score *= 1 + recencyBonus*math.Exp2(-float64(age)/float64(recencyHalf))
		found = append(found, m)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	slices.SortStableFunc(found, func(a, b match) int { return cmp.Compare(b.score, a.score) })
	for _, m := range found {
		if page := m.chunk >> chunkBits; !s.seen[page] && len(s.best) < s.q.Limit {
			s.seen[page] = true
			s.best = append(s.best, m)
		}
	}
	return nil
}

// load reads what is shown of the pages that were found.
func (s *search) load() ([]Hit, error) {
	hits := make([]Hit, 0, len(s.best))
	for _, m := range s.best {
		h := Hit{Score: m.score}
		var at int64
		var text string
		err := s.db.QueryRowContext(s.ctx, `SELECT p.wrapper, p.key, p.title, p.url, p.host, p.at, c.heading, c.text FROM chunks c JOIN pages p ON p.id = c.id >> 12 WHERE c.id = ?`, m.chunk).
			Scan(&h.Wrapper, &h.Key, &h.Title, &h.URL, &h.Host, &at, &h.Heading, &text)
		if err != nil {
			return nil, err
		}
		h.At = time.UnixMilli(at).UTC()
		h.Snippet = snippet(text, s.p.marks)
		hits = append(hits, h)
	}
	return hits, nil
}

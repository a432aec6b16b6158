package cortex

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Bounds of a question. What is beyond is left out, because a model sends what
// it was given and a long question is better answered than refused.
const (
	maxQueryBytes = 4000
	maxUnits      = 32 // words and phrases that are searched
	minPrefix     = 5  // characters of a word from which on longer words are looked for, if not all words are found
)

// A unit is one thing that a question asks for: a word, a joined word such as
// orders.create, a run of a script without spaces, or a quoted phrase.
type unit struct {
	must   string // FTS5 expression for "this is there"
	any    string // the same for "some of this is there"
	begins string // the same for longer words that begin so; "" for none
	phrase bool   // quoted: there is no hit without it
	stop   bool   // says nothing about what is looked for
}

// A question is a parsed query.
type question struct {
	units  []unit
	marks  marks
	longer []string // words as they were written, for the search inside words
}

// marks are what a snippet shows as found.
type marks struct {
	words  map[string]int // folded words, stems and parts, to the number of their unit
	pairs  map[string]int // of scripts without spaces
	inside string         // what was found inside longer words; "" if nothing was
}

// parse reads what a person or a model wrote. Nothing in it is an operator
// except a pair of quotation marks, and nothing of it reaches SQLite that is
// not a quoted word.
func parse(text string) question {
	q := question{marks: marks{words: map[string]int{}, pairs: map[string]int{}}}
	text = norm.NFKC.String(clean(clip(text, maxQueryBytes)))
	text = strings.Map(func(r rune) rune {
		switch r {
		case '“', '”', '„', '«', '»':
			return '"'
		case '’', '\n':
			return map[rune]rune{'’': '\'', '\n': ' '}[r]
		}
		return r
	}, text)
	fields := strings.Split(text, `"`)
	for i, f := range fields {
		if i%2 == 1 && i < len(fields)-1 {
			q.phrase(f)
			continue
		}
		for _, token := range strings.Fields(f) {
			q.token(token)
		}
	}
	// Words that say nothing are needed when there is nothing else.
	if slices.ContainsFunc(q.units, func(u unit) bool { return !u.stop }) {
		maps.DeleteFunc(q.marks.words, func(_ string, n int) bool { return q.units[n].stop })
		q.units = slices.DeleteFunc(q.units, func(u unit) bool { return u.stop })
	}
	q.units = q.units[:min(len(q.units), maxUnits)]
	return q
}

func (q *question) phrase(s string) {
	var ws []string
	wordsOf(s, func(w word) bool {
		if w.unspaced {
			ws = append(ws, q.run(s[w.start:w.end])...)
			return true
		}
		f := fold(s[w.start:w.end])
		q.marks.words[f] = len(q.units)
		ws = append(ws, f)
		return true
	})
	if len(ws) > 0 {
		e := "{title heading text} : " + quote(strings.Join(ws, " ")) // not the other forms of words
		q.units = append(q.units, unit{must: e, any: e, phrase: true})
	}
}

// token adds the units of a piece of the question between two spaces.
func (q *question) token(s string) {
	s = strings.TrimSuffix(s, "'s")
	var joined, all, some []string // of the words of the token
	wordsOf(s, func(w word) bool {
		written := s[w.start:w.end]
		if w.unspaced {
			must, any := q.unspaced(written)
			all, some = append(all, must), append(some, any)
			joined = nil
			return true
		}
		f := fold(written)
		must, any := q.word(written)
		joined, all, some = append(joined, f), append(all, must), append(some, any)
		return len(all) < maxUnits
	})
	switch len(all) {
	case 0:
	case 1:
		u := unit{must: all[0], any: some[0]}
		if len(joined) == 1 {
			u.stop, u.begins = stopWords[joined[0]], begins(joined[0])
		}
		q.units = append(q.units, u)
	default:
		u := unit{must: and(all), any: or(some)}
		if len(joined) == len(all) {
			p := quote(strings.Join(joined, " "))
			u.must, u.any = or([]string{p, u.must}), or([]string{p, u.any})
		}
		q.units = append(q.units, u)
	}
}

// begins is the expression for the words that begin with a folded word, such
// as Bewerbungsunterlagen for Bewerbungen; "" if it is too short for that.
func begins(f string) string {
	if s := stem(f); utf8.RuneCountInString(s) >= minPrefix && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) }) {
		return quote(s) + " *"
	}
	return ""
}

// word is the expressions for one word in all its forms.
func (q *question) word(written string) (must, any string) {
	n := len(q.units)
	f := fold(written)
	forms := unique([]string{f, stem(f)})
	var all []string
	for _, p := range parts(written) {
		pf := unique([]string{p, stem(p)})
		all = append(all, or(quoteAll(pf)))
		for _, s := range pf {
			q.marks.words[s] = n
		}
	}
	for _, s := range forms {
		q.marks.words[s] = n
	}
	q.longer = append(q.longer, f)
	alts := quoteAll(forms)
	if len(all) > 0 { // of an identifier all pieces, because each alone is mostly a common word
		alts = append(alts, and(all))
		return or(alts), or(alts)
	}
	return or(alts), or(alts)
}

// unspaced is the expressions for a run of a script without spaces: all of it
// in this order, or some pairs of it.
func (q *question) unspaced(run string) (must, any string) {
	ps := q.run(run)
	if len([]rune(run)) == 1 {
		e := quote(ps[0]) + " *"
		return e, e
	}
	must = quote(strings.Join(ps, " "))
	// Pairs of hiragana are mostly grammar.
	some := slices.DeleteFunc(slices.Clone(ps), func(p string) bool {
		return strings.IndexFunc(p, func(r rune) bool { return !unicode.Is(unicode.Hiragana, r) }) < 0
	})
	if len(some) == 0 {
		some = ps
	}
	some = unique(some)
	return must, or(quoteAll(some[:min(len(some), 2*maxUnits)]))
}

// run is the pairs to search for one run, and notes them as marks.
func (q *question) run(run string) []string {
	ps := pairs(run)
	if len(ps) > 1 {
		ps = ps[:len(ps)-1] // the last is one character, which begins any pair
	}
	for _, p := range ps {
		q.marks.pairs[p] = len(q.units)
	}
	return ps
}

// all is the expression for what has everything.
func (q question) all() string {
	var es []string
	for _, u := range q.units {
		es = append(es, u.must)
	}
	return and(es)
}

// loose is the expression for what has every phrase, or without a phrase one of
// the words. Words for which common says that very many chunks have them count,
// but do not suffice: to weigh each of those chunks takes too long.
func (q question) loose(common func(expr string) (bool, error)) (string, error) {
	var phrases, rare, frequent []string
	for _, u := range q.units {
		if u.phrase {
			phrases = append(phrases, u.must)
			continue
		}
		yes, err := common(u.any)
		switch {
		case err != nil:
			return "", err
		case yes:
			frequent = append(frequent, u.any)
		case u.begins != "":
			rare = append(rare, or([]string{u.any, u.begins}))
		default:
			rare = append(rare, u.any)
		}
	}
	need, more := or(rare), frequent
	switch {
	case len(phrases) > 0:
		need, more = and(phrases), append(rare, frequent...)
	case len(rare) == 0:
		need, more = or(frequent), nil
	}
	if len(more) == 0 {
		return need, nil
	}
	return or([]string{need, and([]string{need, or(more)})}), nil
}

func quote(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

func quoteAll(ss []string) []string {
	out := make([]string, len(ss))
	for i, s := range ss {
		out[i] = quote(s)
	}
	return out
}

func and(es []string) string { return join(es, " AND ") }
func or(es []string) string  { return join(es, " OR ") }

func join(es []string, op string) string {
	if len(es) == 1 {
		return es[0]
	}
	return "(" + strings.Join(es, op) + ")"
}

// stopWords say nothing about what is looked for; they are left out of a
// question that has other words. Folded; English, German, Spanish, French.
var stopWords = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`
		a about all am an and any are as at be been but by can could did do does for from get had has have how i if in into is it its
		me my not of on or our should so tell that the their them there they this to us was we were what when where which who whose why will with would you your
		aber als am an auf aus bei bin bis das dass dem den der des die durch ein eine einem einen einer es fur gab gibt hat haben hatte ich im ist man mit nach nicht
		oder seit sich sind uber um und uns unser unsere vom von vor wann war warum was welche welchen welcher welches wenn wer werden wie wir wird wo wurde wurden zu zum zur
		al como con cual cuales cuando de del donde el en era es esta este fue ha hay la las lo los mas no nos para pero por porque que quien se ser si sin sobre son su sus un una y
		au aux avec ce ces cette comment dans des du elle est et il je le les mais ne nous ou par pas pour pourquoi quand quel quelle qui sa ses sont sur une vous`) {
		m[w] = true
	}
	return m
}()

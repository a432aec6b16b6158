package api

import (
	"strconv"
	"time"
)

// Bounds of a search of the local index.
const (
	RecallDefault  = 5    // documents, when a search does not say
	RecallMost     = 50   // documents
	MaxRecallQuery = 4000 // bytes of the question
)

// RecallRequest is the query of GET /wrap/recall.
type RecallRequest struct {
	Query   string `json:"query"`             // plain words; "quoted words" stand together
	Wrapper string `json:"wrapper,omitempty"` // only what this one read
	Since   string `json:"since,omitempty"`   // only what was read then or later: a day, a time (RFC 3339), or an age such as 12h or 7d
	Limit   int    `json:"limit,omitempty"`   // 1 to RecallMost; 0: RecallDefault
}

// RecallResult answers GET /wrap/recall: what wrappers have read before, best
// first. All of its text is from outside.
type RecallResult struct {
	OK        bool             `json:"ok"`
	Documents []RecallDocument `json:"documents"`
	Note      string           `json:"note,omitempty"` // why there may be nothing
}

// A RecallDocument is one document that was found.
type RecallDocument struct {
	Wrapper string  `json:"wrapper"`
	Key     string  `json:"key"` // the record's id, or what stands for it
	Title   string  `json:"title"`
	URL     string  `json:"url"`               // of the request, without credentials
	ReadAt  string  `json:"readAt"`            // RFC 3339, UTC
	Age     int64   `json:"ageSeconds"`        // since then
	Heading string  `json:"heading,omitempty"` // of the part that was found, outermost first
	Snippet string  `json:"snippet"`           // one line of Markdown, matches in bold, all else escaped
	Score   float64 `json:"score"`             // of this answer only; higher is better
}

// AgeText is the age in words, such as "3 hours ago".
func (d *RecallDocument) AgeText() string {
	age := time.Duration(d.Age) * time.Second
	for _, u := range []struct {
		one  time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}} {
		if n := int(age / u.one); n == 1 {
			return "1 " + u.name + " ago"
		} else if n > 1 {
			return strconv.Itoa(n) + " " + u.name + "s ago"
		}
	}
	return "just now"
}

package cortex

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// Bounds of a page, in bytes. What is beyond is left out: an answer is at most
// 5 MB, and a page is one document of it.
const (
	maxText  = 4_000_000
	maxTitle = 1000
	maxURL   = 8000
)

// batch is how many pages are stored in one transaction; Search waits for one.
const batch = 50

// A Page is one document that a wrapper read. Text and Title must be scrubbed
// of credentials already.
type Page struct {
	Wrapper string    // its id; required
	Key     string    // the record's id; "" for URL and title. The same key of the same wrapper replaces the older page
	Title   string    // plain text
	URL     string    // of the request, without what must not be kept
	Host    string    // of the request; compared without case
	Text    string    // Markdown
	At      time.Time // when it was read; default now
}

// Add stores pages, each replacing the one with its wrapper and key, and then
// removes the oldest pages if the file is above its limit. It returns how many
// are stored, also beside an error: CORTEX_UNAVAILABLE, CORTEX_TIMEOUT or
// CALL_CANCELLED. What Add has returned survives the death of the process; a
// power cut may take the last few seconds.
func (x *Index) Add(ctx context.Context, pages []Page) (int, error) {
	stored := 0
	for len(pages) > 0 {
		part := pages[:min(len(pages), batch)]
		pages = pages[len(part):]
		rows := make([]row, len(part))
		for i, p := range part {
			if p.Wrapper == "" {
				return stored, fault.New("INTERNAL", "a page without a wrapper cannot be indexed")
			}
			rows[i] = x.row(p)
		}
		err := x.use(ctx, true, true, fmt.Sprintf("indexing %d documents", len(part)), func(db *sql.DB) error {
			if err := put(ctx, db, rows); err != nil {
				return err
			}
			return x.trim(ctx, db)
		})
		if err != nil {
			return stored, err
		}
		stored += len(part)
	}
	return stored, nil
}

// A row is a page as it is stored.
type row struct {
	Page
	digest []byte
	chunks []chunk
}

func (x *Index) row(p Page) row {
	if p.At.IsZero() {
		p.At = x.o.Now()
	}
	p.Wrapper, p.Key = clean(p.Wrapper), clean(p.Key)
	p.Title = clip(strings.Join(strings.Fields(clean(p.Title)), " "), maxTitle)
	p.URL = clip(clean(p.URL), maxURL)
	p.Host = strings.ToLower(clean(p.Host))
	p.Text = clean(clip(p.Text, maxText))
	if p.Key == "" {
		p.Key = p.URL + "\n" + p.Title
	}
	if len(p.Key) > maxTitle {
		sum := sha256.Sum256([]byte(p.Key))
		p.Key = clip(p.Key, maxTitle-2*sha256.Size-3) + fmt.Sprintf("...%x", sum)
	}
	return row{Page: p, digest: digest(p.Title, p.URL, p.Host, p.Text)}
}

func digest(parts ...string) []byte {
	h := sha256.New()
	for _, p := range parts {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return h.Sum(nil)
}

// put stores rows in one transaction.
func put(ctx context.Context, db *sql.DB, rows []row) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit there is nothing to undo
	for i := range rows {
		if err := putRow(ctx, tx, &rows[i]); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func putRow(ctx context.Context, tx *sql.Tx, r *row) error {
	var id int64
	var old []byte
	err := tx.QueryRowContext(ctx, "SELECT id, digest FROM pages WHERE wrapper = ? AND key = ?", r.Wrapper, r.Key).Scan(&id, &old)
	switch {
	case errors.Is(err, sql.ErrNoRows):
	case err != nil:
		return err
	case string(old) == string(r.digest):
		_, err := tx.ExecContext(ctx, "UPDATE pages SET at = ? WHERE id = ?", r.At.UnixMilli(), id)
		return err
	default:
		if err := remove(ctx, tx, id); err != nil {
			return err
		}
	}
	// A new id for a new version, so that ids are in the order of reading.
	res, err := tx.ExecContext(ctx, "INSERT INTO pages (wrapper, key, title, url, host, at, digest) VALUES (?, ?, ?, ?, ?, ?, ?)",
		r.Wrapper, r.Key, r.Title, r.URL, r.Host, r.At.UnixMilli(), r.digest)
	if err != nil {
		return err
	}
	if id, err = res.LastInsertId(); err != nil {
		return err
	}
	if r.chunks == nil {
		r.chunks = split(r.Text)
	}
	for i, c := range r.chunks {
		if err := putChunk(ctx, tx, id<<chunkBits|int64(i), r.Title, c); err != nil {
			return err
		}
	}
	return nil
}

func putChunk(ctx context.Context, tx *sql.Tx, id int64, title string, c chunk) error {
	if _, err := tx.ExecContext(ctx, "INSERT INTO chunks (id, heading, text) VALUES (?, ?, ?)", id, c.heading, c.text); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, "INSERT INTO words (rowid, title, heading, text, parts) VALUES (?, ?, ?, ?, ?)",
		id, indexed(title), indexed(c.heading), indexed(c.text), extras(title, c.heading, c.text))
	return err
}

// remove takes a page away.
func remove(ctx context.Context, tx *sql.Tx, page int64) error {
	from, to := page<<chunkBits, (page+1)<<chunkBits
	for _, q := range []string{
		"DELETE FROM words WHERE rowid IN (SELECT id FROM chunks WHERE id >= ? AND id < ?)",
		"DELETE FROM chunks WHERE id >= ? AND id < ?",
	} {
		if _, err := tx.ExecContext(ctx, q, from, to); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, "DELETE FROM pages WHERE id = ?", page)
	return err
}

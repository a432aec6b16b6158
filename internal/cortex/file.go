package cortex

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"modernc.org/sqlite" // the driver named "sqlite"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

const (
	applicationID = 0x68625831 // "hbX1": the file is ours
	schemaVersion = 1
)

// A page's chunks have the rowids page<<chunkBits to page<<chunkBits +
// maxChunks-1, in the full-text table too, so that a match leads to its page
// without reading anything.
const (
	chunkBits = 12
	maxChunks = 1 << chunkBits
)

// The full-text table keeps no text, only where words are: what is shown comes
// from chunks. unicode61 cuts at everything that is neither letter, digit nor
// underscore and folds case and accents; what it is given has been through
// indexed, which cuts the scripts without spaces into pairs.
const schema = `
CREATE TABLE pages (
	id      INTEGER PRIMARY KEY,
	wrapper TEXT NOT NULL,
	key     TEXT NOT NULL,
	title   TEXT NOT NULL,
	url     TEXT NOT NULL,
	host    TEXT NOT NULL,
	at      INTEGER NOT NULL, -- milliseconds since 1970
	digest  BLOB NOT NULL,    -- of title, URL, host and text
	UNIQUE (wrapper, key)
);
CREATE INDEX pages_at ON pages (at);
CREATE TABLE chunks (
	id      INTEGER PRIMARY KEY, -- page<<12 + number
	heading TEXT NOT NULL,       -- path of headings, separated by " > "
	text    TEXT NOT NULL        -- plain text
);
` + wordsTable

const wordsTable = `
CREATE VIRTUAL TABLE words USING fts5(
	title, heading, text, parts,
	content='', contentless_delete=1,
	tokenize="unicode61 remove_diacritics 2 tokenchars '_'"
);
`

// open opens the file, or makes it. Its caller has the turn.
func (x *Index) open(ctx context.Context) error {
	if x.db != nil {
		return nil
	}
	db, err := openFile(ctx, x.path)
	if err != nil {
		return err
	}
	x.db = db
	return nil
}

func openFile(ctx context.Context, path string) (*sql.DB, error) {
	if st, err := os.Lstat(path); err == nil && !st.Mode().IsRegular() {
		return nil, fault.New("CORTEX_UNAVAILABLE", "%s is not a regular file", path).With(fault.Retryable(false),
			fault.Hint("Move it away; the index is made anew."))
	}
	// SQLite would make the file with the mode that the umask leaves. Its
	// journals get the mode of the file.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", dsn(path))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if err := prepare(ctx, db, path); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// dsn names the file with the settings of each connection. An exclusive lock
// keeps other programs out and the index of the write-ahead log in memory. A
// write-ahead log that is synced at checkpoints survives a killed process
// whole; a power cut may take the last pages, never the file. secure_delete
// overwrites what is forgotten.
func dsn(path string) string {
	p := filepath.ToSlash(path)
	if runtime.GOOS == "windows" && !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	q := url.Values{
		"_dqs":       {"0"},
		"_defensive": {"1"},
		"_txlock":    {"immediate"},
		"_pragma": {
			"locking_mode(exclusive)", "busy_timeout(500)", "synchronous(normal)",
			"secure_delete(on)", "cache_size(-4000)", "temp_store(memory)", "journal_size_limit(4000000)", "trusted_schema(off)", "cell_size_check(on)",
		},
	}
	return "file:" + (&url.URL{Path: p}).EscapedPath() + "?" + q.Encode()
}

// prepare checks that the file is ours and of this version, and fills an
// empty one.
func prepare(ctx context.Context, db *sql.DB, path string) error {
	var id, version, tables int
	// Nothing may have been written yet: the file may not be ours to change.
	err := db.QueryRowContext(ctx, "SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)").Scan(&id, &version, &tables)
	switch {
	case err != nil:
		return err
	case tables == 0 && id == 0 && version == 0:
		if _, err := db.ExecContext(ctx, "PRAGMA auto_vacuum = incremental; PRAGMA journal_mode = wal"); err != nil {
			return err
		}
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // after Commit there is nothing to undo
		if _, err := tx.ExecContext(ctx, schema+fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d;", applicationID, schemaVersion)); err != nil {
			return err
		}
		return tx.Commit()
	case id != applicationID:
		return errForeign
	case version > schemaVersion:
		return fault.New("CORTEX_UNAVAILABLE", "%s was written by a later version of hbrestd (format %d, this one knows %d)", path, version, schemaVersion).With(
			fault.Retryable(false), fault.Hint("Update hbrestd, or delete the file: only the index is lost."))
	}
	// A file whose first page is sound can still have lost what it points to.
	_, err = db.ExecContext(ctx, "SELECT max(id) FROM pages; SELECT max(id) FROM chunks; SELECT rowid FROM words WHERE words MATCH '\"a\"' LIMIT 1")
	return err
}

// errForeign is a database that is not ours, which counts as damage: it is in
// our place, and is kept when it is set aside.
var errForeign = errors.New("the file is a database of another program")

// Primary result codes of SQLite (https://www.sqlite.org/rescode.html).
const (
	sqliteError   = 1
	sqliteBusy    = 5
	sqliteLocked  = 6
	sqliteIOErr   = 10
	sqliteCorrupt = 11
	sqliteFull    = 13
	sqliteNotADB  = 26
)

// isDamage reports whether err says that the file itself is bad.
func isDamage(err error) bool {
	if errors.Is(err, errForeign) {
		return true
	}
	switch code(err) & 0xff {
	case sqliteCorrupt, sqliteNotADB:
		return true
	case sqliteError: // a table of ours that is not there
		return strings.Contains(err.Error(), "no such table") || strings.Contains(err.Error(), "no such column")
	}
	return false
}

func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// reason says in words for a person what SQLite or the system refused.
func reason(err error) string {
	switch code(err) & 0xff {
	case sqliteBusy, sqliteLocked:
		return "another program has the file open"
	case sqliteFull:
		return "the disk is full"
	case sqliteIOErr:
		return "the disk failed"
	case 0:
		var p *fs.PathError
		if errors.As(err, &p) {
			return p.Err.Error()
		}
	}
	return err.Error()
}

// journals are the files that SQLite keeps beside its database.
var journals = []string{"-wal", "-shm", "-journal"}

// setAside renames the damaged file and its journals and says so. One is kept,
// the last: what is in it can be read again from its sources. The caller has
// the turn.
func (x *Index) setAside(why error) error {
	if err := x.shut(); err != nil {
		x.o.Log.Debug("cortex: closing the damaged index", "error", err)
	}
	old, err := x.asides()
	if err != nil {
		return err
	}
	kept := x.path + asideMark + x.o.Now().UTC().Format("20060102T150405Z")
	if err = os.Rename(x.path, kept); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, j := range journals {
		if err := os.Rename(x.path+j, kept+j); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, o := range old {
		if o != kept && !strings.HasPrefix(o, kept+"-") {
			_ = os.Remove(o)
		}
	}
	x.recovered = fmt.Sprintf("%s was damaged; it was kept as %s, and an empty index took its place", x.path, filepath.Base(kept))
	x.o.Log.Error("cortex: "+x.recovered, "error", why)
	return nil
}

const asideMark = ".damaged-"

// asides are the files that setAside has left.
func (x *Index) asides() ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(x.path))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(x.path)+asideMark) {
			out = append(out, filepath.Join(filepath.Dir(x.path), e.Name()))
		}
	}
	return out, nil
}

package cortex

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// A Filter chooses what Forget takes away: what fits Wrapper and Before, of
// which one may be left out, or All.
type Filter struct {
	Wrapper string
	Before  time.Time // read before then
	All     bool
}

// Forget takes pages away, with everything that the file holds of them, and
// returns how many they were. A Filter that names nothing is ARGS_INVALID;
// other errors are CORTEX_UNAVAILABLE, CORTEX_TIMEOUT and CALL_CANCELLED.
func (x *Index) Forget(ctx context.Context, f Filter) (int, error) {
	if f.Wrapper == "" && f.Before.IsZero() && !f.All {
		return 0, fault.New("ARGS_INVALID", "nothing says what to forget").With(fault.Hint("Name a wrapper or a time, or say all."))
	}
	if f.All {
		return x.forgetAll(ctx)
	}
	where, args := "1", []any{}
	if f.Wrapper != "" {
		where, args = where+" AND wrapper = ?", append(args, f.Wrapper)
	}
	if !f.Before.IsZero() {
		where, args = where+" AND at < ?", append(args, f.Before.UnixMilli())
	}
	n := 0
	for last := -1; last != 0; n += last {
		last = 0
		err := x.use(ctx, false, false, "forgetting documents", func(db *sql.DB) (err error) {
			last, err = removeSome(ctx, db, "SELECT id FROM pages WHERE "+where+" LIMIT 200", args...)
			return err
		})
		if err != nil {
			return n, err
		}
	}
	if n == 0 {
		return 0, nil
	}
	if err := x.compact(ctx); err != nil {
		return n, err
	}
	// The log still has what it was written to forget.
	return n, x.use(ctx, false, false, "forgetting documents", func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, "PRAGMA wal_checkpoint(truncate)")
		return err
	})
}

// forgetAll removes the files: nothing is as sure, and it works on a damaged
// or a newer one too.
func (x *Index) forgetAll(ctx context.Context) (int, error) {
	if err := x.take(ctx); err != nil {
		return 0, err
	}
	defer x.give()
	n := 0
	if _, err := os.Lstat(x.path); err == nil {
		if x.open(ctx) == nil {
			_ = x.db.QueryRowContext(ctx, "SELECT count(*) FROM pages").Scan(&n)
		}
	}
	if err := x.shut(); err != nil {
		x.o.Log.Debug("cortex: closing the index to remove it", "error", err)
	}
	if err := removeFiles(x.path); err != nil {
		return 0, x.failed(err, "removing the index")
	}
	aside, err := x.asides()
	for _, p := range aside {
		err = errors.Join(err, os.Remove(p))
	}
	x.recovered = ""
	return n, x.failed(err, "removing the damaged index that was kept")
}

func removeFiles(path string) error {
	var errs error
	for _, end := range append([]string{""}, journals...) {
		if err := os.Remove(path + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = errors.Join(errs, err)
		}
	}
	return errs
}

// removeSome takes away the pages whose ids a query gives, in one transaction.
func removeSome(ctx context.Context, db *sql.DB, query string, args ...any) (int, error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // after Commit there is nothing to undo
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return 0, errors.Join(err, rows.Close())
		}
		ids = append(ids, id)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return 0, err
	}
	for _, id := range ids {
		if err := remove(ctx, tx, id); err != nil {
			return 0, err
		}
	}
	return len(ids), tx.Commit()
}

// trim starts to remove the oldest pages if the file is above its limit. It
// goes on beside other calls, because it may take seconds. Its caller has the
// turn.
func (x *Index) trim(ctx context.Context, db *sql.DB) error {
	size, err := fileSize(ctx, db)
	if err != nil || size <= x.o.MaxBytes || x.trimming {
		return err
	}
	x.trimming = true
	x.work.Go(func() {
		err := x.removeOldest(x.life)
		if err != nil && x.life.Err() == nil {
			x.o.Log.Error("cortex: the oldest documents could not be removed", "error", err)
		}
		<-x.turn
		x.trimming = false
		x.give()
	})
	return nil
}

// removeOldest removes a twentieth of the pages at a time, the oldest first,
// until the file is not above its limit. The newest page always stays.
func (x *Index) removeOldest(ctx context.Context) error {
	for {
		if err := x.compact(ctx); err != nil {
			return err
		}
		share := 0
		err := x.use(ctx, false, false, "measuring the index", func(db *sql.DB) error {
			size, err := fileSize(ctx, db)
			if err != nil || size <= x.o.MaxBytes {
				return err
			}
			return db.QueryRowContext(ctx, "SELECT min(max(1, count(*) / 20), count(*) - 1) FROM pages").Scan(&share)
		})
		if err != nil || share <= 0 {
			return err
		}
		for left := share; left > 0; left -= step {
			err := x.use(ctx, false, false, "removing the oldest documents", func(db *sql.DB) error {
				_, err := removeSome(ctx, db, "SELECT id FROM pages ORDER BY at, id LIMIT ?", min(left, step))
				return err
			})
			if err != nil {
				return err
			}
		}
		x.o.Log.Debug("cortex: the oldest documents made room", "documents", share)
	}
}

// How much is done of a long work before others get their turn: pages of an
// index and pages of the file, some 50 ms each.
const (
	step      = 20
	mergeStep = 500
)

// compact merges the full-text table, which takes the words of removed pages
// out of it, and gives free pages of the file back.
func (x *Index) compact(ctx context.Context) error {
	for first, done := true, false; !done; first = false {
		done = true // unless there is a file
		err := x.use(ctx, false, false, "merging the index", func(db *sql.DB) (err error) {
			done, err = merge(ctx, db, first)
			return err
		})
		if err != nil {
			return err
		}
	}
	for done := false; !done; {
		done = true
		err := x.use(ctx, false, false, "giving room back", func(db *sql.DB) (err error) {
			done, err = vacuum(ctx, db)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// merge does a step of merging everything into one; it is done when a step
// changes next to nothing (https://www.sqlite.org/fts5.html#the_merge_command).
func merge(ctx context.Context, db *sql.DB, first bool) (done bool, err error) {
	n := mergeStep
	if first {
		n = -mergeStep
	}
	var before, after int64
	if err := db.QueryRowContext(ctx, "SELECT total_changes()").Scan(&before); err != nil {
		return false, err
	}
	if _, err := db.ExecContext(ctx, "INSERT INTO words(words, rank) VALUES('merge', ?)", n); err != nil {
		return false, err
	}
	if err := db.QueryRowContext(ctx, "SELECT total_changes()").Scan(&after); err != nil {
		return false, err
	}
	return after-before < 2, nil
}

// vacuum gives some free pages of the file back.
func vacuum(ctx context.Context, db *sql.DB) (done bool, err error) {
	// Each step of this statement frees one page, so it is read to its end.
	rows, err := db.QueryContext(ctx, "PRAGMA incremental_vacuum(1000)")
	if err != nil {
		return false, err
	}
	for rows.Next() {
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return false, err
	}
	var left int
	err = db.QueryRowContext(ctx, "PRAGMA freelist_count").Scan(&left)
	return left == 0, err
}

// fileSize is the size of the database without its log, in bytes.
func fileSize(ctx context.Context, db *sql.DB) (n int64, err error) {
	err = db.QueryRowContext(ctx, "SELECT c.page_count * s.page_size FROM pragma_page_count c, pragma_page_size s").Scan(&n)
	return n, err
}

// Stats say what is in the index.
type Stats struct {
	Path      string
	Pages     int
	Chunks    int
	Bytes     int64         // of the file and its log
	MaxBytes  int64         // above which the oldest pages go
	Oldest    time.Time     // when the oldest page was read, UTC; zero if there is none
	Newest    time.Time     // when the newest was
	Wrappers  []WrapperStat // by id
	Recovered string        // a sentence about a damaged file that was set aside since the start; "" if none was
}

// A WrapperStat is what one wrapper has in the index.
type WrapperStat struct {
	Wrapper string
	Pages   int
	Newest  time.Time
}

// Stats counts what is there. Without a file everything is zero. The errors
// are those of Search.
func (x *Index) Stats(ctx context.Context) (Stats, error) {
	s := Stats{Path: x.path, MaxBytes: x.o.MaxBytes}
	err := x.use(ctx, false, false, "counting what is in the index", func(db *sql.DB) error {
		if err := db.QueryRowContext(ctx, "SELECT count(*) FROM chunks").Scan(&s.Chunks); err != nil {
			return err
		}
		rows, err := db.QueryContext(ctx, "SELECT wrapper, count(*), min(at), max(at) FROM pages GROUP BY wrapper")
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var w WrapperStat
			var oldest, newest int64
			if err := rows.Scan(&w.Wrapper, &w.Pages, &oldest, &newest); err != nil {
				return err
			}
			w.Newest = time.UnixMilli(newest).UTC()
			if o := time.UnixMilli(oldest).UTC(); s.Oldest.IsZero() || o.Before(s.Oldest) {
				s.Oldest = o
			}
			if w.Newest.After(s.Newest) {
				s.Newest = w.Newest
			}
			s.Pages += w.Pages
			s.Wrappers = append(s.Wrappers, w)
		}
		return rows.Err()
	})
	slices.SortFunc(s.Wrappers, func(a, b WrapperStat) int { return strings.Compare(a.Wrapper, b.Wrapper) })
	for _, end := range append([]string{""}, journals...) {
		if st, serr := os.Stat(x.path + end); serr == nil {
			s.Bytes += st.Size()
		}
	}
	if x.take(ctx) == nil {
		s.Recovered = x.recovered
		x.give()
	}
	return s, err
}

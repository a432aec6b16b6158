package cortex

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// Rebuild writes the file anew from the pages that can still be read in it,
// which also takes back the room that was lost, and returns how many pages the
// new file has. Other calls wait. The errors are those of Search.
func (x *Index) Rebuild(ctx context.Context) (int, error) {
	if err := x.take(ctx); err != nil {
		return 0, err
	}
	defer x.give()
	if _, err := os.Lstat(x.path); errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err := x.open(ctx); err != nil {
		if !isDamage(err) {
			return 0, x.failed(err, "opening the index")
		}
		if err := x.setAside(err); err != nil {
			return 0, x.failed(err, "setting the damaged index aside")
		}
		return 0, nil
	}
	x.startTimer()
	temp := x.path + ".new"
	if err := removeFiles(temp); err != nil {
		return 0, x.failed(err, "removing what an earlier rebuild left")
	}
	n, damage, err := copyTo(ctx, x.db, temp)
	if err != nil {
		return 0, x.failed(errors.Join(err, removeFiles(temp)), "rebuilding the index")
	}
	if damage != nil {
		if err := x.setAside(damage); err != nil {
			return 0, x.failed(err, "setting the damaged index aside")
		}
		x.recovered = strings.TrimSuffix(x.recovered, "an empty index took its place") + fmt.Sprintf("%d documents were taken over", n)
	} else {
		if err := x.shut(); err != nil {
			return 0, x.failed(err, "closing the old index")
		}
		for _, j := range journals { // closed clean, it has none; an old log would be taken for the new file's
			_ = os.Remove(x.path + j)
		}
	}
	return n, x.failed(os.Rename(temp, x.path), "putting the new index in its place")
}

// copyTo writes every page of db that can be read to a new file, the oldest
// first. damage says that some could not.
func copyTo(ctx context.Context, db *sql.DB, path string) (n int, damage, err error) {
	to, err := openFile(ctx, path)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	for last := int64(0); ; {
		rows, ids, rerr := readRows(ctx, db, last)
		if rerr != nil && !isDamage(rerr) {
			return n, damage, rerr
		}
		if rerr != nil {
			damage = rerr
		}
		if len(ids) == 0 {
			return n, damage, nil
		}
		last = ids[len(ids)-1]
		if err := put(ctx, to, rows); err != nil {
			return n, damage, err
		}
		n += len(rows)
	}
}

// readRows reads up to a batch of pages after the one with the id last, each
// with its chunks. A page that is damaged is left out of the rows.
func readRows(ctx context.Context, db *sql.DB, last int64) (rows []row, ids []int64, damage error) {
	rs, err := db.QueryContext(ctx, "SELECT id, wrapper, key, title, url, host, at, digest FROM pages WHERE id > ? ORDER BY id LIMIT ?", last, batch)
	if err != nil {
		return nil, nil, err
	}
	for rs.Next() {
		var r row
		var id, at int64
		if err := rs.Scan(&id, &r.Wrapper, &r.Key, &r.Title, &r.URL, &r.Host, &at, &r.digest); err != nil {
			return nil, nil, errors.Join(err, rs.Close())
		}
		r.At = time.UnixMilli(at)
		rows, ids = append(rows, r), append(ids, id)
	}
	damage = errors.Join(rs.Err(), rs.Close())
	if damage != nil && !isDamage(damage) {
		return nil, nil, damage
	}
	whole := rows[:0]
	for i, id := range ids {
		cs, err := readChunks(ctx, db, id)
		switch {
		case err == nil:
			rows[i].chunks = cs
			whole = append(whole, rows[i])
		case isDamage(err):
			damage = err
		default:
			return nil, nil, err
		}
	}
	return whole, ids, damage
}

func readChunks(ctx context.Context, db *sql.DB, page int64) ([]chunk, error) {
	rs, err := db.QueryContext(ctx, "SELECT heading, text FROM chunks WHERE id >= ? AND id < ? ORDER BY id", page<<chunkBits, (page+1)<<chunkBits)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rs.Close() }()
	var out []chunk
	for rs.Next() {
		var c chunk
		if err := rs.Scan(&c.heading, &c.text); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, rs.Err()
}

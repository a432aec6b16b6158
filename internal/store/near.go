package store

import (
	"fmt"
	"slices"
	"strings"
)

const (
	shownID   = 60 // characters of an unknown id in a message
	nearShown = 3
	nearMax   = 100 // the longest id there can be; nothing longer is near to one
)

// nearest is "; near: a, b, c", or "" if no id is like the given one.
func nearest(id string, ids []string) string {
	if id == "" || len(id) > nearMax {
		return ""
	}
	type candidate struct {
		id       string
		distance int
	}
	var found []candidate
	want := strings.ToLower(id)
	limit := max(2, len(want)/3)
	row := make([]int, len(want)+limit+1)
	for _, have := range ids {
		low := strings.ToLower(have)
		d := distance(want, low, limit, row)
		// A part of an id, such as its first words, is near too, but less.
		if d > limit && len(want) >= 3 && strings.Contains(low, want) {
			d = limit
		}
		if d <= limit && d < len(want) {
			found = append(found, candidate{have, d})
		}
	}
	if len(found) == 0 {
		return ""
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return a.distance - b.distance })
	var shown []string
	for _, c := range found[:min(len(found), nearShown)] {
		shown = append(shown, c.id)
	}
	return fmt.Sprintf("; near: %s", strings.Join(shown, ", "))
}

// distance is the number of single characters to insert, delete or replace to
// make a into b, or more than limit if it is more. row is room for one number
// more than b has characters.
func distance(a, b string, limit int, row []int) int {
	if d := len(a) - len(b); d > limit || -d > limit {
		return limit + 1
	}
	row = row[:len(b)+1]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		best := row[0]
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(diagonal+cost, row[j]+1, row[j+1]+1)
			diagonal, row[j+1] = row[j+1], next
			best = min(best, next)
		}
		if best > limit {
			return limit + 1
		}
	}
	return row[len(b)]
}

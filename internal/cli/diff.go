package cli

import (
	"fmt"
	"strings"
)

const (
	diffContext = 2       // equal lines shown around a change
	diffLines   = 80      // of one document; the rest is counted
	diffWork    = 4 << 20 // cells of the table of common lines; beyond it the middle is shown as replaced
)

// lineDiff shows what changes from one text to another: lines with - are
// taken out, with + put in; the others tell where.
func lineDiff(before, after string) string {
	edits := compare(linesOf(before), linesOf(after))
	near := make([]bool, len(edits))
	for i, e := range edits {
		if e.sign == ' ' {
			continue
		}
		for j := max(i-diffContext, 0); j <= min(i+diffContext, len(edits)-1); j++ {
			near[j] = true
		}
	}
	var lines []string
	gap := false
	for i, e := range edits {
		if !near[i] {
			gap = true
			continue
		}
		if gap && len(lines) > 0 {
			lines = append(lines, "  ...")
		}
		gap = false
		lines = append(lines, string(e.sign)+" "+clean(strings.ReplaceAll(e.line, "\t", "    ")))
	}
	if more := len(lines) - diffLines; more > 1 {
		lines = append(lines[:diffLines], fmt.Sprintf("  ... and %d more lines", more))
	}
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// linesOf are the lines of a text; an empty one has none.
func linesOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

type edit struct {
	sign byte // ' ', '-' or '+'
	line string
}

// compare finds the fewest lines to take out and put in.
func compare(a, b []string) []edit {
	var head, tail []edit
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		head = append(head, edit{' ', a[0]})
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		tail = append(tail, edit{' ', a[len(a)-1]})
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	edits := append(head, middle(a, b)...)
	for i := len(tail) - 1; i >= 0; i-- {
		edits = append(edits, tail[i])
	}
	return edits
}

func middle(a, b []string) []edit {
	var edits []edit
	i, j := 0, 0
	if len(a)*len(b) <= diffWork {
		// common[i][j] is the number of lines that a[i:] and b[j:] can share.
		common := make([][]int32, len(a)+1)
		for i := range common {
			common[i] = make([]int32, len(b)+1)
		}
		for i := len(a) - 1; i >= 0; i-- {
			for j := len(b) - 1; j >= 0; j-- {
				if a[i] == b[j] {
					common[i][j] = common[i+1][j+1] + 1
				} else {
					common[i][j] = max(common[i+1][j], common[i][j+1])
				}
			}
		}
		for i < len(a) && j < len(b) {
			switch {
			case a[i] == b[j]:
				edits = append(edits, edit{' ', a[i]})
				i, j = i+1, j+1
			case common[i+1][j] >= common[i][j+1]:
				edits = append(edits, edit{'-', a[i]})
				i++
			default:
				edits = append(edits, edit{'+', b[j]})
				j++
			}
		}
	}
	for ; i < len(a); i++ {
		edits = append(edits, edit{'-', a[i]})
	}
	for ; j < len(b); j++ {
		edits = append(edits, edit{'+', b[j]})
	}
	return edits
}

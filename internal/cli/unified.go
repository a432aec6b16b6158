package cli

import (
	"fmt"
	"strings"
)

// unifiedContext is how many equal lines stand around a change, as diff -u has it.
const unifiedContext = 3

// unified is a diff that people and patch(1) read; "" for equal texts.
func unified(nameA, nameB, a, b string) string {
	edits := compare(lines(a), lines(b))
	var out strings.Builder
	for from := 0; from < len(edits); {
		first := from
		for first < len(edits) && edits[first].sign == ' ' {
			first++
		}
		if first == len(edits) {
			break
		}
		// The hunk goes on while the next change is near enough to share its context.
		last := first
		for i := first; i < len(edits) && i <= last+2*unifiedContext+1; i++ {
			if edits[i].sign != ' ' {
				last = i
			}
		}
		start, end := max(first-unifiedContext, from), min(last+unifiedContext+1, len(edits))
		if out.Len() == 0 {
			fmt.Fprintf(&out, "--- %s\n+++ %s\n", clean(nameA), clean(nameB))
		}
		hunk(&out, edits, start, end)
		from = end
	}
	return out.String()
}

func hunk(out *strings.Builder, edits []edit, start, end int) {
	atA, atB := count(edits[:start])
	inA, inB := count(edits[start:end])
	fmt.Fprintf(out, "@@ -%s +%s @@\n", span(atA, inA), span(atB, inB))
	for _, e := range edits[start:end] {
		fmt.Fprintf(out, "%c%s\n", e.sign, clean(e.line))
	}
}

// count is how many lines edits take of the text before, and of the one after.
func count(edits []edit) (a, b int) {
	for _, e := range edits {
		if e.sign != '+' {
			a++
		}
		if e.sign != '-' {
			b++
		}
	}
	return a, b
}

// span is a range of lines as a hunk's head has it: an empty one names the line
// before it.
func span(before, n int) string {
	switch n {
	case 0:
		return fmt.Sprintf("%d,0", before)
	case 1:
		return fmt.Sprint(before + 1)
	}
	return fmt.Sprintf("%d,%d", before+1, n)
}

// lines are those of a text; none of an empty one.
func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/weirhq/weir/fault"
)

// printWarnings prints each warning once, with all lines that have it.
func printWarnings(w io.Writer, warnings fault.List) {
	type place struct{ file, problem string }
	lines := map[place][]string{}
	for _, f := range warnings {
		at := place{f.Place.File, f.Problem}
		lines[at] = append(lines[at], fmt.Sprint(f.Place.Line))
	}
	for _, f := range warnings {
		at := place{f.Place.File, f.Problem}
		all := lines[at]
		if all == nil {
			continue // already printed
		}
		delete(lines, at)
		first := *f
		first.Problem += also(all[1:])
		fmt.Fprintf(w, "warning: %v\n", &first)
	}
}

// also returns a note of further lines, of the first ten when there are more.
func also(lines []string) string {
	const most = 10
	switch n := len(lines); {
	case n == 0:
		return ""
	case n == 1:
		return " (also line " + lines[0] + ")"
	case n > most:
		return fmt.Sprintf(" (also lines %s and %d more)", strings.Join(lines[:most], ", "), n-most)
	}
	return " (also lines " + strings.Join(lines, ", ") + ")"
}

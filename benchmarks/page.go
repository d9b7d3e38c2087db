package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/weirhq/weir/benchmarks/report"
)

// page writes the whole page of a run.
func page(w io.Writer, m report.Machine, tables []*report.Table, f found) {
	fmt.Fprintf(w, "# Benchmarks\n\n")
	fmt.Fprintf(w, "`make bench-peers` has written this page and its pictures in one run, and every number on them is from that run. %s\n\n", m.Text())
	fmt.Fprintf(w, "## What you get\n\n%s", opening(f))
	if text := losses(f); text != "" {
		fmt.Fprintf(w, "\n## What is faster than weir\n\nThe other limiters for Go that take less time on one core, in nanoseconds. Most of them admit up to twice the quota, never free the memory of unused keys, or answer only yes or no.\n\n%s", text)
	}
	aimTable(f).Write(w)
	fmt.Fprintf(w, "\n## The tables\n\n")
	for _, t := range tables {
		fmt.Fprintf(w, "- [%s](#%s)\n", t.Title, anchor(t.Title))
	}
	fmt.Fprintf(w, "\n[redis.md](redis.md#size) has bytes per key, processor time per decision, and the cost of clusters and replicas.\n")
	for _, t := range tables {
		t.Write(w)
	}
	m.Write(w)
}

// anchor returns the fragment of a title's link.
func anchor(title string) string {
	title = strings.ToLower(title)
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		}
		return -1
	}, title)
}

// writePage replaces the file of the page, whole.
func writePage(path, text string) error {
	next := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".next")
	if err := os.WriteFile(next, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(next, path)
}

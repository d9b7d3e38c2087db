package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weirhq/weir/benchmarks/internal/measure"
	"github.com/weirhq/weir/internal/pgtest"
)

// The program runs itself anew as its children.
func TestMain(m *testing.M) {
	if child() {
		return
	}
	folder, err := os.MkdirTemp("", "weir")
	measure.Check(err)
	weirProgram = sync.OnceValue(settings{folder: folder}.weir)
	status := m.Run()
	measure.Check(os.RemoveAll(folder))
	os.Exit(status)
}

// weirProgram builds the program weir once, for all tests, and returns its path.
var weirProgram func() string

// Some sections print their tables, with the charts of these sections.
func TestOnly(t *testing.T) { // not parallel: it measures the heap of the process
	images := t.TempDir()
	var out strings.Builder
	if err := run([]string{"-quick", "-only", "hot,million", "-images", images}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# weir and its peers, measured side by side\n",
		"Made by `make bench-peers PEERS=\"-only=hot,million -quick=true\"`.",
		"\n## One hot key in memory\n", "](../docs/images/hot.svg)",
		"\n|  | one core | two cores | denied, one core | × reference | on two | allocations | admitted |\n",
		"\n## A million keys in memory\n", "](../docs/images/million.svg)",
		"\n|  | zipf, one core | two cores | gain | uniform, one core | × reference (zipf) | on two | allocations | bytes a key | GC ms | admitted (zipf) |\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got a document without %q", want)
		}
	}
	if got := strings.Count(out.String(), "\n## "); got != 2 {
		t.Errorf("got %d tables, want 2", got)
	}
	for _, name := range []string{"hot.svg", "million.svg"} {
		if _, err := os.Stat(filepath.Join(images, name)); err != nil {
			t.Error(err)
		}
	}
}

// The section of PostgreSQL has rows, and no deadlocks.
func TestPostgres(t *testing.T) { // not parallel: it measures times
	pgtest.Server(t) // skips if there is none
	var out strings.Builder
	if err := run([]string{"-quick", "-only", "postgres"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\n## Over PostgreSQL\n", "\n| weir sliding | ", "\n- Deadlocks of the server in all turns: 0.\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got a document without %q:\n%s", want, out.String())
		}
	}
}

func TestUnknownSection(t *testing.T) {
	t.Parallel()
	err := run([]string{"-only", "cold,warm"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), `no section "warm"; want some of hot, million, cores`) {
		t.Errorf("got error %v, want one that names the section", err)
	}
}

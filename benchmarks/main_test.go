package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A quick run goes through every section and writes every chart.
func TestQuick(t *testing.T) {
	t.Parallel()
	images := t.TempDir()
	var out strings.Builder
	if err := run([]string{"-quick", "-images", images}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "\n## "); got != len(sections()) {
		t.Errorf("got %d tables, want one a section, %d", got, len(sections()))
	}
	if strings.Contains(out.String(), "NaN") || strings.Contains(out.String(), "Inf") {
		t.Error("got numbers that are none in the document")
	}
	for _, name := range []string{"hot.svg", "million.svg", "accuracy.svg"} {
		if _, err := os.Stat(filepath.Join(images, name)); err != nil {
			t.Error(err)
		}
		if !strings.Contains(out.String(), "](images/"+name+")") {
			t.Errorf("got a document without %s", name)
		}
	}
}

func TestUnknownSection(t *testing.T) {
	t.Parallel()
	err := run([]string{"-only", "cold"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), `no section "cold"`) {
		t.Errorf("got error %v, want one that names the section", err)
	}
}

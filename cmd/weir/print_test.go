package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

func TestUsageSaysThatItIsDegraded(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"rule":"posts","key":"ann","quota":3,"used":1,"remaining":2,"reset_after":60,"degraded":true}`)
	}))
	defer s.Close()
	var out, errs strings.Builder
	status := run([]string{"usage", "posts", "user=ann", "--addr", s.URL}, strings.NewReader(""), &out, &errs)
	if status != 0 || !strings.HasPrefix(out.String(), "degraded: the store did not answer; ") {
		t.Errorf("got status %d, %q, %q, want a first line that starts with degraded", status, out.String(), errs.String())
	}
}

// In an outage, memory does not know what the store holds.
func TestSettleThatIsDegraded(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"allowed":true,"outcome":"allow","degraded":true,"degraded_reason":"late","limits":[{"rule":"slots","key":"ann","quota":3,"used":0,"held":false}]}`)
	}))
	defer s.Close()
	var out, errs strings.Builder
	status := run([]string{"settle", "receipt", "user=ann", "--addr", s.URL}, strings.NewReader(""), &out, &errs)
	if status != exitError || !strings.HasPrefix(out.String(), "unknown whether anything is held\n") || !strings.Contains(errs.String(), "may have the hold") {
		t.Errorf("got status %d, %q, %q, want that it is unknown", status, out.String(), errs.String())
	}
}

// TestPrintsNoControlSequences prints a key and a reason that would clear a
// terminal.
func TestPrintsNoControlSequences(t *testing.T) {
	t.Parallel()
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	text := "rules: [{name: posts, when: {action: post}, per: [user], limit: 1, window: 1h}]\n"
	writeFile(t, rules, text)
	for _, args := range [][]string{
		{"take", "--rules", rules, "action=post", "user=\x1b[2J"},
		{"explain", "--rules", rules, "action=\x1b[2J"},
	} {
		var out, errs strings.Builder
		if status := run(args, strings.NewReader(""), &out, &errs); status != 0 || !strings.Contains(out.String(), "[2J") {
			t.Errorf("%q: got status %d, %s%s, want an answer with the text", args, status, out.String(), errs.String())
		}
		if strings.Contains(out.String(), "\x1b") {
			t.Errorf("%q: got %q, want no control character", args, out.String())
		}
	}
}

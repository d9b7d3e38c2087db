package page_test

import (
	"fmt"
	"html"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/page"
	"github.com/weirhq/weir/cmd/weir/internal/replay"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// hostile is a key that would end a script or start a tag if a report did not escape
// it.
const hostile = `</script><script>alert(1)</script><img src=x onerror=alert(2)>`

func limit(t *testing.T, quota int64) *rule.Set {
	t.Helper()
	set, err := rule.New([]rule.Rule{{
		Name: "agents", Per: []string{"agent"}, Quota: &rule.Quota{Value: quota}, Window: window.Sliding(time.Minute),
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// source returns a log of two days with a hostile agent and a bad line.
func source() replay.Source {
	var b strings.Builder
	for i := range 400 {
		agent := fmt.Sprintf("agent-%d", i%7)
		if i%3 == 0 {
			agent = hostile
		}
		fmt.Fprintf(&b, "10.0.0.1 - - [%02d/Mar/2026:12:%02d:%02d +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"%s\"\n", 1+i/200, i%200/60, i%60, agent)
	}
	b.WriteString(hostile + "\n")
	return replay.Logs{Files: []replay.Log{{Name: "log", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(b.String())), nil }}}}
}

// reports returns a report of each kind.
func reports(t *testing.T) map[string]string {
	t.Helper()
	report, err := replay.Run(t.Context(), limit(t, 5), source(), replay.WithAlone(), replay.WithPeaks())
	if err != nil {
		t.Fatal(err)
	}
	comparison, err := replay.Compare(t.Context(), limit(t, 9), limit(t, 5), source(), replay.WithPeaks())
	if err != nil {
		t.Fatal(err)
	}
	suggestion, err := replay.Suggest(t.Context(), limit(t, 5), replay.Sweep{Rule: "agents"}, source())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for name, r := range map[string]any{"replay": report, "compare": comparison, "suggest": suggestion} {
		var b strings.Builder
		about := page.About{
			Command: "weir " + name, Version: "v1.2.3", Logs: []string{"log" + hostile},
			Rules: []page.RulesFile{{Name: "rules.yaml", Hash: "0123456789ab", Set: limit(t, 5)}},
		}
		if err := page.Report(&b, r, about); err != nil {
			t.Fatal(err)
		}
		all[name] = b.String()
	}
	return all
}

var (
	scripts   = regexp.MustCompile(`(?s)<script[^>]*>(.*?)</script>`)
	policy    = regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`)
	elsewhere = regexp.MustCompile(`(?i)<[a-z][^<>]*\s(src|href|action|srcset)\s*=|url\(|@import`)
)

// TestReports: a report refers to nothing outside of it, escapes what clients sent, and runs no script but its own.
func TestReports(t *testing.T) {
	t.Parallel()
	for name, text := range reports(t) {
		found := scripts.FindAllStringSubmatch(text, -1)
		if len(found) != 2 {
			t.Fatalf("%s: got %d scripts, want the data and our own", name, len(found))
		}
		data := found[0][1]
		for _, want := range []string{`"kind":"` + name + `"`, `"version":"v1.2.3"`, `"hash":"0123456789ab"`, `"limit":5`, `"window":"sliding 1m"`, `\u003c/script\u003e`} {
			if !strings.Contains(data, want) {
				t.Errorf("%s: the data lacks %s", name, want)
			}
		}
		if strings.Contains(data, "<") || strings.Contains(found[1][1], "<!--") {
			t.Errorf("%s: a script could end early", name)
		}
		markup := scripts.ReplaceAllString(text, "")
		if strings.Contains(markup, "<img") {
			t.Errorf("%s: got text of a client that is not escaped", name)
		}
		if found := elsewhere.FindString(markup); found != "" {
			t.Errorf("%s: got %q, want no reference to anything else", name, found)
		}
		if !strings.Contains(markup, "Copyright (c) 2015-present Jason Miller") || !strings.Contains(markup, "Leon Sorokin") {
			t.Errorf("%s: got no licences", name)
		}
		_, style, _ := strings.Cut(text, "<style>")
		style, _, _ = strings.Cut(style, "</style>")
		allowed := html.UnescapeString(policy.FindStringSubmatch(text)[1])
		for _, part := range []string{"default-src 'none'", "script-src " + page.SourceOf(found[1][1]) + ";", "style-src " + page.SourceOf(style) + ";"} {
			if !strings.Contains(allowed, part) {
				t.Errorf("%s: got the policy %s, want %s", name, allowed, part)
			}
		}
	}
}

// TestEmpty writes the reports of logs without a request.
func TestEmpty(t *testing.T) {
	t.Parallel()
	none := replay.Logs{}
	report, err := replay.Run(t.Context(), limit(t, 5), none)
	if err != nil {
		t.Fatal(err)
	}
	suggestion, err := replay.Suggest(t.Context(), limit(t, 5), replay.Sweep{Rule: "agents"}, none)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []any{report, suggestion, &replay.Comparison{}} {
		if err := page.Report(io.Discard, r, page.About{}); err != nil {
			t.Error(err)
		}
	}
}

// TestNoReport: anything else is refused.
func TestNoReport(t *testing.T) {
	t.Parallel()
	if err := page.Report(io.Discard, 1, page.About{}); err == nil {
		t.Error("got no error for a number")
	}
}

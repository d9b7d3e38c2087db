package page_test

import (
	"fmt"
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

// hostile is a key that would end a script or start a tag if a page did not escape
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

// pages returns a page of each kind.
func pages(t *testing.T) map[string]string {
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
	var replayed, compared, suggested strings.Builder
	for _, err := range []error{
		page.Replay(&replayed, report, "weir replay"), page.Comparison(&compared, comparison, "weir compare"),
		page.Suggestion(&suggested, suggestion, "weir suggest"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return map[string]string{"replay": replayed.String(), "compare": compared.String(), "suggest": suggested.String()}
}

var (
	scripts   = regexp.MustCompile(`(?s)<script[^>]*>(.*?)</script>`)
	elsewhere = regexp.MustCompile(`(?i)<[a-z][^<>]*\s(src|href|action|data|srcset)\s*=|url\(|@import`)
)

// TestPages: a page refers to nothing outside of it, escapes what clients sent, and
// has the numbers of each chart.
func TestPages(t *testing.T) {
	t.Parallel()
	for name, text := range pages(t) {
		if got := len(scripts.FindAllString(text, -1)); got != 3 {
			t.Errorf("%s: got %d scripts, want the data, the library and our own", name, got)
		}
		if strings.Contains(text, "<img") || strings.Contains(text, "alert(1)</script><img") {
			t.Errorf("%s: the page has text of a client that is not escaped", name)
		}
		if !strings.Contains(text, "&lt;/script&gt;") {
			t.Errorf("%s: the page has no key", name)
		}
		markup := scripts.ReplaceAllString(text, "")
		if found := elsewhere.FindString(markup); found != "" {
			t.Errorf("%s: got %q, want no reference to anything else", name, found)
		}
		if !strings.Contains(text, "default-src 'none'") {
			t.Errorf("%s: got no policy that forbids the network", name)
		}
		if !strings.Contains(text, "Peaks of keys") || !strings.Contains(text, `"marks":[{"at":`) {
			t.Errorf("%s: got no peaks with the limit drawn in", name)
		}
		charts, tables := strings.Count(text, `<div class="plot"`), strings.Count(text, "<details>")
		if charts == 0 || charts != tables {
			t.Errorf("%s: got %d charts and %d tables of numbers", name, charts, tables)
		}
	}
}

// TestEmpty writes the pages of logs without a request.
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
	for _, err := range []error{
		page.Replay(io.Discard, report, ""), page.Suggestion(io.Discard, suggestion, ""), page.Comparison(io.Discard, &replay.Comparison{}, ""),
	} {
		if err != nil {
			t.Error(err)
		}
	}
}

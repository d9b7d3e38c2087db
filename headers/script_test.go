package headers_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/headers"
	"github.com/weirhq/weir/internal/datatest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// TestScripts runs testdata/*.txt:
//
//	set dialect=NAME [retry=WAIT] [degraded=REASON]
//
// writes the policies below it, one a line.
// A policy is its name and q, r, w, retry, reset, unit. In a bubble it is midnight
// of 1 January 2000, UTC.
func TestScripts(t *testing.T) {
	t.Parallel()
	datatest.Walk(t, "testdata/*.txt", func(t *testing.T, path string) {
		synctest.Test(t, func(t *testing.T) { datatest.RunTest(t, path, set) })
	})
}

func set(t *testing.T, d *datatest.TestData) string {
	t.Helper()
	if d.Cmd != "set" {
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	var l headers.Limits
	var f headers.Format
	for _, arg := range d.CmdArgs {
		value := arg.Vals[0]
		switch arg.Key {
		case "dialect":
			f.Dialect = headers.Dialect(value)
		case "retry":
			l.RetryAfter = wait(t, value)
		case "degraded":
			l.Degraded = store.Reason(value)
		}
	}
	for line := range strings.Lines(d.Input) {
		l.Policies = append(l.Policies, policy(t, line))
	}
	h := http.Header{}
	f.Set(h, &l)
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h)) {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(h[name], " | "))
		if canonical := textproto.CanonicalMIMEHeaderKey(name); canonical != name {
			t.Errorf("%s: got a name that is not canonical, want %s", name, canonical)
		}
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

func wait(t *testing.T, text string) time.Duration {
	t.Helper()
	if text == "never" {
		return window.Never
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func policy(t *testing.T, line string) (p headers.Policy) {
	t.Helper()
	words := strings.Fields(line)
	name, err := strconv.Unquote(words[0])
	if err != nil {
		name = words[0]
	}
	p.Name = name
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "q", "r":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			if key == "q" {
				p.Quota = n
			} else {
				p.Remaining = n
			}
		case "w":
			p.Window = wait(t, value)
		case "retry":
			p.RetryAfter = wait(t, value)
		case "reset":
			p.ResetAfter = wait(t, value)
		case "unit":
			p.Unit = value
		default:
			t.Fatalf("%s: unknown", word)
		}
	}
	return p
}

func TestParseRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)
	date := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for _, tc := range []struct {
		field, date string
		want        time.Duration
	}{
		{"", "", 0},
		{"7", "", 7 * time.Second},
		{" 7 ", date(time.Hour), 7 * time.Second},
		{"-7", "", 0},
		{"soon", "", 0},
		{"9223372036854775807", "", window.MaxLength},
		{"99999999999999999999", "", window.MaxLength},
		{"-99999999999999999999", "", 0},
		{date(time.Minute), "", time.Minute},
		{date(time.Minute), date(time.Second), 59 * time.Second},
		{date(-time.Minute), "", 0},
	} {
		h := http.Header{"Retry-After": {tc.field}, "Date": {tc.date}}
		if got := headers.ParseRetryAfter(h, now); got != tc.want {
			t.Errorf("%q, %q: got %v, want %v", tc.field, tc.date, got, tc.want)
		}
	}
}

func BenchmarkSet(b *testing.B) {
	for _, dialect := range []headers.Dialect{headers.Draft, headers.Legacy} {
		b.Run(string(dialect), func(b *testing.B) {
			h := http.Header{}
			l := headers.Limits{Policies: []headers.Policy{{Name: "posts", Quota: 5, Remaining: 4, Window: time.Hour, ResetAfter: time.Hour}}}
			b.ReportAllocs()
			for b.Loop() {
				headers.Format{Dialect: dialect}.Set(h, &l)
			}
		})
	}
}

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

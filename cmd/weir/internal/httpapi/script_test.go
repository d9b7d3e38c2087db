package httpapi_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/apitest"
	"github.com/weirhq/weir/cmd/weir/internal/httpapi"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/internal/datatest"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// bench is an API over the rules of a script, with a clock that the script
// sets.
type bench struct {
	api       *httpapi.API
	described *apitest.Description // nil: any answer will do
	saved     []string             // receipts, in the order of their takes
	counts    *memstore.Store
	now       time.Time
}

// newBench returns an API over the rules in a YAML text.
func newBench(t testing.TB, rules string) *bench {
	t.Helper()
	b := &bench{now: scripttest.Start}
	tops := top.New(top.Config{Keys: 3, Now: func() time.Time { return b.now }}, namespace.Default)
	engine, counts := scripttest.NewEngine(t, rules, func() window.Instant { return window.At(b.now) }, weir.WithObserver(tops))
	b.counts = counts
	space := namespace.New(namespace.Default, engine, 0, tops)
	space.SetSource(namespace.Source{File: "rules.yaml", Hash: "c0ffee", Loaded: scripttest.Start})
	b.api = httpapi.New(namespace.NewSet(space), httpapi.Config{})
	return b
}

// call sends a request, and holds the exchange to b.described. The request is
// written as a method and a URL, headers, and a body after them. It
// returns the answer in the same form.
func (b *bench) call(t *testing.T, text string) string {
	t.Helper()
	first, rest, _ := strings.Cut(text, "\n")
	method, url, _ := strings.Cut(first, " ")
	headers := http.Header{}
	for rest != "" {
		line, after, _ := strings.Cut(rest, "\n")
		name, value, ok := strings.Cut(line, ": ")
		if !ok || strings.ContainsAny(name, `{"`) {
			break
		}
		headers.Add(name, value)
		rest = after
	}
	for i, text := range b.saved {
		rest = strings.ReplaceAll(rest, fmt.Sprintf("RECEIPT%d", i+1), text)
	}
	req := httptest.NewRequest(method, url, strings.NewReader(rest))
	req.Header = headers
	got := apitest.Send(b.api, req)
	if b.described != nil {
		b.described.Check(t, got)
	}

	var out strings.Builder
	fmt.Fprintf(&out, "%d", got.Status)
	for _, name := range slices.Sorted(maps.Keys(got.Got)) {
		fmt.Fprintf(&out, "\n%s: %s", name, got.Got.Get(name))
	}
	body := receipts.ReplaceAllStringFunc(got.Answer, func(text string) string {
		b.saved = append(b.saved, receipts.FindStringSubmatch(text)[1])
		return fmt.Sprintf(`"receipt":"RECEIPT%d"`, len(b.saved))
	})
	return strings.TrimSpace(out.String()+"\n"+body) + "\n"
}

// receipts finds receipts in answers. They are random, so that scripts write
// RECEIPT1 for the first one, RECEIPT2 for the second one.
var receipts = regexp.MustCompile(`"receipt":"([A-Za-z0-9_-]{1,64})"`)

func TestScripts(t *testing.T) {
	t.Parallel()
	datatest.Walk(t, "testdata/script/*.txt", func(t *testing.T, path string) {
		t.Parallel()
		var b *bench
		datatest.RunTest(t, path, func(t *testing.T, d *datatest.TestData) string {
			switch d.Cmd {
			case "rules":
				b = newBench(t, d.Input)
				b.described = apitest.Load(t)
				return ""
			case "call":
				return b.call(t, d.Input)
			case "wait":
				b.now = b.now.Add(d.Duration(t))
				return ""
			}
			d.Fatalf(t, "no such command: %s", d.Cmd)
			return ""
		})
	})
}

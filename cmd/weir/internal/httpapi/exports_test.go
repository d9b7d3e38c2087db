package httpapi_test

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/httpapi"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/internal/journal"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

const exported = `
rules:
  - name: tokens
    per: [team, used]
    sum: tokens
    limit: 1_000_000
    window: day
    export: true
  - name: views
    per: [team]
    window: {cells: 1h, n: 4}
  - name: by-plan
    per: [team]
    limit: {by: plan, pro: 5}
    window: {bucket: 1m}
    export: true
`

// exportLine is a line of an export.
type exportLine struct {
	Attributes map[string]string
	Used, Held int64
	Quota      *int64
	Start, End time.Time

	Complete      *bool
	Keys, Unknown int64
	After         string
}

// exports returns the lines of an export.
func exports(t *testing.T, h http.Handler, query string) (lines []exportLine, last exportLine) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/export?"+query, nil))
	if w.Code != 200 {
		t.Fatalf("%s: got %d %s", query, w.Code, w.Body)
	}
	for line := range strings.Lines(w.Body.String()) {
		var l exportLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		lines = append(lines, l)
	}
	last = lines[len(lines)-1]
	if last.Complete == nil {
		t.Fatalf("%s: the last line is %+v", query, last)
	}
	trailer := w.Result().Trailer
	if got, want := trailer.Get("Weir-Complete"), fmt.Sprint(*last.Complete); got != want {
		t.Errorf("%s: got trailer %v, want %s", query, trailer, want)
	}
	if trailer.Get("Weir-After") != last.After || trailer.Get("Weir-Keys") != fmt.Sprint(last.Keys) {
		t.Errorf("%s: got trailer %v, and last line %+v", query, trailer, last)
	}
	return lines[:len(lines)-1], last
}

// TestExport exports the keys of rules in memory, by pages and in both formats.
func TestExport(t *testing.T) {
	t.Parallel()
	now := scripttest.Start
	engine, _ := scripttest.NewEngine(t, exported, func() window.Instant { return window.At(now) })
	api := httpapi.New(namespace.Only(engine), httpapi.Config{})
	post := func(body string) {
		t.Helper()
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/take", strings.NewReader(body)))
		if w.Code != 200 {
			t.Fatalf("%s: got %d %s", body, w.Code, w.Body)
		}
	}
	sum := int64(0)
	for i := range 2000 {
		post(fmt.Sprintf(`{"attributes":{"team":"t%d","used":"=1+\"1","tokens":"%d"}}`, i%1000, i))
		sum += int64(i)
	}

	lines, last := exports(t, api, "rule=tokens")
	check := func(lines []exportLine, start time.Time) {
		t.Helper()
		got, teams := int64(0), map[string]bool{}
		for _, l := range lines {
			got += l.Used
			if teams[l.Attributes["team"]] = true; l.Attributes["used"] != `=1+"1` || *l.Quota != 1_000_000 || !l.Start.Equal(start) || !l.End.Equal(start.AddDate(0, 0, 1)) {
				t.Fatalf("got %+v", l)
			}
		}
		if got != sum || len(teams) != 1000 || len(lines) != 1000 {
			t.Errorf("got %d tokens of %d teams in %d lines, want %d of 1000", got, len(teams), len(lines), sum)
		}
	}
	day := now.Truncate(24 * time.Hour)
	if check(lines, day); !*last.Complete || last.Keys != 1000 {
		t.Errorf("got %+v, want a complete export", last)
	}
	pages := 0
	for lines, last = exports(t, api, "rule=tokens&n=100"); !*last.Complete; pages++ {
		var more []exportLine
		more, last = exports(t, api, "rule=tokens&n=100&after="+last.After)
		lines = append(lines, more...)
	}
	if check(lines, day); pages < 2 {
		t.Errorf("got %d pages, want several", pages)
	}

	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/v1/export?rule=tokens", nil)
	r.Header.Set("Accept", "text/html, text/csv;q=0.5")
	api.ServeHTTP(w, r)
	rows, err := csv.NewReader(w.Body).ReadAll()
	if err != nil || len(rows) != 1001 || strings.Join(rows[0], " ") != "team attributes.used used held quota start end at" {
		t.Fatalf("got %d rows, error %v", len(rows), err)
	}
	if row := rows[1]; row[1] != `'=1+"1` || row[4] != "1000000" {
		t.Errorf("got row %q, want no formula", row)
	}
	if got := w.Result().Trailer.Get("Weir-Complete"); got != "true" {
		t.Errorf("got trailer %q", got)
	}

	now = now.AddDate(0, 0, 1)
	if lines, _ = exports(t, api, "rule=tokens"); len(lines) != 0 {
		t.Errorf("got %d lines in a new day, want none", len(lines))
	}
	lines, _ = exports(t, api, "rule=tokens&period=last")
	check(lines, day)

	for query, want := range map[string]string{
		"":                            `400 "rule: is missing`,
		"rule=nothing":                `404 "no such rule`,
		"rule=views":                  `409 "keys are not kept`,
		"rule=by-plan":                `409 "the level of a bucket`,
		"rule=tokens&period=may":      `400 "period: `,
		"rule=tokens&format=xml":      `400 "format: `,
		"rule=tokens&n=0":             `400 "n: `,
		"rule=tokens&after=x":         `400 "after: `,
		"rule=tokens&after=AAAAAAAAA": `400 "after: `,
		"rule=tokens&rule=tokens":     `400 "rule: is there twice`,
		"rule=tokens&team=a":          `400 "team: is unknown`,
	} {
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/export?"+query, nil))
		status, detail, _ := strings.Cut(want, " ")
		if got := w.Body.String(); fmt.Sprint(w.Code) != status || !strings.Contains(got, `"detail":`+detail) {
			t.Errorf("%s: got %d %s, want %s", query, w.Code, got, want)
		}
	}
}

// An export that the store does not answer is an error, in both formats: with a status of 200 it would look like one
// without keys.
func TestExportWhileLoading(t *testing.T) {
	t.Parallel()
	counts := memstore.New(memstore.WithJournal(journal.Secret{}))
	t.Cleanup(func() { counts.Close() })
	counts.Journal().Refuse(&store.OutageError{Reason: "loading", Err: errors.New("still being loaded"), RetryAfter: time.Second})
	api := httpapi.New(namespace.Only(scripttest.Engine(t, scripttest.Rules(t, exported), weir.WithStore(counts))), httpapi.Config{})
	for _, format := range []string{"ndjson", "csv"} {
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/export?rule=tokens&format="+format, nil))
		h := w.Header()
		if w.Code != http.StatusServiceUnavailable || h.Get("Retry-After") != "1" || h.Get("Content-Type") != "application/problem+json" || h.Get("Trailer") != "" {
			t.Errorf("%s: got %d %s, with %v", format, w.Code, w.Body, h)
		}
	}
}

// writer calls a function with each write.
type writer struct {
	*httptest.ResponseRecorder
	call func()
}

func (w writer) Write(b []byte) (int, error) {
	w.call()
	return w.ResponseRecorder.Write(b)
}

// TestExportsAtATime refuses the exports of a namespace that are too many. The tokens that are bound to it leave places to
// others.
func TestExportsAtATime(t *testing.T) {
	t.Parallel()
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte(access.Line("a", "a", access.Read, "default")+"\n"+access.Line("b", "b", access.Read, "default")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys := scripttest.Keys(t, tokens, access.Own{Name: "ops", Token: "ops", Scopes: access.All})
	engine, _ := scripttest.NewEngine(t, exported, func() window.Instant { return window.At(scripttest.Start) })
	api := httpapi.New(namespace.Only(engine), httpapi.Config{Auth: &access.Authenticator{Keys: keys}})
	begin := func(token string, w http.ResponseWriter) {
		r := httptest.NewRequest(http.MethodGet, "/v1/export?rule=tokens", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		api.ServeHTTP(w, r)
	}
	var got []int
	var during func(of []string)
	during = func(of []string) { // begins exports, each before the one before it ends
		if len(of) == 0 {
			return
		}
		w := httptest.NewRecorder()
		once := sync.OnceFunc(func() { during(of[1:]) })
		begin(of[0], writer{w, once})
		if once(); w.Code != 200 && w.Header().Get("Retry-After") != "5" {
			t.Errorf("got %v", w.Header())
		}
		got = append(got, w.Code)
	}
	during([]string{"a", "b", "a", "ops", "ops", "ops"})
	if slices.Reverse(got); fmt.Sprint(got) != "[200 200 429 200 200 429]" {
		t.Errorf("got %v", got)
	}
	during([]string{"a"})
	if got[len(got)-1] != 200 {
		t.Errorf("got %v afterwards", got)
	}
}

// An export ends, and leaves its place to others, when the token of its caller is revoked or bound to another namespace.
func TestExportOfRevokedToken(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]string{
		"revoked": "",
		"bound":   access.Line("ann", "ann", access.Read, "other") + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tokens := filepath.Join(t.TempDir(), "tokens")
			write := func(text string) {
				if err := os.WriteFile(tokens, []byte(text+access.Line("bob", "bob", access.Read, "default")+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(access.Line("ann", "ann", access.Read, "default") + "\n")
			keys := scripttest.Keys(t, tokens)
			engine, _ := scripttest.NewEngine(t, exported, func() window.Instant { return window.At(scripttest.Start) })
			const teams = 2000 // several parts
			for i := range teams {
				if _, err := engine.Take(t.Context(), weir.Request{Attributes: weir.Attributes("team", fmt.Sprint("t", i), "used", "x", "tokens", "1")}); err != nil {
					t.Fatal(err)
				}
			}
			api := httpapi.New(namespace.Only(engine), httpapi.Config{Auth: &access.Authenticator{Keys: keys}})
			export := func(token string, each func()) (keys int64, complete bool) {
				r := httptest.NewRequest(http.MethodGet, "/v1/export?rule=tokens", nil)
				r.Header.Set("Authorization", "Bearer "+token)
				w := httptest.NewRecorder()
				api.ServeHTTP(writer{w, each}, r)
				lines := strings.Split(strings.TrimSpace(w.Body.String()), "\n")
				var last exportLine
				if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Complete == nil || last.Keys != int64(len(lines)-1) {
					t.Fatalf("got %d lines, the last %s", len(lines), lines[len(lines)-1])
				}
				return last.Keys, *last.Complete
			}
			revoke := sync.OnceFunc(func() {
				write(after)
				if _, err := keys.Reload(); err != nil {
					t.Error(err)
				}
			})
			if keys, complete := export("ann", revoke); complete || keys == 0 || keys > teams/2 {
				t.Errorf("got %d keys, complete: %t, want the first part", keys, complete)
			}
			if keys, complete := export("bob", func() {}); !complete || keys != teams {
				t.Errorf("got %d keys, complete: %t for another token", keys, complete)
			}
		})
	}
}

// deadlines is an answer that keeps the deadlines of its writes.
type deadlines struct {
	*httptest.ResponseRecorder
	all *[]time.Time
}

func (d deadlines) SetReadDeadline(time.Time) error { return nil }

func (d deadlines) SetWriteDeadline(until time.Time) error {
	*d.all = append(*d.all, until)
	return nil
}

// While an export looks for its first keys it has no deadline, which over HTTP/2 would reset the stream.
func TestExportThatFindsLate(t *testing.T) {
	t.Parallel()
	engine, _ := scripttest.NewEngine(t, exported, func() window.Instant { return window.At(scripttest.Start) })
	var all []time.Time
	w := deadlines{httptest.NewRecorder(), &all}
	httpapi.New(namespace.Only(engine), httpapi.Config{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/export?rule=tokens", nil))
	if w.Code != 200 || len(all) == 0 || !all[0].IsZero() || all[len(all)-1].IsZero() {
		t.Errorf("got %d and the deadlines %v, want none at first, and one at last", w.Code, all)
	}
}

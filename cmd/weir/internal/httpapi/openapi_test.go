package httpapi_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/apitest"
	"github.com/weirhq/weir/cmd/weir/internal/audit"
	"github.com/weirhq/weir/cmd/weir/internal/events"
	"github.com/weirhq/weir/cmd/weir/internal/httpapi"
	registers "github.com/weirhq/weir/cmd/weir/internal/kept"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/overrides"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// TestOpenAPIOperations compares the calls with the operations of the description,
// and the scopes that they need.
func TestOpenAPIOperations(t *testing.T) {
	t.Parallel()
	described := apitest.Load(t).Operations()
	calls := newBench(t, posts).api.Calls()
	for call, need := range calls {
		if !strings.Contains(call, " ") {
			call = "GET " + call // every method; the description has GET
		}
		if got, ok := described[call]; !ok || got != need.String() {
			t.Errorf("%s: the description has scopes %q (%v), want %q", call, got, ok, need)
		}
	}
	for operation := range described {
		_, path, _ := strings.Cut(operation, " ")
		_, known := calls[operation]
		_, any := calls[path]
		if strings.HasPrefix(path, "/v1/") && !known && !any {
			t.Errorf("the description has %s, and there is no such call", operation)
		}
	}
}

// described returns an API over the rules of the description's examples.
func described(t testing.TB, d *apitest.Description, c httpapi.Config, options ...weir.Option) *httpapi.API {
	t.Helper()
	return describedUpTo(t, d, 0, c, options...)
}

// describedUpTo is like described, with a limit for answers about decisions.
func describedUpTo(t testing.TB, d *apitest.Description, maxAnswer int64, c httpapi.Config, options ...weir.Option) *httpapi.API {
	t.Helper()
	now := func() time.Time { return scripttest.Start }
	tops := top.New(top.Config{Keys: 10, Now: now}, namespace.Default)
	engine, _ := scripttest.NewEngine(t, d.Rules(), func() window.Instant { return window.At(now()) }, append(options, weir.WithObserver(tops))...)
	space := namespace.New(namespace.Default, engine, maxAnswer, tops)
	keeping(space, now)
	space.SetSource(namespace.Source{File: "rules.yaml", Hash: "5f1f3b0c1c0c8f7a6d0d3b4d9f7d9b1c2f3e4a5b6c7d8e9f0a1b2c3d4e5f6a7b", Loaded: scripttest.Start})
	return httpapi.New(namespace.NewSet(space, namespace.New("broken", nil, 0, nil)), c)
}

// keeping makes n keep overrides and an audit trail in memory.
func keeping(n *namespace.Namespace, now func() time.Time) *namespace.Namespace {
	return n.WithKept(&namespace.Kept{
		Overrides: overrides.New(overrides.Config{Store: registers.NewMemory(nil), Now: now}), Audit: audit.New(audit.Config{Now: now}),
	})
}

// TestOpenAPIExamples makes the calls that the description has examples of, and
// compares the answers with the examples: under each of the two servers, and with
// the header that names a namespace.
func TestOpenAPIExamples(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"", "/ns/default"} {
		d := apitest.Load(t)
		api := described(t, d, httpapi.Config{})
		if n := replay(t, d, api, prefix); n < 20 {
			t.Errorf("got %d examples, want one for each operation", n)
		}
	}
}

// replay makes the calls that d has examples of, below a prefix, and compares the
// answers with the examples. It returns the number of calls.
func replay(t *testing.T, d *apitest.Description, api http.Handler, prefix string) int {
	t.Helper()
	examples := d.Examples(t, "/v1/")
	var given []string // pairs of receipts: in the document, and in the answer
	for _, e := range examples {
		r := httptest.NewRequest(e.Method, prefix+e.URL, strings.NewReader(strings.NewReplacer(given...).Replace(e.Body)))
		if prefix != "" {
			r.Header.Set("Weir-Namespace", "default")
		}
		x := d.Serve(t, api, r)
		d.Compare(t, &e, x)
		if written := d.Receipt(&e); written != "" {
			given = append(given, written, receiptIn(x.Answer))
		}
	}
	return len(examples)
}

// receiptIn returns the receipt in an answer.
func receiptIn(answer string) string {
	if m := receipts.FindStringSubmatch(answer); m != nil {
		return m[1]
	}
	return ""
}

// failing is a store with a fault.
type failing struct{ store.Store }

func (failing) Do(context.Context, []store.Call) error { return errors.New("broken") }
func (failing) Read(context.Context, *store.Op) (window.Reading, error) {
	return window.Reading{}, errors.New("broken")
}
func (failing) Forget(context.Context, *store.Op) error { return errors.New("broken") }
func (failing) Close() error                            { return nil }

// slowBody is a body that does not arrive in time.
type slowBody struct{}

func (slowBody) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

// TestOpenAPIStatuses gets each status of each operation, and each example of a
// problem. Every answer is as the description says.
func TestOpenAPIStatuses(t *testing.T) {
	t.Parallel()
	d := apitest.Load(t)
	plain := described(t, d, httpapi.Config{})
	loading := described(t, d, httpapi.Config{Resources: &access.ResourceLimits{Loading: func() bool { return true }}})
	failing := described(t, d, httpapi.Config{}, weir.WithStore(failing{}))
	tight := describedUpTo(t, d, 1, httpapi.Config{})
	for _, e := range d.Examples(t, "/v1/") {
		send := func(want int, to http.Handler, change func(*http.Request)) {
			t.Helper()
			r := httptest.NewRequest(e.Method, e.URL, strings.NewReader(e.Body))
			if change != nil {
				change(r)
			}
			if x := d.Serve(t, to, r); x.Status != want {
				t.Errorf("got %d, want %d\n%s", x.Status, want, x)
			}
		}
		path, _, _ := strings.Cut(e.URL, "?")
		gate := path == "/v1/gate"
		hasBody := e.Method == http.MethodPost || e.Method == http.MethodPut

		keys := newKeys(t)
		locked := described(t, d, httpapi.Config{Auth: &access.Authenticator{Keys: keys}})
		with := func(token string) func(*http.Request) {
			return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
		}
		send(401, locked, nil)
		need := d.Operations()[e.Method+" "+path]
		switch {
		case path == "/v1/batch":
			send(403, locked, with("read"))
		case need != "":
			send(403, locked, with(map[bool]string{true: "read", false: "record"}[need != "read"]))
		default:
			named := described(t, d, httpapi.Config{Auth: &access.Authenticator{Hosts: access.NewHosts(nil)}})
			send(403, named, func(r *http.Request) { r.Host = "weir.example" })
		}
		for range access.WrongTokens {
			send(401, locked, with("wrong"))
		}
		send(429, locked, with("wrong"))

		send(404, plain, func(r *http.Request) { r.URL.Path = "/ns/nowhere" + r.URL.Path })
		send(503, plain, func(r *http.Request) { r.URL.Path = "/ns/broken" + r.URL.Path })
		if gate {
			send(400, plain, func(r *http.Request) { r.URL.RawQuery = "status.deny=99" })
			send(413, tight, nil)
			send(418, plain, func(r *http.Request) {
				r.URL.RawQuery = "action=chat&team=red&header.tokens=X-Tokens&status.deny=418"
				r.Header.Set("X-Tokens", "many")
			})
			send(503, loading, nil)
		} else {
			send(400, plain, func(r *http.Request) { r.Header.Set("Weir-Namespace", "!") })
			send(405, plain, func(r *http.Request) { r.Method = http.MethodPatch })
		}
		if !gate {
			send(403, plain, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") })
		}
		if e.Method == http.MethodPost && d.Has(e.Method, path, 409) {
			with := func(attributes string) func(*http.Request) {
				body := strings.Replace(e.Body, "{", `{"idempotency_key":"k","idempotency_for":60,`, 1)
				body = strings.Replace(body, `"attributes":{`, `"attributes":{`+attributes, 1)
				return func(r *http.Request) {
					r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
				}
			}
			once := described(t, d, httpapi.Config{})
			send(200, once, with(""))
			send(200, once, with(""))
			send(409, once, with(`"other":1,`))
		}
		if d.Has(e.Method, path, 500) {
			send(500, failing, nil)
		}
		if hasBody {
			send(400, plain, func(r *http.Request) {
				r.Body = io.NopCloser(strings.NewReader(`{"attributes": {"action": "post", "user": ["ann", "bob"]}}`))
			})
			send(408, plain, func(r *http.Request) { r.Body = io.NopCloser(slowBody{}) })
			send(413, plain, func(r *http.Request) { r.ContentLength = 2 << 20 })
			send(415, plain, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain;charset=UTF-8") })
			send(503, loading, nil)
		}
	}
	for range 6 {
		d.Serve(t, plain, httptest.NewRequest(http.MethodGet, "/v1/gate?action=post&user=cat", nil))
	}
	d.Serve(t, plain, httptest.NewRequest(http.MethodGet, "/v1/export?rule=page-views", nil))
	d.Serve(t, plain, httptest.NewRequest(http.MethodGet, "/v1/export?rule=llm-tokens&format=csv", nil))
	d.Serve(t, plain, httptest.NewRequest(http.MethodDelete, "/v1/usage?rule=page-views&page=/new", nil))
	hub := events.New(events.Config{Keep: 10, Near: 0.8, Log: slog.New(slog.DiscardHandler)})
	hub.EndStreams()
	ended := described(t, d, httpapi.Config{Events: hub})
	d.Serve(t, ended, httptest.NewRequest(http.MethodGet, "/v1/events", nil)) // 503
	hub = events.New(events.Config{Keep: 10, Near: 0.8, Log: slog.New(slog.DiscardHandler)})
	gone, leave := context.WithCancel(t.Context())
	leave()
	d.Serve(t, described(t, d, httpapi.Config{Events: hub}), httptest.NewRequestWithContext(gone, http.MethodGet, "/v1/events?kind=denied,ban&rule=a&key=b", nil))
	replay(t, d, described(t, d, httpapi.Config{}), "")
	pairs, _ := scripttest.NewEngine(t, "rules: [{name: pairs, per: [a, b], limit: 1, window: 1h}]", func() window.Instant { return 0 })
	two := httpapi.New(namespace.NewSet(keeping(namespace.New(namespace.Default, pairs, 0, nil), time.Now)), httpapi.Config{})
	for _, a := range []string{"a", "b"} {
		body := `{"rule": "pairs", "attributes": {"` + a + `": "1"}, "limit": 5}`
		d.Serve(t, two, httptest.NewRequest(http.MethodPut, "/v1/overrides", strings.NewReader(body)))
	}
	if unseen := d.Unseen("/v1/"); len(unseen) > 0 {
		t.Errorf("no call had these:\n%s", strings.Join(unseen, "\n"))
	}
}

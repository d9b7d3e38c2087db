package httplimit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/guard"
	"github.com/weirhq/weir/headers"
	"github.com/weirhq/weir/httplimit"
	"github.com/weirhq/weir/internal/guardtest"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// ok answers every request.
var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "welcome") })

// get sends a request from an address with header fields, and returns the answer.
func get(h http.Handler, peer string, fields ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.RemoteAddr = peer
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := guardtest.Limiter(t, weir.Sliding(2, time.Minute))
		h := httplimit.Must(httplimit.Keys(m, httplimit.PeerIP, httplimit.Name("visits"))).Handler(ok)
		for i, want := range []string{`"visits";r=1`, `"visits";r=0`} {
			w := get(h, "192.0.2.1:1000")
			if w.Code != 200 || w.Header().Get("RateLimit") != want || w.Body.String() != "welcome\n" {
				t.Errorf("request %d: got %d %v %s, want RateLimit: %s", i+1, w.Code, w.Header(), w.Body, want)
			}
		}
		time.Sleep(15 * time.Second)
		w := get(h, "192.0.2.1:2000") // another connection of the same client
		const body = `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests","status":429,` +
			`"detail":"denied by limit visits","violated-policies":["visits"]}` + "\n"
		if w.Code != 429 || w.Body.String() != body {
			t.Errorf("got %d %s, want 429 %s", w.Code, w.Body, body)
		}
		for name, want := range map[string]string{
			"RateLimit": `"visits";r=0;t=45`, "RateLimit-Policy": `"visits";q=2;w=60`, "Retry-After": "45", "Content-Type": "application/problem+json",
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("got %s: %s, want %s", name, got, want)
			}
		}
		if w := get(h, "192.0.2.2:1000"); w.Code != 200 {
			t.Errorf("another client: got %d, want 200", w.Code)
		}
	})
}

// A request without a key is an error: it is not answered by a counter that all such
// requests share.
func TestNoKey(t *testing.T) {
	t.Parallel()
	m := guardtest.Limiter(t, weir.Sliding(1, time.Minute))
	for name, key := range map[string]func(*http.Request) string{
		"a header that is not there": httplimit.Header("X-Api-Key"),
		"an address that is none":    httplimit.PeerIP,
	} {
		w := get(httplimit.Must(httplimit.Keys(m, key)).Handler(ok), "@")
		if w.Code != 400 || !strings.Contains(w.Body.String(), "the call has no key for its limit") {
			t.Errorf("%s: got %d %s, want 400", name, w.Code, w.Body)
		}
	}
	if r, err := m.Check(t.Context(), ""); err != nil || r.Used != 0 {
		t.Errorf("got %+v %v, want nothing counted", r, err)
	}

	e := guardtest.Engine(t, []rule.Rule{{Name: "posts", Per: []string{"user"}, Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Minute)}}, nil)
	h := httplimit.Must(httplimit.Rules(e, func(r *http.Request, list []weir.Attribute) []weir.Attribute {
		return append(list, weir.Attribute{Name: "user", Value: r.Header.Get("X-User")})
	})).Handler(ok)
	w := get(h, "192.0.2.1:1")
	if w.Code != 400 || !strings.Contains(w.Body.String(), "attribute user is empty") {
		t.Errorf("got %d %s, want 400", w.Code, w.Body)
	}
	for _, want := range []int{200, 429} {
		if w := get(h, "192.0.2.1:1", "X-User", "ann"); w.Code != want {
			t.Errorf("got %d, want %d", w.Code, want)
		}
	}
}

// Constructors refuse what cannot be meant.
func TestArguments(t *testing.T) {
	t.Parallel()
	m, members := guardtest.Limiter(t, weir.Sliding(1, time.Minute)), guardtest.Limiter(t, weir.Members(1, time.Minute))
	e := guardtest.Engine(t, []rule.Rule{}, nil)
	none := func(_ *http.Request, list []weir.Attribute) []weir.Attribute { return list }
	keys := func(l *weir.Limiter, k func(*http.Request) string, options ...httplimit.Option) error {
		_, err := httplimit.Keys(l, k, options...)
		return err
	}
	rules := func(e *weir.Engine, a func(*http.Request, []weir.Attribute) []weir.Attribute) error {
		_, err := httplimit.Rules(e, a)
		return err
	}
	_, noNetwork := httplimit.ForwardedIP()
	_, badNetwork := httplimit.ForwardedIP("10.0.0.0/8", "10.0.0")
	for _, tc := range []struct {
		err  error
		want string
	}{
		{keys(m, nil), "httplimit: key: nil: want a function that returns the key of a request, such as httplimit.PeerIP"},
		{keys(nil, httplimit.PeerIP), "guard: limiter: nil or zero: make one with weir.NewLimiter or weir.MustLimiter"},
		{keys(members, httplimit.PeerIP), "guard: limiter: counts distinct, want a limiter of hits"},
		{keys(m, httplimit.PeerIP, httplimit.Name("")), ""},
		{rules(e, nil), "httplimit: attributes: nil: want a function that appends the attributes of a request"},
		{rules(nil, none), "guard: engine: nil or zero: make one with weir.NewEngine, or a client with client.New"},
		{noNetwork, "httplimit: trusted: no networks: want those of the proxies, such as 10.0.0.0/8"},
		{badNetwork, `httplimit: trusted: "10.0.0": want an address or a network such as 10.0.0.0/8`},
		{keys(m, httplimit.PeerIP, nil, httplimit.OnDenied(nil)), ""},
	} {
		got := ""
		if tc.err != nil {
			got = tc.err.Error()
		}
		if got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}

func TestForwardedIP(t *testing.T) {
	t.Parallel()
	key, err := httplimit.ForwardedIP("10.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ peer, forwarded, want string }{
		{"10.0.0.1:80", "203.0.113.9, 192.0.2.7", "192.0.2.7"}, // the first one is forged
		{"192.0.2.1:80", "203.0.113.9", "192.0.2.1"},           // not through a proxy
		{"10.0.0.1:80", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"},
		{"10.0.0.1:80", "", "10.0.0.1"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = tc.peer
		r.Header.Set("X-Forwarded-For", tc.forwarded)
		if got := key(r); got != tc.want {
			t.Errorf("%s, %q: got %q, want %q", tc.peer, tc.forwarded, got, tc.want)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.RemoteAddr = "[2001:db8::1]:80"
	if got := httplimit.PeerIP(r); got != "2001:db8::/64" {
		t.Errorf("got %q, want the first 64 bits", got)
	}
}

// The rules' outcome has its status and its body.
func TestOutcome(t *testing.T) {
	t.Parallel()
	e := guardtest.Engine(t, []rule.Rule{
		{Name: "logins", Per: []string{"account"}, Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Minute), Then: "captcha"},
	}, map[string]rule.Outcome{"captcha": {Status: 403, Body: []byte(`{"need_captcha":true}`)}})
	attributes := func(r *http.Request, list []weir.Attribute) []weir.Attribute {
		return append(list, weir.Attribute{Name: "account", Value: "ann"})
	}
	h := httplimit.Must(httplimit.Rules(e, attributes, httplimit.Headers(headers.Format{Dialect: headers.Legacy}))).Handler(ok)
	get(h, "192.0.2.1:1")
	w := get(h, "192.0.2.1:1")
	var body map[string]bool
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || !body["need_captcha"] || w.Code != 403 || w.Header().Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("got %d %v %s, want the outcome", w.Code, w.Header(), w.Body)
	}
	var rule, outcome string
	h = httplimit.Must(httplimit.Rules(e, attributes, httplimit.OnDenied(func(w http.ResponseWriter, _ *http.Request, c *guard.Call) {
		rule, outcome = c.Rule(), c.Decision().Outcome
		w.WriteHeader(http.StatusTeapot)
	}))).Handler(ok)
	if w := get(h, "192.0.2.1:1"); w.Code != http.StatusTeapot || rule != "logins" || outcome != "captcha" {
		t.Errorf("got %d, rule %q, outcome %q", w.Code, rule, outcome)
	}
}

// While the store cannot answer, the outage policy decides. The answer says so, and
// states no number that is made up; the observer is told.
func TestOutage(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		policy rule.Outage
		status int
		body   string
	}{
		{rule.OutageAllow, 200, "welcome"},
		{rule.OutageDeny, 503, "temporary-reduced-capacity"},
	} {
		seen := &observer{}
		m := guardtest.Limiter(t, weir.Sliding(1, time.Minute), weir.WithMaxKeys(1), weir.WithOutage(tc.policy), weir.WithObserver(seen))
		h := httplimit.Must(httplimit.Keys(m, httplimit.PeerIP)).Handler(ok)
		get(h, "192.0.2.1:1")
		w := get(h, "192.0.2.2:1") // there is no room for another key
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.body) {
			t.Errorf("%v: got %d %s", tc.policy, w.Code, w.Body)
		}
		if got := w.Header(); got.Get("Weir-Degraded") != "full" || got.Get("RateLimit") != "" {
			t.Errorf("%v: got %v, want the reason and no limit", tc.policy, got)
		}
		if seen.degraded != "full" {
			t.Errorf("%v: got %q, want the observer told", tc.policy, seen.degraded)
		}
	}
}

// observer keeps the reason of the last decision that was degraded.
type observer struct{ degraded store.Reason }

func (o *observer) Decided(_ context.Context, _ store.Verb, d *weir.Decision, _ time.Duration) {
	o.degraded = d.DegradedReason
}
func (o *observer) Failed(context.Context, store.Verb, error) {}
func (o *observer) Outage(context.Context, store.Verb, error) {}

// An error of the limiter is answered with 503, and with what OnError writes.
func TestError(t *testing.T) {
	t.Parallel()
	m := guardtest.Limiter(t, weir.Sliding(1, time.Minute))
	h := httplimit.Must(httplimit.Keys(m, httplimit.PeerIP)).Handler(ok)
	let := httplimit.Must(httplimit.Keys(m, httplimit.PeerIP, httplimit.OnError(func(w http.ResponseWriter, r *http.Request, _ error) {
		ok(w, r)
	}))).HandlerFunc(ok)
	m.Close()
	if w := get(h, "192.0.2.1:1"); w.Code != 503 || strings.Contains(w.Body.String(), "closed") {
		t.Errorf("got %d %s, want 503 without details", w.Code, w.Body)
	}
	if w := get(let, "192.0.2.1:1"); w.Code != 200 {
		t.Errorf("got %d, want what OnError answers", w.Code)
	}
}

// TestNameOfLimiter checks that a header has the name of the limiter, unless the middleware has one.
func TestNameOfLimiter(t *testing.T) {
	t.Parallel()
	l := guardtest.Limiter(t, weir.Sliding(10, time.Minute), weir.WithName("uploads"))
	for want, m := range map[string]*httplimit.Middleware{
		`"uploads"`: httplimit.Must(httplimit.Keys(l, httplimit.PeerIP)),
		`"posts"`:   httplimit.Must(httplimit.Keys(l, httplimit.PeerIP, httplimit.Name("posts"))),
	} {
		if got, _, _ := strings.Cut(get(m.Handler(ok), "192.0.2.1:1").Header().Get("RateLimit"), ";"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// The header has the limit that decides.
func TestSeveralLimits(t *testing.T) {
	t.Parallel()
	m := guardtest.Limiter(t, weir.Fixed(2, time.Minute), weir.And(weir.Fixed(3, time.Hour)))
	h := httplimit.Must(httplimit.Keys(m, httplimit.PeerIP, httplimit.Name("visits"))).Handler(ok)
	for i := range 3 {
		if got := get(h, "192.0.2.1:1").Header().Get("RateLimit-Policy"); got != `"visits";q=2;w=60` {
			t.Errorf("request %d: got %s, want the limit with the fewest hits left", i, got)
		}
	}
	if _, err := m.Refund(t.Context(), "192.0.2.1", 1); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Record(t.Context(), "192.0.2.1", 2); err != nil { // 3 of 2, and 3 of 3
		t.Fatal(err)
	}
	if got := get(h, "192.0.2.1:1").Header().Get("RateLimit-Policy"); got != `"visits";q=3;w=3600` {
		t.Errorf("got %s, want the limit with the longest wait", got)
	}
}

func TestCost(t *testing.T) {
	t.Parallel()
	m := guardtest.Limiter(t, weir.Sliding(10, time.Minute))
	h := httplimit.Must(httplimit.Keys(m, httplimit.PeerIP, httplimit.Cost(func(r *http.Request) int64 { return int64(len(r.URL.RawQuery)) }))).Handler(ok)
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?1234567", http.NoBody)); w.Code != 200 || w.Header().Get("RateLimit") != `"requests";r=3` {
		t.Errorf("got %d %v, want 3 left", w.Code, w.Header())
	}
	if w := get(h, "192.0.2.1:1"); w.Code != 200 { // no cost means one hit
		t.Errorf("got %d, want 200", w.Code)
	}
}

var exports = []rule.Rule{{Name: "exports", Per: []string{"ip"}, Quota: &rule.Quota{Value: 1}, Window: window.Held(30 * time.Second)}}

func byIP(r *http.Request, list []weir.Attribute) []weir.Attribute {
	return append(list, weir.Attribute{Name: "ip", Value: httplimit.PeerIP(r)})
}

// A request keeps its place as long as its answer is being written, however long that
// takes, and loses it then; also when the handler panics.
func TestInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := httplimit.Must(httplimit.Rules(guardtest.Engine(t, exports, nil), byIP))
		h := m.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(10 * time.Minute)
			if r.Header.Get("X-Panic") != "" {
				panic("the handler panics")
			}
			if f, isFlusher := w.(http.Flusher); !isFlusher {
				t.Error("got a writer that cannot flush")
			} else {
				f.Flush()
			}
			if n, err := io.Copy(w, strings.NewReader("done")); n != 4 || err != nil {
				t.Errorf("got %d %v, want the answer written", n, err)
			}
		})
		for _, panics := range []string{"", "yes"} {
			ended := make(chan *httptest.ResponseRecorder)
			go func() {
				var w *httptest.ResponseRecorder
				defer func() { _ = recover(); ended <- w }()
				w = get(h, "192.0.2.1:1", "X-Panic", panics)
			}()
			time.Sleep(9 * time.Minute)
			if w := get(h, "192.0.2.1:2"); w.Code != 429 || w.Header().Get("RateLimit-Policy") != `"exports";q=1;qu="concurrent-requests"` {
				t.Errorf("got %d %v, want 429 while the first is in flight", w.Code, w.Header())
			}
			if w := <-ended; panics == "" && w.Body.String() != "done" {
				t.Errorf("got %s", w.Body)
			}
			time.Sleep(time.Millisecond)
		}
		if w := get(h, "192.0.2.1:3"); w.Code != 200 {
			t.Errorf("got %d, want 200 when nothing is in flight", w.Code)
		}
	})
}

// A connection that the handler has taken over keeps its place until it is closed.
func TestHijack(t *testing.T) {
	t.Parallel()
	m := httplimit.Must(httplimit.Rules(guardtest.Engine(t, exports, nil), byIP))
	taken := make(chan net.Conn, 1)
	s := httptest.NewServer(m.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		taken <- c
	}))
	defer s.Close()
	status := func() int {
		answer, err := http.Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return answer.StatusCode
	}
	if got := status(); got != 101 {
		t.Fatalf("got %d, want 101", got)
	}
	if got := status(); got != 429 {
		t.Errorf("got %d, want 429 while the connection is open", got)
	}
	c := <-taken
	c.Close()
	c.Close()
	if got := status(); got != 101 {
		t.Errorf("got %d, want 101 after it is closed", got)
	}
	(<-taken).Close()
}

// A connection that a handler has lost, because it panicked, does not keep its place forever.
func TestHijackAndPanic(t *testing.T) {
	t.Parallel()
	settled := make(guardtest.Settles, 1)
	m := httplimit.Must(httplimit.Rules(guardtest.Engine(t, exports, nil, weir.WithObserver(settled)), byIP))
	s := httptest.NewServer(m.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, _, err := w.(http.Hijacker).Hijack(); err != nil {
			t.Error(err)
		}
		panic(http.ErrAbortHandler)
	}))
	defer s.Close()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: weir\r\n\r\n")
	for {
		select {
		case <-settled:
			return
		default:
			runtime.GC() // closes the connection
		}
	}
}

// A request that costs more or less than expected settles what it really cost.
func TestSetAttributes(t *testing.T) {
	t.Parallel()
	e := guardtest.Engine(t, []rule.Rule{{Name: "tokens", Per: []string{"team"}, Measure: window.Sum, Of: "tokens", Quota: &rule.Quota{Value: 1000}, Window: window.Sliding(time.Minute), Hold: 5 * time.Minute}}, nil)
	m := httplimit.Must(httplimit.Rules(e, func(_ *http.Request, list []weir.Attribute) []weir.Attribute {
		return append(list, weir.Attributes("team", "red", "tokens", "900")...)
	}))
	h := m.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if !httplimit.SetAttributes(r.Context(), weir.Attribute{Name: "tokens", Value: "640"}) {
			t.Error("got nothing held")
		}
	})
	get(h, "192.0.2.1:1")
	u, err := e.Usage(t.Context(), "tokens", weir.Attributes("team", "red"))
	if err != nil || u.Used != 640 || u.Holds != 0 {
		t.Errorf("got %d used, %d holds, %v; want 640 and none", u.Used, u.Holds, err)
	}
	if httplimit.SetAttributes(t.Context()) {
		t.Error("got something held in a context of no request")
	}
}

// The real cost is that of all middleware around a handler, each of which has counted the request.
func TestSetAttributesOfNested(t *testing.T) {
	t.Parallel()
	h := http.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		httplimit.SetAttributes(r.Context(), weir.Attribute{Name: "tokens", Value: "640"})
	}))
	engines := map[string]*weir.Engine{}
	for _, name := range []string{"model", "team"} {
		engines[name] = guardtest.Engine(t, []rule.Rule{{Name: name, Per: []string{"ip"}, Measure: window.Sum, Of: "tokens", Quota: &rule.Quota{Value: 1000}, Window: window.Sliding(time.Minute), Hold: 5 * time.Minute}}, nil)
		h = httplimit.Must(httplimit.Rules(engines[name], func(r *http.Request, list []weir.Attribute) []weir.Attribute {
			return append(byIP(r, list), weir.Attribute{Name: "tokens", Value: "900"})
		})).Handler(h)
	}
	get(h, "192.0.2.1:1")
	for name, e := range engines {
		if u, err := e.Usage(t.Context(), name, weir.Attributes("ip", "192.0.2.1")); err != nil || u.Used != 640 || u.Holds != 0 {
			t.Errorf("%s: got %d used, %d holds, %v; want 640 and none", name, u.Used, u.Holds, err)
		}
	}
}

// The cost that a handler states too late, because a time-out has answered its request, is not that of another request.
func TestSetAttributesTooLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := guardtest.Engine(t, []rule.Rule{{Name: "tokens", Per: []string{"ip"}, Measure: window.Sum, Of: "tokens", Quota: &rule.Quota{Value: 1000}, Window: window.Sliding(time.Hour), Hold: 5 * time.Minute}}, nil)
		m := httplimit.Must(httplimit.Rules(e, func(r *http.Request, list []weir.Attribute) []weir.Attribute {
			return append(byIP(r, list), weir.Attribute{Name: "tokens", Value: "10"})
		}))
		h := m.Handler(http.TimeoutHandler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Slow") == "" {
				time.Sleep(9 * time.Second)
				return
			}
			time.Sleep(15 * time.Second)
			httplimit.SetAttributes(r.Context(), weir.Attribute{Name: "tokens", Value: "900"})
		}), 10*time.Second, ""))
		if w := get(h, "192.0.2.1:1", "X-Slow", "yes"); w.Code != http.StatusServiceUnavailable {
			t.Errorf("got %d, want the answer of the time-out", w.Code)
		}
		if w := get(h, "192.0.2.2:1"); w.Code != http.StatusOK {
			t.Errorf("got %d", w.Code)
		}
		if u, err := e.Usage(t.Context(), "tokens", weir.Attributes("ip", "192.0.2.2")); err != nil || u.Used != 10 {
			t.Errorf("got %d used, %v; want the 10 that it held", u.Used, err)
		}
	})
}

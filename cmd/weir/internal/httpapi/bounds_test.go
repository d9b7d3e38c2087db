package httpapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/httpapi"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/window"
)

// bounded returns an API with resource limits, and its engine.
func bounded(t *testing.T, b *access.ResourceLimits) (*httpapi.API, *weir.Engine) {
	t.Helper()
	engine, _ := scripttest.NewEngine(t, posts, func() window.Instant { return window.At(scripttest.Start) })
	return httpapi.New(namespace.Only(engine), httpapi.Config{Resources: b}), engine
}

// A request beyond a bound gets 503 and Retry-After, and counts nothing. The bound
// does not forget what began.
func TestOverload(t *testing.T) {
	t.Parallel()
	var shed []string
	b := &access.ResourceLimits{Requests: 1, Memory: 200 << 10, Shed: func(bound string) { shed = append(shed, bound) }}
	api, _ := bounded(t, b)
	call := func(method, path, body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
		return w
	}
	post := func(path, body string) *httptest.ResponseRecorder { return call(http.MethodPost, path, body) }
	const take = `{"attributes":{"action":"post","user":"42"}}`
	if err := b.Begin(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"POST /v1/take", "POST /v1/record", "POST /v1/explain", "POST /v1/gate?action=post&user=42", "POST /v1/batch", "PUT /v1/overrides", "POST /v1/set",
		"GET /v1/usage?rule=posts&user=42", "DELETE /v1/usage?rule=posts&user=42", "GET /v1/rules", "GET /v1/top?rule=posts", "GET /v1/denials?rule=posts",
		"GET /v1/overrides", "DELETE /v1/overrides?rule=posts&user=42", "GET /v1/audit",
	} {
		method, path, _ := strings.Cut(path, " ")
		w := call(method, path, take)
		if w.Code != 503 || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), "--max-requests") {
			t.Errorf("%s: got %d %v %s, want 503 with a wait", path, w.Code, w.Header(), w.Body)
		}
	}
	b.End()
	large := take + strings.Repeat(" ", 300<<10)
	if w := post("/v1/take", large); w.Code != 503 || !strings.Contains(w.Body.String(), "--max-request-memory") {
		t.Errorf("a large body: got %d %s, want 503", w.Code, w.Body)
	}
	if w := post("/v1/batch", `{"requests":[`+strings.Repeat(take+",", 200)+take+`]}`); w.Code != 503 {
		t.Errorf("a large batch: got %d %s, want 503", w.Code, w.Body)
	}
	if got := strings.Join(shed, " "); got != strings.Repeat("requests ", 15)+"memory memory" {
		t.Errorf("got %s counted, want each refusal", got)
	}
	if w := post("/v1/take", take); w.Code != 200 || !strings.Contains(w.Body.String(), `"used":1,`) {
		t.Errorf("got %d %s, want the first hit", w.Code, w.Body)
	}
	if requests, memory := b.Now(); requests != 0 || memory != 0 {
		t.Errorf("got %d requests and %d bytes after all, want none", requests, memory)
	}
}

// A client that sends a large body sees why it was refused: the body is read to
// its end.
func TestRefusedBodyIsRead(t *testing.T) {
	t.Parallel()
	b := &access.ResourceLimits{Memory: 1 << 10}
	api, _ := bounded(t, b)
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	for _, size := range []int{1 << 20, 3 << 19} { // refused for its memory, and for its size
		conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		fmt.Fprintf(conn, "POST /v1/take HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", size)
		if _, err := conn.Write(make([]byte, size)); err != nil {
			t.Fatalf("%d bytes: got %v while sending, want the answer", size, err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%d bytes: got %v, want an answer", size, err)
		}
		resp.Body.Close()
		if want := map[bool]int{true: 413, false: 503}[size > 1<<20]; resp.StatusCode != want {
			t.Errorf("%d bytes: got %d, want %d", size, resp.StatusCode, want)
		}
	}
}

// The bound of an answer counts control characters, which take six bytes in JSON, and only where there are some: one
// that a user of a batch has chosen does not make the batch too large.
func TestAnswerOfEscapes(t *testing.T) {
	t.Parallel()
	engine, _ := scripttest.NewEngine(t, posts, func() window.Instant { return window.At(scripttest.Start) })
	api := httpapi.New(namespace.NewSet(namespace.New(namespace.Default, engine, 4000, nil)), httpapi.Config{})
	take := func(user string) string { return `{"attributes":{"action":"post","user":"` + user + `"}}` }
	batch := func(user string) string {
		return `{"requests":[` + strings.Repeat(take(strings.Repeat("x", 900))+",", 2) + take(user) + `]}`
	}
	for _, tc := range []struct {
		path, body string
		want       int
	}{
		{"/v1/take", take(strings.Repeat("x", 900)), 200},
		{"/v1/take", take(strings.Repeat(`\u0001`, 900)), 413},
		{"/v1/batch", batch("ann"), 200},
		{"/v1/batch", batch(`\u0001`), 200},
		{"/v1/batch", batch(`\"`), 200},
		{"/v1/batch", batch(`\u00e9`), 200},
		{"/v1/batch", batch(strings.Repeat(`\u0001`, 900)), 413},
	} {
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequest(http.MethodPost, tc.path, strings.NewReader(tc.body)))
		if w.Code != tc.want {
			t.Errorf("%s …%s: got %d and %d bytes, want %d", tc.path, tc.body[len(tc.body)-20:], w.Code, w.Body.Len(), tc.want)
		}
	}
}

// pausing is a writer of answers that calls during for each part.
type pausing struct {
	*httptest.ResponseRecorder
	during func()
}

func (p pausing) Write(b []byte) (int, error) {
	p.during()
	return p.ResponseRecorder.Write(b)
}

// An explanation with long keys has memory reserved until the client has read it, and keeps no other requests away
// meanwhile.
func TestSlowReaderOfExplanation(t *testing.T) {
	t.Parallel()
	src := "rules: ["
	for i := range 100 {
		src += fmt.Sprintf("{name: rule-%d, per: [user], limit: 9, window: 1h},", i)
	}
	engine, _ := scripttest.NewEngine(t, src+"]", func() window.Instant { return window.At(scripttest.Start) })
	b := &access.ResourceLimits{Requests: 1, Memory: 2 << 20}
	set := namespace.NewSet(namespace.New(namespace.Default, engine, 1<<20, nil))
	explain := func(user string, during func()) int {
		w := pausing{httptest.NewRecorder(), during}
		r := httptest.NewRequest(http.MethodPost, "/v1/explain", strings.NewReader(`{"attributes":{"user":"`+user+`"}}`))
		httpapi.New(set, httpapi.Config{Resources: b}).ServeHTTP(w, r)
		return w.Code
	}
	parts := 0
	code := explain(strings.Repeat("x", 1000), func() {
		parts++
		if requests, memory := b.Now(); requests != 0 || memory < 200_000 {
			t.Errorf("part %d: got %d requests and %d bytes reserved, want none and those of 100 keys", parts, requests, memory)
		}
	})
	if code != http.StatusOK || parts < 2 {
		t.Errorf("got status %d and %d parts, want several", code, parts)
	}
	if requests, memory := b.Now(); requests != 0 || memory != 0 {
		t.Errorf("got %d requests and %d bytes after all, want none", requests, memory)
	}
	set = namespace.NewSet(namespace.New(namespace.Default, engine, 50_000, nil))
	if got := explain(strings.Repeat("x", 1000), func() {}); got != http.StatusRequestEntityTooLarge {
		t.Errorf("got status %d for more than the largest answer, want 413", got)
	}
}

// The rules in force are shown and explained however many there are, in parts that take little memory.
func TestManyRulesAreShown(t *testing.T) {
	t.Parallel()
	const n = 3000
	src := "rules: ["
	for i := range n {
		src += fmt.Sprintf("{name: rule-%d, when: {page: page-%d}, per: [user], limit: 9, window: 1h},", i, i)
	}
	engine, _ := scripttest.NewEngine(t, src+"]", func() window.Instant { return window.At(scripttest.Start) })
	api := httpapi.New(namespace.Only(engine), httpapi.Config{Resources: &access.ResourceLimits{Memory: 2 << 20}})
	w := httptest.NewRecorder()
	api.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/rules", nil))
	var got struct{ Rules []struct{ Name, Rule string } }
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK || len(got.Rules) != n || got.Rules[n-1].Name != fmt.Sprint("rule-", n-1) {
		t.Errorf("got status %d, %d rules and error %v, want %d rules", w.Code, len(got.Rules), err, n)
	}
	w = httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/v1/explain", strings.NewReader(`{"attributes":{"page":"page-7","user":"42"}}`))
	r.Header.Set("Content-Type", "application/json")
	api.ServeHTTP(w, r)
	got.Rules = nil
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK || len(got.Rules) != n || got.Rules[n-1].Rule != fmt.Sprint("rule-", n-1) {
		t.Errorf("got status %d, %d explanations and error %v, want %d", w.Code, len(got.Rules), err, n)
	}
}

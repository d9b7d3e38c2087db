package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/access"
)

// answered is an answer to a batch.
type answered struct {
	status  int
	Answers []struct {
		Allowed bool
		Problem *struct{ Status int }
	}
}

// honest is a request that is admitted.
const honest = `{"attributes":{"action":"post","user":"ann"}}`

// sendBatch sends a batch with honest requests before and after a text.
func sendBatch(t *testing.T, api http.Handler, text string) (a answered) {
	t.Helper()
	w := httptest.NewRecorder()
	api.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/batch", strings.NewReader(`{"requests":[`+honest+`,`+text+`,`+honest+`]}`)))
	a.status = w.Code
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		t.Fatalf("%q: got %q, want JSON", text, w.Body)
	}
	return a
}

// nested returns lists in lists.
func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// A request that a single call would refuse has a problem of its own in a batch, and the honest requests around it are
// counted.
func TestBatchFaults(t *testing.T) {
	t.Parallel()
	const with = `{"attributes":{"action":"post","user":"bob"},`
	for _, bad := range []string{
		`{"attributes":{` + many(65) + `}}`,
		`{"attributes":{` + many(5000) + `}}`,
		`{"attributes":{"user":"` + strings.Repeat("x", 1025) + `"}}`,
		`{"attributes":{"` + strings.Repeat("x", 1025) + `":1}}`,
		`{"attributes":{"user":["ann","bob"]}}`,
		`{"attributes":{"user":{"a":[{},null,-1.5e3,"\u00e9\\"]}}}`,
		`{"attributes":{"user":null}}`,
		`{"attributes":{"user":1e2000}}`,
		`{"attributes":{"user":"\ud83d"}}`,
		`{"attributes":{"user":"\ud83d\u0041"}}`,
		"{\"attributes\":{\"user\":\"\xff\"}}",
		`{"attributes":{"":1}}`,
		`{"attributes":{"user":1,"user":2}}`,
		`{"attributes":` + nested(90) + `}`,
		with + `"hits":-1}`,
		with + `"hits":1.5}`,
		with + `"hits":"1"}`,
		with + `"hits":0,"feedback":"a"}`,
		with + `"verb":"drop"}`,
		with + `"verb":"settle","receipt":"x"}`,
		with + `"verb":"settle"}`,
		with + `"idempotency_key":"` + strings.Repeat("k", 200) + `"}`,
		with + `"idempotency_for":5}`,
		with + `"Hits":1}`,
		with + `"hits":1,"hits":1}`,
		`{}`, `null`, `[]`, `"x"`, `7`, `true`,
	} {
		api, _ := bounded(t, nil)
		a := sendBatch(t, api, bad)
		if a.status != 200 || len(a.Answers) != 3 || !a.Answers[0].Allowed || !a.Answers[2].Allowed {
			t.Errorf("%.60s: got %+v, want that the others are admitted", bad, a)
			continue
		}
		if p := a.Answers[1].Problem; p == nil || p.Status != 400 {
			t.Errorf("%.60s: got %+v, want a problem with status 400", bad, a.Answers[1])
		}
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/usage?rule=posts&user=ann", nil))
		if !strings.Contains(w.Body.String(), `"used":2,`) {
			t.Errorf("%.60s: got %s, want two hits", bad, w.Body)
		}
	}
}

// What is wrong with the message refuses all of it, and nothing is counted.
func TestBatchRefused(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		`{"attributes":{"user":1}`, `{"attributes":{"user":01}}`, `{"attributes":{"user":tru}}`, `{"hits":-1,"a":"\x"}`, "{\"hits\":-1,\"a\":\"\t\"}", `{"hits":-1]`, `{"hits":-1},`,
		`{"attributes":` + nested(1<<18) + `}`, strings.Repeat(honest+",", 999) + `{}`,
	} {
		api, _ := bounded(t, nil)
		if a := sendBatch(t, api, bad); a.status != 400 || a.Answers != nil {
			t.Errorf("%.60s: got %+v, want 400", bad, a)
		}
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/usage?rule=posts&user=ann", nil))
		if !strings.Contains(w.Body.String(), `"used":0,`) {
			t.Errorf("%.60s: got %s, want no hits", bad, w.Body)
		}
	}
}

// A fault does not repeat long names and texts: an answer takes memory until the client has read it.
func TestFaultsAreShort(t *testing.T) {
	t.Parallel()
	api, _ := bounded(t, nil)
	long := strings.Repeat("x", 100_000)
	for body, want := range map[string]int{
		`{"` + long + `":1}`:                      400,
		`{"requests":[{"` + long + `":1}]}`:       200,
		`{"requests":[{"verb":"` + long + `"}]}`:  200,
		`{"requests":[{"a":{"` + long + `":!`:     400,
		`{"requests":[{"a":{"` + long + `":1}}]}`: 200,
	} {
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/batch", strings.NewReader(body)))
		if w.Code != want || w.Body.Len() > 1000 {
			t.Errorf("%.40s: got status %d and %d bytes, want %d and a short text", body, w.Code, w.Body.Len(), want)
		}
	}
	for _, path := range []string{"/" + long, "/v1/export?" + long + "=1", "/v1/usage?rule=posts&" + long + "%2"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL.Path, r.URL.RawQuery, _ = strings.Cut(path, "?")
		api.ServeHTTP(w, r)
		if w.Code/100 != 4 || w.Body.Len() > 1000 {
			t.Errorf("%.40s: got status %d and %d bytes, want a short text", path, w.Code, w.Body.Len())
		}
	}
}

// The text of many faults is counted as memory.
func TestBatchOfFaults(t *testing.T) {
	t.Parallel()
	faults := strings.Repeat(`{"`+strings.Repeat("x", 900)+`":1},`, 900)
	for memory, want := range map[int64]int{8 << 20: 503, 16 << 20: 200} {
		b := &access.ResourceLimits{Memory: memory}
		api, _ := bounded(t, b)
		if a := sendBatch(t, api, faults+honest); a.status != want || want == 200 && (len(a.Answers) != 903 || a.Answers[899].Problem == nil || !a.Answers[902].Allowed) {
			t.Errorf("with %d bytes: got %d and %d answers, want %d", memory, a.status, len(a.Answers), want)
		}
		if requests, memory := b.Now(); requests != 0 || memory != 0 {
			t.Errorf("got %d requests and %d bytes after all, want none", requests, memory)
		}
	}
}

// An answer has nothing of another caller's, of whom the memory was before: also where one request is all, and no
// rules can decide it.
func TestBatchAfterOtherCalls(t *testing.T) {
	t.Parallel()
	api, _ := bounded(t, nil)
	for range 100 {
		sendBatch(t, api, honest)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/batch", strings.NewReader(`{"requests":[{"attributes":{"user":"bob"},"feedback":"x"}]}`))
		w := httptest.NewRecorder()
		if api.ServeHTTP(w, r); !json.Valid(w.Body.Bytes()) || !strings.HasPrefix(w.Body.String(), `{"answers":[{"problem":`) {
			t.Fatalf("got %d %s, want a problem alone", w.Code, w.Body)
		}
	}
}

// FuzzBatch puts a text between honest requests: if that is JSON, they are admitted.
func FuzzBatch(f *testing.F) {
	for _, text := range []string{
		honest, `{"attributes":{"a":[1,{"b":null}]}}`, `{"hits":-1,"a":"\ud800\n"}`, "{\"attributes\":{\"a\":\"\xff\"}}", `{"a":01}`, `{"a":1e2000}`, `{}],"b":[{}`, `{},7`, "\t[ ] ", `{"a":"b]}`,
		`{"attributes":{"a":1},"verb":"record","hits":3},{"attributes":{"a":1},"verb":"refund"}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want []json.RawMessage
		whole := json.Unmarshal([]byte(`[`+honest+`,`+text+`,`+honest+`]`), &want) == nil
		if strings.Count(text, "[")+strings.Count(text, "{") > 90 || len(want) > 1000 {
			return
		}
		api, _ := bounded(t, nil)
		a := sendBatch(t, api, text)
		if !whole {
			if a.status != 400 {
				t.Fatalf("%q: got %+v, want 400", text, a)
			}
			return
		}
		if n := len(a.Answers); a.status != 200 || n != len(want) || a.Answers[0].Problem != nil || a.Answers[n-1].Problem != nil {
			t.Fatalf("%q: got %+v, want %d answers, the first and the last without a problem", text, a, len(want))
		}
		for i, w := range want {
			var alone answered
			r := httptest.NewRecorder()
			api.ServeHTTP(r, httptest.NewRequest(http.MethodPost, "/v1/batch", strings.NewReader(fmt.Sprintf(`{"requests":[%s]}`, w))))
			if err := json.Unmarshal(r.Body.Bytes(), &alone); err != nil || len(alone.Answers) != 1 || (alone.Answers[0].Problem != nil) != (a.Answers[i].Problem != nil) {
				t.Fatalf("%s: got %s alone and %+v among others", w, r.Body, a.Answers[i])
			}
		}
	})
}

package envoyrls_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/envoyrls"
)

// Bodies that are wrong get an error that names the place. None of them is counted, and
// their memory is given back.
func TestHostileJSON(t *testing.T) {
	t.Parallel()
	many := func(text string, n int) string { return strings.TrimSuffix(strings.Repeat(text+",", n), ",") }
	one := `{"entries":[{"key":"user","value":"ann"}]}`
	body := func(descriptors string) string { return `{"domain":"d","descriptors":[` + descriptors + `]}` }
	entries := func(n int) string { return `{"entries":[` + many(`{"key":"k{[","value":"\"{"}`, n) + `]}` }
	for name, tc := range map[string]struct {
		body, want string
		status     int
	}{
		"empty":                    {``, "body: not a RateLimitRequest in JSON", 400},
		"no object":                {`[]`, "body: not a RateLimitRequest in JSON", 400},
		"no descriptors":           {`{"domain":"d"}`, "descriptors: are missing", 400},
		"an empty descriptor":      {body(`{}`), "descriptors[0].entries: are missing", 400},
		"10,000 descriptors":       {body(many(one, 10_000)), "descriptors: are 10000: want at most 1000", 400},
		"340,000 descriptors":      {body(many(`{}`, 340_000)), "descriptors: are 340000: want at most 1000", 400},
		"10,000 entries":           {body(one + "," + entries(10_000)), "descriptors[1].entries: are 10000: want at most 64", 400},
		"a value of 1 MiB":         {body(`{"entries":[{"key":"user","value":"` + strings.Repeat("x", 1<<20-100) + `"}]}`), `"overallCode":"OVER_LIMIT"`, 429},
		"no UTF-8":                 {body(`{"entries":[{"key":"user","value":"` + "\xff\xe2\x82" + `"}]}`), `"overallCode":"OK"`, 200},
		"more than 1 MiB":          {strings.Repeat(" ", 1<<20+1), "the body is larger than 1 MiB", 413},
		"deep nesting":             {body(strings.Repeat("[", 500_000) + strings.Repeat("]", 500_000)), "body: not a RateLimitRequest in JSON", 400},
		"deep objects":             {body(strings.Repeat(`{"limit":`, 100_000)), "body: not a RateLimitRequest in JSON", 400},
		"deep unknown fields":      {`{"x":` + strings.Repeat(`{"x":`, 100_000), "body: not a RateLimitRequest in JSON", 400},
		"a number of 1 MB":         {`{"domain":"d","hitsAddend":` + strings.Repeat("9", 1_000_000) + `}`, "body: not a RateLimitRequest in JSON", 400},
		"a huge exponent":          {`{"domain":"d","hitsAddend":1e999999999}`, "body: not a RateLimitRequest in JSON", 400},
		"2^64-1 hits":              {body(`{"entries":[{"key":"user","value":"ann"}],"hitsAddend":"18446744073709551615"}`), "descriptors[0].hits_addend: 18446744073709551615: want at most", 400},
		"an unknown unit":          {body(`{"entries":[{"key":"user","value":"ann"}],"limit":{"requestsPerUnit":1,"unit":99}}`), "descriptors[0].limit.unit: 99", 400},
		"a key twice":              {`{"domain":"d","domain":"e"}`, "body: not a RateLimitRequest in JSON", 400},
		"descriptors twice":        {`{"domain":"d","descriptors":[` + one + `],"descriptors":[` + one + `]}`, "body: not a RateLimitRequest in JSON", 400},
		"1,000 descriptors":        {body(many(strings.ReplaceAll(one, "ann", "bob"), 1000)), `"OVER_LIMIT"`, 429},
		"64 entries with brackets": {body(strings.Replace(entries(64), `"k{["`, `"user"`, 1)), `"overallCode":"OK"`, 200},
	} {
		for _, told := range []bool{true, false} {
			t.Run(fmt.Sprint(name, told), func(t *testing.T) {
				t.Parallel()
				api, engine := newAPI(t, perUser)
				resources := &access.ResourceLimits{Memory: 64 << 20, Requests: 10}
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/json", strings.NewReader(tc.body))
				if !told { // chunks, whose sum is not known
					r.Body, r.ContentLength = io.NopCloser(iotest.HalfReader(strings.NewReader(tc.body))), -1
				}
				w := httptest.NewRecorder()
				api.HTTP(nil, resources).ServeHTTP(w, r)
				text := strings.ReplaceAll(strings.ReplaceAll(w.Body.String(), `", "`, `","`), `": "`, `":"`)
				if w.Code != tc.status || !strings.Contains(text, tc.want) {
					t.Errorf("got %d %.300s, want %d %s", w.Code, text, tc.status, tc.want)
				}
				if n := w.Body.Len(); n > 1000 && w.Code == 400 {
					t.Errorf("got an error of %d bytes", n)
				}
				if requests, memory := resources.Now(); requests != 0 || memory != 0 {
					t.Errorf("got %d requests and %d bytes in use, want none", requests, memory)
				}
				if u, err := engine.Usage(t.Context(), "per-user", weir.Attributes("user", "ann")); err != nil || u.Used != 0 {
					t.Errorf("got %d hits of ann, %v, want none", u.Used, err)
				}
			})
		}
	}
}

// A value can have half of a surrogate pair, which JavaScript and Python write as an escape. It counts as U+FFFD.
func TestHalfOfASurrogatePair(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		`\ud800`: "\ufffd", `a\uDC00\ud83D`: "a\ufffd\ufffd", `\ud800\u0061`: "\ufffda", // halves
		`\ud83d\uDE00`: "\U0001f600", `\\ud800`: `\ud800`, `\\\ud800\n\"`: "\\\ufffd\n\"", // not, not, and one
	} {
		api, engine := newAPI(t, perUser)
		w := httptest.NewRecorder()
		body := `{"domain":"d","descriptors":[{"entries":[{"key":"user","value":"` + sent + `"}]}]}`
		api.HTTP(nil, nil).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/json", strings.NewReader(body)))
		if u, err := engine.Usage(t.Context(), "per-user", weir.Attributes("user", want)); w.Code != http.StatusOK || err != nil || u.Used != 1 {
			t.Errorf("%s: got %d %s, and %d hits of %q, %v, want one", sent, w.Code, w.Body, u.Used, want, err)
		}
	}
}

// Faults that are found before a body is read are also found afterwards. A body has no more messages
// than objects.
func FuzzJSON(f *testing.F) {
	api, engine := newAPI(f, perUser)
	for _, descriptor := range []string{`{"entries":[{"key":"user","value":"ann"}],"limit":{"unit":"DAY"}}`, `{}`, `{"entries":[{},{"key":"\"{"}]}`} {
		f.Add([]byte(`{"domain":"d","descriptors":[`), []byte(descriptor), []byte(`]}`), uint16(1001))
		f.Add([]byte(`{"domain":"d","descriptors":[`), []byte(descriptor), []byte(`]}`), uint16(900))
	}
	f.Add([]byte(`{"domain":"d","descriptors":[{},{"entries":[`), []byte(`{"key":"k","value":"]"}`), []byte(`]}]}`), uint16(65))
	f.Fuzz(func(t *testing.T, head, part, tail []byte, n uint16) {
		n %= 1100
		if len(part) > 1000 || n == 0 {
			return
		}
		text := slices.Concat(head, bytes.Repeat(append(slices.Clip(part), ','), int(n)-1), part, tail)
		objects, early := envoyrls.ExcessJSON(text)
		in := &rls.RateLimitRequest{}
		if protojson.Unmarshal(text, in) != nil {
			return
		}
		messages := 1 + len(in.Descriptors)
		for _, d := range in.Descriptors {
			messages += len(d.Entries)
		}
		if early == nil && len(text) >= 2000 && objects < messages {
			t.Fatalf("got %d objects, want at least %d", objects, messages)
		}
		if _, err := api.Answer(t.Context(), namespaceOf(engine), in); early != nil && err == nil {
			t.Fatalf("got %v before it is read, and no error afterwards", early)
		}
	})
}

// Large bodies are refused while others take the memory for requests, and all are while
// too many are decided. A call that is small needs no memory.
func TestJSONBounds(t *testing.T) {
	t.Parallel()
	api, _ := newAPI(t, perUser)
	resources := &access.ResourceLimits{Memory: 1 << 20, Requests: 1}
	ask := func(body string) int {
		w := httptest.NewRecorder()
		api.HTTP(nil, resources).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/json", strings.NewReader(body)))
		return w.Code
	}
	small := `{"domain":"d","descriptors":[{"entries":[{"key":"user","value":"ann"}]}]}`
	large := small + strings.Repeat(" ", 100<<10)
	objects := `{"domain":"d","descriptors":[` + strings.TrimSuffix(strings.Repeat(`{"entries":[{},{},{},{},{},{},{}]},`, 1000), ",") + `]}`
	if got := ask(large); got != 200 {
		t.Errorf("a large body: got %d, want 200", got)
	}
	if got := ask(objects); got != 503 {
		t.Errorf("8,000 objects of 256 bytes in 1 MiB: got %d, want 503", got)
	}
	descriptors := func(n int) string {
		return `{"domain":"d","descriptors":[` + strings.TrimSuffix(strings.Repeat(`{"entries":[{"key":"team","value":"a"}]},`, n), ",") + `]}`
	}
	for n, want := range map[int]int{200: 200, 350: 503} {
		if got := ask(descriptors(n)); got != want {
			t.Errorf("%d descriptors of 3 KiB in 1 MiB: got %d, want %d", n, got, want)
		}
	}
	all := access.Reservation{Resources: resources}
	if err := all.Reserve(1 << 20); err != nil {
		t.Fatal(err)
	}
	if got := ask(large); got != 503 {
		t.Errorf("a large body without memory: got %d, want 503", got)
	}
	if got := ask(small); got != 200 {
		t.Errorf("a small body without memory: got %d, want 200", got)
	}
	if err := resources.Begin(); err != nil {
		t.Fatal(err)
	}
	if got := ask(small); got != 503 {
		t.Errorf("with as many as are allowed: got %d, want 503", got)
	}
}

// Large bodies are parsed one at a time for each two processors. Small bodies wait for
// nobody, and a caller that gives up waits no longer.
func TestLargeJSONTakesTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api, engine := newAPI(t, perUser)
		small := `{"domain":"d","descriptors":[{"entries":[{"key":"user","value":"ann"}]}]}`
		large := strings.Replace(small, "ann", "bob", 1) + strings.Repeat(" ", 100<<10)
		begin := func(ctx context.Context, body string) (status func() int) {
			answer, done := httptest.NewRecorder(), make(chan struct{})
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/json", strings.NewReader(body))
			go func() {
				defer close(done)
				api.HTTP(nil, nil).ServeHTTP(answer, r)
			}()
			return func() int {
				synctest.Wait()
				select {
				case <-done:
					return answer.Code
				default:
					return 0 // it waits
				}
			}
		}
		turns := api.Turns()
		if got, want := cap(turns), max(1, runtime.GOMAXPROCS(0)/2); got != want {
			t.Errorf("got %d large bodies at the same time, want %d", got, want)
		}
		for range cap(turns) {
			turns <- struct{}{}
		}
		ctx, giveUp := context.WithCancel(t.Context())
		impatient, patient, other := begin(ctx, large), begin(t.Context(), large), begin(t.Context(), small)
		if impatient() != 0 || patient() != 0 {
			t.Fatalf("got %d and %d before their turn, want both to wait", impatient(), patient())
		}
		if got := other(); got != http.StatusOK {
			t.Errorf("a small body with them: got %d, want 200", got)
		}
		if giveUp(); impatient() < 400 {
			t.Errorf("a caller that gave up: got %d, want an error", impatient())
		}
		if u, err := engine.Usage(t.Context(), "per-user", weir.Attributes("user", "bob")); err != nil || u.Used != 0 {
			t.Errorf("got %d hits of bob, %v, want none before his turn", u.Used, err)
		}
		<-turns // another body has been parsed
		if got := patient(); got != http.StatusOK {
			t.Errorf("got %d after its turn began, want 200", got)
		}
		if got, want := len(turns), cap(turns)-1; got != want {
			t.Errorf("got %d turns taken afterwards, want %d", got, want)
		}
	})
}

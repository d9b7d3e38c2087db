package page

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
)

// MaxStreams is how many streams there are at the same time.
const MaxStreams = maxStreams

// HistoryBytes returns the memory that h counts, and SetHistoryBytes bounds it.
func HistoryBytes(h *History) int { return h.bytes }

func SetHistoryBytes(h *History, most int) { h.most = most }

// Sizes returns the sizes that a history counts for a line and a chunk, and those that they have.
func Sizes() (counted, have [2]uintptr) {
	return [2]uintptr{lineBytes, chunkBytes}, [2]uintptr{reflect.TypeFor[line]().Size(), reflect.TypeFor[chunk]().Size()}
}

// SumOf returns how often a rule matched in the last day.
func SumOf(h *History, space, rule string, now time.Time) int64 {
	_, sum := h.all[name{space, rule}].cells(now.Unix(), spans["24h"])
	return sum.Matched
}

// Calls returns "METHOD PATH" of each call that [Page.Handle] added, with its scopes.
func (p *Page) Calls() map[string]access.Scope {
	all := map[string]access.Scope{}
	for path, methods := range p.calls {
		for method, c := range methods {
			all[method+" "+path] = c.need
		}
	}
	return all
}

// WithHolder returns a function that calls a path for a holder, and returns the answer. With a body it posts that, or puts
// it where nothing is posted.
func WithHolder(p *Page, h *access.Holder) func(path string, body ...string) string {
	return func(path string, body ...string) string {
		method := http.MethodGet
		if len(body) > 0 {
			method = http.MethodPost
		}
		if _, posts := p.calls[path][method]; !posts {
			method = http.MethodPut
		}
		w, r := httptest.NewRecorder(), httptest.NewRequest(method, path, strings.NewReader(strings.Join(body, "")))
		r.Header.Set("If-Match", "any")
		if err := Call(p, h, w, r); err != nil {
			return err.Error()
		}
		return w.Body.String()
	}
}

// Call answers a call of a holder.
func Call(p *Page, h *access.Holder, w http.ResponseWriter, r *http.Request) error {
	space, err := p.c.Namespaces.Choose(nil, h, "")
	return p.calls[r.URL.Path][r.Method].do(&Caller{Holder: h, Name: h.Namespace, space: space, err: err}, w, r)
}

// SourceOf returns a text as a source that a policy allows.
var SourceOf = source

// Listed returns the texts of a list to which n decisions with a value were added.
func Listed(n int, value string) (list []json.RawMessage) {
	room := maxDecision
	var t texts
	for range n {
		t.add(decision{Attributes: attributes{{Name: "user", Value: value}}}, &room)
	}
	return t
}

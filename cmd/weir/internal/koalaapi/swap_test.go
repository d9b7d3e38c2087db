package koalaapi_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/koalaapi"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
)

// scripted is a store that calls a function instead of answering, or before.
type scripted struct {
	store.Store
	do func() error
}

func (s *scripted) Do(ctx context.Context, calls []store.Call) error {
	if err := s.do(); err != nil {
		return err
	}
	return s.Store.Do(ctx, calls)
}

// ask returns the answer to uri under rules, with a store that calls do; do is given
// the engine.
func ask(t *testing.T, rules, uri string, do func(*weir.Engine) error) string {
	t.Helper()
	counts := &scripted{Store: memstore.New()}
	defer counts.Close()
	e := scripttest.Engine(t, scripttest.Rules(t, rules), weir.WithStore(counts))
	counts.do = func() error { return do(e) }
	a := koalaapi.New(namespace.Only(e), koalaapi.Config{})
	w := httptest.NewRecorder()
	a.ServeHTTP(w, httptest.NewRequest(http.MethodGet, uri, nil))
	return w.Body.String()
}

// Each request is answered with a row of the rules that decided it, also when
// the ones before it were decided by others.
func TestRowIsOfTheRulesThatDecided(t *testing.T) {
	t.Parallel()
	other := scripttest.Rules(t, `{outcomes: {told: {allow: true, body: {Str_reason: staff}}}, rules: [{name: koala-1, code: 1, when: {uid: ann}, then: told}]}`)
	jobs := url.QueryEscape(`[{"Id":"0","Arg":"uid%3Dbob"},{"Id":"1","Arg":"uid%3Dann"}]`)
	got := ask(t, `{outcomes: {told: {status: 403}}, rules: [{name: koala-1, code: 1, per: [uid], limit: 0, window: 1h, then: told}]}`,
		"/multi/browse?argsJson="+jobs, func(e *weir.Engine) error { return e.SetRules(other) })
	_, first, _ := strings.Cut(got, `"Id":"0"`)
	first, second, _ := strings.Cut(first, `"Id":"1"`)
	if !strings.Contains(first, `"Err_no":10,"Err_msg":"","Str_reason":"told"`) || !strings.Contains(second, `"Err_no":0,"Err_msg":"","Str_reason":"staff"`) {
		t.Errorf("got %s, want bob denied by the old rules and ann let in by the new ones", got)
	}
}

// A rule that denies because its store is away has no numbers, and is told all
// the same: the white list behind it does not decide.
func TestCompleteTellsWhoDeniesWithoutStore(t *testing.T) {
	t.Parallel()
	got := ask(t, `rules:
  - {name: koala-1, code: 1, when: {act: ask}, per: [uid], limit: 5, window: 1h, on_outage: deny}
  - {name: koala-2, code: 2, when: {uid: ann}, then: allow, rest: count}
`, "/rule/browse_complete?act=ask&uid=ann", func(*weir.Engine) error { return &store.OutageError{Err: errors.New("gone")} })
	if !strings.Contains(got, `"Ret_code":1,"Err_no":10`) {
		t.Errorf("got %s, want rule 1 to deny", got)
	}
}

// Hits that were not given back are not told to be.
func TestFeedbackWithoutStore(t *testing.T) {
	t.Parallel()
	rules := `rules: [{name: koala-1, code: 1, when: {act: ask}, per: [uid], limit: 5, window: 1h, on_outage: allow, feedback: {erase1: 2}}]`
	got := ask(t, rules, "/rule/feedback?act=ask&uid=ann&_feedbackType=erase1",
		func(*weir.Engine) error { return &store.OutageError{Err: errors.New("gone")} })
	if want := `{"err_no":-1, "err_msg":"the store is unavailable: nothing was given back"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

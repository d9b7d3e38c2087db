package weir_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/storetest"
	"github.com/weirhq/weir/window"
)

// manyRules returns an engine with n limits per user.
func manyRules(t *testing.T, n int) *weir.Engine {
	t.Helper()
	var rules []rule.Rule
	for i := range n {
		rules = append(rules, rule.Rule{
			Name: fmt.Sprint("r", i), Per: []string{"user", "page"},
			Quota: &rule.Quota{Value: 5}, Window: window.Sliding(time.Hour),
		})
	}
	e := engine(t, rules)
	return e
}

func of(user string) weir.Request {
	return weir.Request{Attributes: []weir.Attribute{{Name: "user", Value: user}, {Name: "page", Value: "/"}}, Hits: 1}
}

// What would be answered with too much is not counted.
func TestMaxSize(t *testing.T) {
	t.Parallel()
	e, o := manyRules(t, 10), run.Options{MaxSize: 10_000}
	if _, err := e.Run(t.Context(), []weir.Item{{Verb: store.Take, Request: of("42")}}, o); err != nil {
		t.Fatal(err)
	}
	long := []weir.Item{{Verb: store.Take, Request: of(strings.Repeat("x", 1000))}}
	if _, err := e.Run(t.Context(), long, o); !errors.Is(err, run.ErrLarge) {
		t.Errorf("got %v, want that the answer is too large", err)
	}
	items := make([]weir.Item, 6)
	for i := range items {
		items[i] = weir.Item{Verb: store.Take, Request: of("42")}
	}
	if _, err := e.Run(t.Context(), items, o); !errors.Is(err, run.ErrLarge) {
		t.Errorf("got %v, want that the answers are too large together", err)
	}
	u, err := e.Usage(t.Context(), "r0", of("42").Attributes)
	if err != nil || u.Used != 1 {
		t.Errorf("got %d used, %v, want the one that was answered", u.Used, err)
	}
}

// admit hears the size before anything is counted, and can refuse.
func TestAdmit(t *testing.T) {
	t.Parallel()
	e := manyRules(t, 10)
	items := []weir.Item{{Verb: store.Take, Request: of("42")}, {Verb: store.Check, Request: of("7")}}
	no := errors.New("no")
	var size run.Size
	_, err := e.Run(t.Context(), items, run.Options{Admit: func(s run.Size) error { size = s; return no }})
	if !errors.Is(err, no) || size.Usages != 20 {
		t.Errorf("got %v with %+v, want no for 20 usages", err, size)
	}
	if _, err := e.Run(t.Context(), items, run.Options{Admit: func(run.Size) error { return nil }}); err != nil {
		t.Fatal(err)
	}
	if got := items[0].Decision.Usages[0]; got.Used != 1 || got.Key != "user=42 page=/" {
		t.Errorf("got %+v, want one hit: the refused batch counted nothing", got)
	}
	text := 0
	for i := range items {
		for _, u := range items[i].Decision.Usages {
			text += len(u.Rule) + len(u.Key)
		}
	}
	if slack := int64(len(items) * 10); size.Text < int64(text) || size.Text > int64(text)+slack {
		t.Errorf("got %d bytes of text, want %d, or one for each key more", size.Text, text)
	}
}

// A store over the network decides nothing else while it decides one call, so a call has at most a thousand counters
// there. Nothing is counted beyond.
func TestMostCountersOfACall(t *testing.T) {
	t.Parallel()
	set := manyRules(t, 10).Rules()
	shared := engineOf(t, set, weir.WithStore(storetest.NewModel().Store))
	users := func(n int) (items []weir.Item) {
		for i := range n {
			items = append(items, weir.Item{Request: of(fmt.Sprint(i))})
		}
		return items
	}
	before := 0
	o := run.Options{Together: true, Admit: func(run.Size) error { before++; return nil }}
	_, err := shared.Run(t.Context(), users(101), o)
	if want := "weir: requests: count in 1010 counters: want at most 1000 in a store over the network"; err == nil || err.Error() != want || before > 0 {
		t.Errorf("got %v after %d calls of Admit, want %s before it", err, before, want)
	}
	if u, err := shared.Usage(t.Context(), "r0", of("1").Attributes); err != nil || u.Used != 0 {
		t.Errorf("got %d used, %v, want none", u.Used, err)
	}
	same := slices.Concat(users(100), users(100)) // have 1,000 counters
	for name, err := range map[string]error{
		"a hundred, twice": errorOf(shared.Run(t.Context(), same, o)),
		"in memory":        errorOf(engineOf(t, set).Run(t.Context(), users(101), o)),
		"each by itself":   errorOf(shared.Run(t.Context(), users(101), run.Options{})),
	} {
		if err != nil {
			t.Errorf("%s: got %v", name, err)
		}
	}
	many := engineOf(t, manyRules(t, 1001).Rules(), weir.WithStore(storetest.NewModel().Store))
	_, err = many.Take(t.Context(), of("1"))
	if want := "weir: attributes: count in 1001 counters: want at most 1000 in a store over the network"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func errorOf(_ bool, err error) error { return err }

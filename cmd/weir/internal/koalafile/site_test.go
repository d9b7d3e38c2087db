package koalafile_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/koalafile"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// site is an engine that decides by a rule file, with a fake clock.
type site struct {
	t      *testing.T
	engine *weir.Engine
	store  *broken
	now    atomic.Int64 // a window.Instant
}

// broken is a store that is unavailable when it should be.
type broken struct {
	store.Store
	out bool
}

func (b *broken) Do(ctx context.Context, calls []store.Call) error {
	if !b.out {
		return b.Store.Do(ctx, calls)
	}
	for i := range calls {
		calls[i].Err = &store.OutageError{Err: errors.New("unavailable")}
	}
	return nil
}

// open makes a site with rules, one a line, two dicts and three rows: 1 lets
// pass, 2 denies, 3 asks for a captcha. It is ten in the morning in Shanghai.
func open(t *testing.T, rules string) *site {
	t.Helper()
	s := &site{t: t}
	s.at("2026-11-20 10:00:00")
	s.store = &broken{Store: memstore.New(memstore.WithClock(func() window.Instant {
		return window.Instant(s.now.Load())
	}))}
	e, err := weir.NewEngine(parse(t, rules).Set, weir.WithStore(s.store))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close(); s.store.Close() })
	s.engine = e
	return s
}

func parse(t *testing.T, rules string) *koalafile.File {
	t.Helper()
	dicts := map[string]string{"black.dat": "9\nmallory \n203.0.113.0/24\n", "white.dat": "1\n"}
	f, err := koalafile.Parse("koala_rule.conf", []byte(around(rules+"\n")), func(path string) ([]byte, error) {
		return []byte(dicts[path]), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// at sets the clock, to a time in Shanghai.
func (s *site) at(clock string) {
	s.t.Helper()
	when, err := time.ParseInLocation(time.DateTime, clock, time.FixedZone("", 8*60*60))
	if err != nil {
		s.t.Fatal(err)
	}
	s.now.Store(int64(window.At(when)))
}

func (s *site) pass(d time.Duration) { s.now.Add(d.Microseconds()) }

// ask returns the answer of the engine, as the outcome and the rule that gave it:
// "koala-2 by koala-501", or "allow".
func (s *site) ask(verb store.Verb, attributes ...string) (answer string, d weir.Decision) {
	s.t.Helper()
	r := weir.Request{Attributes: weir.Attributes(attributes...)}
	if err := s.engine.Do(s.t.Context(), verb, &r, &d); err != nil {
		s.t.Fatal(err)
	}
	if d.Rule == "" {
		return d.Outcome, d
	}
	return d.Outcome + " by " + d.Rule, d
}

// want asks and compares the answer.
func (s *site) want(want string, verb store.Verb, attributes ...string) {
	s.t.Helper()
	if got, _ := s.ask(verb, attributes...); got != want {
		s.t.Errorf("%v %s: got %q, want %q", verb, strings.Join(attributes, " "), got, want)
	}
}

// matches reports whether the first rule of a file matches a request.
func matches(set *rule.Set, attributes ...string) bool {
	values := make([]string, len(set.Attributes()))
	for i := 0; i < len(attributes); i += 2 {
		if at, ok := set.Compiled().Attribute(attributes[i]); ok {
			values[at] = attributes[i+1]
		}
	}
	return slices.Contains(set.Compiled().Match(values, nil, false), 0)
}

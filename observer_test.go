package weir_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// observed keeps what an observer is called with, one line each.
type observed struct{ lines []string }

func (o *observed) Decided(_ context.Context, verb store.Verb, d *weir.Decision, _ time.Duration) {
	o.add("%s: allowed %v by %q, degraded %v", verb, d.Allowed, d.Rule, d.Degraded)
}

func (o *observed) Failed(_ context.Context, verb store.Verb, err error) {
	o.add("%s failed: %v", verb, err)
}

func (o *observed) Outage(_ context.Context, verb store.Verb, err error) {
	o.add("%s outage: %v", verb, err)
}

func (o *observed) add(format string, args ...any) {
	o.lines = append(o.lines, fmt.Sprintf(format, args...))
}

func (o *observed) wants(t *testing.T, want ...string) {
	t.Helper()
	if got := strings.Join(o.lines, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	o.lines = nil
}

func TestObserverOfAnEngine(t *testing.T) {
	t.Parallel()
	var o observed
	s := &shaky{Store: memstore.New(), out: map[string]bool{}}
	defer s.Close()
	e := engine(t, []rule.Rule{{Name: "one", Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Hour), OnOutage: rule.OutageDeny}}, weir.WithObserver(&o), weir.WithStore(s))
	for range 2 {
		_, _ = e.Take(t.Context(), weir.Request{})
	}
	_, _ = e.Refund(t.Context(), weir.Request{})
	o.wants(t,
		`take: allowed true by "", degraded false`,
		`take: allowed false by "one", degraded false`,
		`refund: allowed true by "", degraded false`)

	_, _ = e.Take(t.Context(), weir.Request{Hits: -7})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = e.Check(gone, weir.Request{})
	o.wants(t,
		"take failed: weir: hits: -7: want at least 1, or 0 for 1",
		"check failed: weir: check: context canceled")

	s.set(true, "one")
	_, _ = e.Take(t.Context(), weir.Request{})
	o.wants(t,
		"take outage: store unavailable for 1 ops: unavailable",
		`take: allowed false by "one", degraded true`)

	s.set(false, "one")
	e.DoAll(t.Context(), []weir.Item{{Verb: store.Check}, {Verb: store.Take, Request: weir.Request{Feedback: "solved"}}})
	o.wants(t,
		`check: allowed true by "", degraded false`,
		`take failed: weir: feedback: "solved" in a take: want a refund`)
}

// contextual is an observer that uses the context.
type contextual struct{ observed }

type traceKey struct{}

func (w *contextual) Decided(ctx context.Context, verb store.Verb, d *weir.Decision, _ time.Duration) {
	w.add("%s in %v: allowed %v", verb, ctx.Value(traceKey{}), d.Allowed)
}

func (w *contextual) Failed(ctx context.Context, verb store.Verb, err error) {
	w.add("%s in %v failed: %v", verb, ctx.Value(traceKey{}), err)
}

func (w *contextual) Outage(ctx context.Context, verb store.Verb, err error) {
	w.add("%s in %v outage: %v", verb, ctx.Value(traceKey{}), err)
}

func TestObserverInContext(t *testing.T) {
	t.Parallel()
	var o contextual
	s := &shaky{Store: memstore.New(), out: map[string]bool{}}
	defer s.Close()
	e := engine(t, []rule.Rule{{Name: "one", Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Hour), OnOutage: rule.OutageDeny}}, weir.WithObserver(&o), weir.WithStore(s))
	ctx := context.WithValue(t.Context(), traceKey{}, "trace 7")
	_, _ = e.Take(ctx, weir.Request{})
	_, _ = e.Take(ctx, weir.Request{Hits: -7})
	e.DoAll(ctx, []weir.Item{{Verb: store.Check}, {Verb: store.Take, Request: weir.Request{Hits: -1}}})
	_, _ = e.Run(ctx, []weir.Item{{Verb: store.Record}}, run.Options{MaxSize: 1})
	o.wants(t,
		"take in trace 7: allowed true",
		"take in trace 7 failed: weir: hits: -7: want at least 1, or 0 for 1",
		"check in trace 7: allowed false",
		"take in trace 7 failed: weir: hits: -1: want at least 1, or 0 for 1",
		"record in trace 7 failed: "+run.ErrLarge.Error())

	s.set(true, "one")
	_, _ = e.Take(ctx, weir.Request{})
	o.wants(t,
		"take in trace 7 outage: store unavailable for 1 ops: unavailable",
		"take in trace 7: allowed false")
}

func TestObserverOfALimiter(t *testing.T) {
	t.Parallel()
	var o observed
	s := &shaky{Store: memstore.New(), out: map[string]bool{}}
	defer s.Close()
	m := weir.MustLimiter(weir.Sliding(1, time.Hour), weir.WithStore(s), weir.WithName("posts"),
		weir.WithObserver(&o), weir.WithOutage(rule.OutageAllow))
	for range 2 {
		_, _ = m.Allow(t.Context(), "ann")
	}
	s.set(true, "posts")
	_, _ = m.Allow(t.Context(), "ann")
	s.set(false, "posts")
	_, _ = m.AllowN(t.Context(), "ann", -1)
	_ = s.Close()
	_, _ = m.Allow(t.Context(), "ann")
	o.wants(t,
		`take: allowed true by "", degraded false`,
		`take: allowed false by "posts", degraded false`,
		"take outage: store unavailable for 1 ops: unavailable",
		`take: allowed true by "", degraded true`,
		"take failed: weir: hits: -1: want at least 1; Check looks without counting",
		"take failed: weir: take: store is closed")
}

// bounding is a store with a Do of its own, around a store in memory.
type bounding struct {
	*memstore.Store
	asked int
}

func (b *bounding) Do(ctx context.Context, calls []store.Call) error {
	b.asked += len(calls)
	return b.Store.Do(ctx, calls)
}

func TestDoOfAWrappingStoreIsCalled(t *testing.T) {
	t.Parallel()
	b := &bounding{Store: memstore.New()}
	defer b.Close()
	m := weir.MustLimiter(weir.Sliding(1, time.Hour), weir.WithStore(b), weir.WithName("posts"))
	for i := range 2 {
		if r, err := m.Allow(t.Context(), "ann"); err != nil || r.Allowed != (i == 0) {
			t.Errorf("take %d: got %+v, %v, want allowed %v", i, r, err, i == 0)
		}
	}
	if b.asked != 2 {
		t.Errorf("got %d calls of Do, want 2", b.asked)
	}
}

// numbers is an observer that also keeps the numbers of decisions.
type numbers struct{ observed }

func (o *numbers) Decided(_ context.Context, verb store.Verb, d *weir.Decision, _ time.Duration) {
	o.add("%s: allowed %v by %q, retry after %v", verb, d.Allowed, d.Rule, d.RetryAfter)
	for i := range d.Usages {
		u := &d.Usages[i]
		o.add("  %s: %d hits, %d + %d used, allowed %v", u.Rule, u.Hits, u.Before, u.Used-u.Before, u.Allowed)
	}
}

func (o *numbers) Requested(verb store.Verb, r *weir.Request, _ *weir.Decision, matched []int, _ []string, _ time.Time) {
	o.add("%s of %d hits: %d rules", verb, r.Hits, len(matched))
}

// What others have decided by what they were granted is observed as a take of all that they have used, and one of all that they
// have denied.
func TestObserverOfAssignments(t *testing.T) {
	t.Parallel()
	var o numbers
	e := engine(t, []rule.Rule{
		{Name: "user", Per: []string{"user"}, Quota: &rule.Quota{Value: 10}, Window: window.Fixed(time.Hour)},
		{Name: "all", Quota: &rule.Quota{Value: 100}, Window: window.Fixed(time.Hour)},
		{Name: "seen", Window: window.Fixed(time.Hour)},
	}, weir.WithObserver(&o))
	asks := []run.Assignment{{Want: 8, Length: time.Minute}}
	assign := func() {
		if _, err := e.Run(t.Context(), []weir.Item{{Request: weir.Request{Attributes: weir.Attributes("user", "ann")}}}, run.Options{Assign: asks}); err != nil {
			t.Fatal(err)
		}
	}
	assign()
	o.wants(t) // nothing was decided by it
	asks = []run.Assignment{{Used: 7, Denied: 5, Settles: []run.Settle{{ID: asks[0].ID, Spent: 7}}}}
	assign()
	o.wants(t,
		"take of 7 hits: 3 rules", `take: allowed true by "", retry after 0s`,
		"  user: 7 hits, 0 + 7 used, allowed true", "  all: 7 hits, 0 + 7 used, allowed true", "  seen: 7 hits, 0 + 7 used, allowed true",
		"take of 5 hits: 3 rules", `take: allowed false by "user", retry after 1s`,
		"  user: 5 hits, 7 + 0 used, allowed false", "  all: 5 hits, 7 + 0 used, allowed true", "  seen: 5 hits, 7 + 0 used, allowed true")
	asks = []run.Assignment{{Used: 3, Over: 3, Denied: 2}} // as much as there is, without a grant
	assign()
	if got := o.lines[len(o.lines)-4]; !strings.HasPrefix(got, `take: allowed false by "user", retry after 59m`) {
		t.Errorf("got %s", got)
	}
}

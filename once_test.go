package weir_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/once"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/weirtest"
	"github.com/weirhq/weir/window"
)

// onceRules are a limit before a verdict, what holds, and a counter after the verdict.
func onceRules(t *testing.T) *rule.Set {
	t.Helper()
	return compile(t, []rule.Rule{
		{Name: "posts", Per: []string{"user"}, Quota: &rule.Quota{Value: 3}, Window: window.Sliding(time.Hour)},
		{Name: "spend", Per: []string{"user"}, Quota: &rule.Quota{Value: 100}, Window: window.Sliding(time.Hour), Hold: time.Minute},
	})
}

func onceRequest(key, user string) weir.Request {
	return weir.Request{Attributes: weir.Attributes("user", user), IdempotencyKey: key}
}

// TestTakeAgain is a take whose answer was lost, again: it has the answer and the receipt of the first one.
func TestTakeAgain(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	engines := make([]*weir.Engine, 2) // two instances
	for i := range engines {
		e := engineOf(t, onceRules(t), weir.WithStore(s))
		engines[i] = e
	}
	ctx := t.Context()
	first, err := engines[0].Take(ctx, onceRequest("k", "ann"))
	if err != nil || first.Replayed || first.Receipt.IsZero() {
		t.Fatalf("got %+v, error %v", first, err)
	}
	for i := range 5 {
		request := onceRequest("k", "ann")
		request.Hits = int64(i % 2) // 0 is 1
		again, err := engines[1].Take(ctx, request)
		if err != nil || !again.Replayed {
			t.Fatalf("got %+v, error %v", again, err)
		}
		if again.Receipt.String() != first.Receipt.String() || !reflect.DeepEqual(again.Usages, first.Usages) {
			t.Errorf("got %+v, want %+v", again, first)
		}
	}
	settle := weir.Request{Attributes: weir.Attributes("user", "ann"), Hits: 7, IdempotencyKey: "settle"}
	for i := range 2 {
		d, err := engines[i].Settle(ctx, first.Receipt, settle)
		if err != nil || !d.Usages[1].Held || d.Replayed != (i == 1) {
			t.Errorf("settle %d: got %+v, error %v", i, d, err)
		}
	}
	if d, err := engines[0].Check(ctx, weir.Request{Attributes: weir.Attributes("user", "ann")}); err != nil || d.Usages[0].Used != 1 || d.Usages[1].Used != 7 {
		t.Errorf("got %+v, error %v, want 1 and 7 used", d.Usages, err)
	}
	if _, err := engines[0].Take(ctx, onceRequest("k", "bob")); !errors.Is(err, store.ErrConflict) {
		t.Errorf("another request: got error %v, want %v", err, store.ErrConflict)
	}
	if _, err := engines[0].Record(ctx, onceRequest("k", "ann")); !errors.Is(err, store.ErrConflict) {
		t.Errorf("another verb: got error %v, want %v", err, store.ErrConflict)
	}
	same := weir.Request{Attributes: weir.Attributes("x", "", "user", "bob", "user", "ann"), IdempotencyKey: "k"}
	if d, err := engines[0].Take(ctx, same); err != nil || !d.Replayed {
		t.Errorf("the same attributes in another form: got %+v, error %v", d, err)
	}
}

// TestDenialAgain is a denial that counted nothing, again: it is decided anew, and allowed once that fits.
func TestDenialAgain(t *testing.T) {
	t.Parallel()
	e := engineOf(t, onceRules(t))
	items := make([]weir.Item, 5)
	for i := range items {
		items[i] = weir.Item{Verb: store.Take, Request: onceRequest(fmt.Sprint(min(i, 3)), "ann")}
	}
	e.DoAll(t.Context(), items)
	for i, it := range items {
		if it.Err != nil || it.Decision.Allowed != (i < 3) || it.Decision.Replayed {
			t.Errorf("item %d: got %+v, error %v", i, it.Decision, it.Err)
		}
	}
	if _, err := e.Refund(t.Context(), weir.Request{Attributes: weir.Attributes("user", "ann")}); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if d, err := e.Take(t.Context(), onceRequest("3", "ann")); err != nil || !d.Allowed || d.Replayed != (i > 0) {
			t.Errorf("take %d: got %+v, error %v, want it allowed once", i, d, err)
		}
	}
}

// TestOnceAfterVerdict has a rule that waits for the outcome of a limit, in a step of its own.
func TestOnceAfterVerdict(t *testing.T) {
	t.Parallel()
	e := engine(t, []rule.Rule{
		{Name: "posts", Quota: &rule.Quota{Value: 3}, Window: window.Sliding(time.Hour)},
		{Name: "fine", Then: rule.Allow, CountRest: true},
		{Name: "seen", Window: window.Sliding(time.Hour)},
	})
	for i := range 3 {
		if d, err := e.Take(t.Context(), weir.Request{IdempotencyKey: "k"}); err != nil || len(d.Usages) != 2 || d.Usages[0].Used != 1 || d.Usages[1].Used != 1 || d.Replayed != (i > 0) {
			t.Errorf("take %d: got %+v, error %v", i, d, err)
		}
	}
}

// losesSecond is a store that does not answer its second call.
type losesSecond struct {
	store.Store
	calls int
}

func (l *losesSecond) Do(ctx context.Context, calls []store.Call) error {
	if l.calls++; l.calls == 2 {
		calls[0].Err = &store.OutageError{Err: errors.New("gone"), Uncounted: true}
		return nil
	}
	return l.Store.Do(ctx, calls)
}

// TestOnceHoldAfterVerdict has a hold after a verdict that the first take did not get to. The receipt of the first take
// ends the hold of the second one.
func TestOnceHoldAfterVerdict(t *testing.T) {
	t.Parallel()
	e := engine(t, []rule.Rule{
		{Name: "posts", Quota: &rule.Quota{Value: 3}, Window: window.Sliding(time.Hour)},
		{Name: "fine", Then: rule.Allow, CountRest: true},
		{Name: "spend", Quota: &rule.Quota{Value: 100}, Window: window.Sliding(time.Hour), Hold: time.Minute},
	}, weir.WithStore(&losesSecond{Store: memstore.New()}))
	if d, err := e.Take(t.Context(), weir.Request{IdempotencyKey: "k"}); err != nil || !d.Degraded {
		t.Fatalf("got %+v, error %v, want a lost step", d, err)
	}
	d, err := e.Take(t.Context(), weir.Request{IdempotencyKey: "k"})
	if err != nil || !d.Replayed || len(d.Usages) != 2 || !d.Usages[1].Held {
		t.Fatalf("got %+v, error %v, want a hold", d, err)
	}
	if d, err = e.Settle(t.Context(), d.Receipt, weir.Request{Hits: 7}); err != nil || !d.Usages[len(d.Usages)-1].Held {
		t.Errorf("settle: got %+v, error %v, want the hold to end", d, err)
	}
}

// TestOnceRulesChanged has a rule that the first take did not meet.
func TestOnceRulesChanged(t *testing.T) {
	t.Parallel()
	old := onceRules(t)
	e := engineOf(t, old)
	if _, err := e.Take(t.Context(), onceRequest("k", "ann")); err != nil {
		t.Fatal(err)
	}
	next := compile(t, []rule.Rule{
		{Name: "none", Per: []string{"user"}, Quota: &rule.Quota{}, Window: window.Sliding(time.Hour)},
		{Name: "posts", Per: []string{"user"}, Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Hour)},
	})
	if err := e.SetRules(next); err != nil {
		t.Fatal(err)
	}
	d, err := e.Take(t.Context(), onceRequest("k", "ann"))
	if err != nil || !d.Allowed || !d.Replayed || len(d.Usages) != 1 || d.Usages[0].Quota != 3 {
		t.Errorf("got %+v, error %v, want the first answer of posts", d, err)
	}
	other := compile(t, []rule.Rule{{Name: "other", Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Hour)}})
	r := onceRequest("k", "ann")
	r.Rules = other
	items := []weir.Item{{Verb: store.Take, Request: r}, {Verb: store.Take, Request: r}}
	e.DoAll(t.Context(), items)
	for _, it := range append(items, weir.Item{Err: e.Do(t.Context(), store.Take, &r, new(weir.Decision))}) {
		if !errors.Is(it.Err, store.ErrConflict) {
			t.Errorf("with no rule of the first: got error %v, want %v", it.Err, store.ErrConflict)
		}
	}
}

// TestOnceConcurrently has one of many callers count.
func TestOnceConcurrently(t *testing.T) {
	t.Parallel()
	e := engineOf(t, onceRules(t))
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() {
			if d, err := e.Take(t.Context(), onceRequest("k", "ann")); err != nil || d.Usages[0].Used != 1 {
				t.Errorf("got %+v, error %v", d, err)
			}
		})
	}
	callers.Wait()
}

// TestOnceLeavesMemory has a caller with a fresh idempotency key for each request: the answers fill a part of the memory, so
// that there is room for new users.
func TestOnceLeavesMemory(t *testing.T) {
	t.Parallel()
	limit := []rule.Rule{{Name: "calls", Per: []string{"user"}, Quota: &rule.Quota{Value: 1_000_000}, Window: window.Fixed(time.Hour)}}
	e := engineOf(t, compile(t, limit), weir.WithStore(memstore.New(memstore.WithMaxBytes(4<<20))))
	for i := 0; ; i++ {
		d, err := e.Take(t.Context(), onceRequest(fmt.Sprint(i), "ann"))
		if err == nil && !d.Degraded && i < 100_000 {
			continue
		}
		if !errors.Is(err, once.ErrFull) {
			t.Fatalf("request %d: got %+v, error %v, want no room for the answer", i, d, err)
		}
		break
	}
	for i := range 500 {
		if d, err := e.Take(t.Context(), onceRequest("", fmt.Sprint("user", i))); err != nil || d.Degraded {
			t.Fatalf("user %d: got %+v, error %v, want a decision of the store", i, d, err)
		}
	}
}

// TestOnceInOutage has the local memory remember what it has decided.
func TestOnceInOutage(t *testing.T) {
	t.Parallel()
	s := weirtest.NewStore()
	e := engineOf(t, onceRules(t), weir.WithStore(s), weir.WithLocal(memstore.New(), 1))
	s.Fail(errors.New("gone"))
	for i := range 3 {
		d, err := e.Take(t.Context(), onceRequest("k", "ann"))
		if err != nil || !d.Degraded || d.Usages[0].Used != 1 || d.Replayed != (i > 0) {
			t.Errorf("take %d: got %+v, error %v", i, d, err)
		}
	}
	if got := e.Reports().Pending; got != 2 {
		t.Errorf("got %d keys to report, want 2", got)
	}
	if _, err := e.Take(t.Context(), onceRequest("k", "bob")); !errors.Is(err, store.ErrConflict) {
		t.Errorf("another request: got error %v, want %v", err, store.ErrConflict)
	}
	if d, err := e.Take(t.Context(), onceRequest("k", "ann")); err != nil || !d.Replayed || d.Usages[0].Used != 1 {
		t.Errorf("after it: got %+v, error %v, want the first answer", d, err)
	}
}

// TestDenialInOutageAgain has a denial by the local memory repeated, which counts nothing either in a rule that counts denials.
func TestDenialInOutageAgain(t *testing.T) {
	t.Parallel()
	set := compile(t, []rule.Rule{
		{Name: "none", Quota: &rule.Quota{}, Window: window.Sliding(time.Hour)},
		{Name: "strict", Quota: &rule.Quota{Value: 3}, Window: window.Sliding(time.Hour), CountDenied: true},
		{Name: "shadow", Quota: &rule.Quota{Value: 3}, Window: window.Sliding(time.Hour), Mode: rule.Shadow},
		{Name: "seen", Window: window.Sliding(time.Hour)},
	})
	s := weirtest.NewStore()
	e := engineOf(t, set, weir.WithStore(s), weir.WithLocal(memstore.New(), 1))
	s.Fail(errors.New("gone"))
	for i := range 3 {
		d, err := e.Take(t.Context(), onceRequest("k", "ann"))
		if err != nil || d.Allowed || d.Replayed != (i > 0) {
			t.Fatalf("take %d: got %+v, error %v", i, d, err)
		}
		for _, u := range d.Usages[1:] {
			if u.Used != 1 {
				t.Errorf("take %d: got %+v, want 1 used", i, u)
			}
		}
	}
}

// TestOnceFaults has requests that nobody can have answered.
func TestOnceFaults(t *testing.T) {
	t.Parallel()
	e := engineOf(t, onceRules(t))
	for _, test := range []struct {
		verb    store.Verb
		request weir.Request
		want    string
	}{
		{store.Check, weir.Request{IdempotencyKey: "k"}, "idempotency_key"},
		{store.Take, weir.Request{IdempotencyKey: strings.Repeat("k", 129)}, "idempotency_key"},
		{store.Take, weir.Request{IdempotencyFor: time.Minute}, "idempotency_for"},
		{store.Take, weir.Request{IdempotencyKey: "k", IdempotencyFor: -1}, "idempotency_for"},
		{store.Take, weir.Request{IdempotencyKey: "k", IdempotencyFor: 24*time.Hour + 1}, "idempotency_for"},
	} {
		test.request.Attributes = weir.Attributes("user", "ann")
		err := e.Do(t.Context(), test.verb, &test.request, new(weir.Decision))
		if f, ok := errors.AsType[*fault.Fault](err); !ok || !strings.Contains(f.Error(), test.want) {
			t.Errorf("%v: got error %v, want one of %s", test.verb, err, test.want)
		}
	}
}

package weir_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// After exactly RetryAfter of silence the same hit fits, and not before.
func TestRetryAfterIsExact(t *testing.T) {
	t.Parallel()
	for _, limit := range []weir.Limit{
		weir.Sliding(1, time.Hour), weir.Cells(1, time.Hour), weir.Fixed(1, time.Hour),
		weir.Calendar(1, window.Day, nil), weir.Bucket(7, 10*time.Second, 1),
	} {
		synctest.Test(t, func(t *testing.T) {
			m := weir.MustLimiter(limit)
			defer m.Close()
			if r, err := m.Allow(t.Context(), "k"); err != nil || !r.Allowed {
				t.Fatalf("%s: first: got %+v, %v, want allowed", limit.Window, r, err)
			}
			r, _ := m.Allow(t.Context(), "k")
			if r.Allowed || r.RetryAfter <= 0 {
				t.Fatalf("%s: second: got %+v, want denied with a wait", limit.Window, r)
			}
			time.Sleep(r.RetryAfter - time.Microsecond)
			if r, _ := m.Allow(t.Context(), "k"); r.Allowed || r.RetryAfter != time.Microsecond {
				t.Errorf("%s: a microsecond early: got %+v, want one more to wait", limit.Window, r)
			}
			time.Sleep(time.Microsecond)
			if r, _ := m.Allow(t.Context(), "k"); !r.Allowed {
				t.Errorf("%s: after the wait: got %+v, want allowed", limit.Window, r)
			}
		})
	}
}

func TestLimiterVerbs(t *testing.T) {
	t.Parallel()
	m := weir.MustLimiter(weir.Sliding(5, time.Hour))
	defer m.Close()
	step := func(name string, r weir.Result, err error, allowed bool, used int64) {
		t.Helper()
		if err != nil || r.Allowed != allowed || r.Used != used {
			t.Errorf("%s: got allowed %v, used %d, %v, want %v, %d", name, r.Allowed, r.Used, err, allowed, used)
		}
	}
	ctx := t.Context()
	r, err := m.AllowN(ctx, "k", 4)
	step("four", r, err, true, 4)
	r, err = m.AllowN(ctx, "k", 2)
	step("two more", r, err, false, 4)
	r, err = m.Check(ctx, "k")
	step("check", r, err, true, 4)
	r, err = m.Record(ctx, "k", 3)
	step("record", r, err, true, 5)
	r, err = m.Check(ctx, "k")
	step("check when full", r, err, false, 5)
	r, err = m.Refund(ctx, "k", 4)
	step("refund", r, err, true, 3)
	r, err = m.Allow(ctx, "other")
	step("another key", r, err, true, 1)
	if err := m.Forget(ctx, "k"); err != nil {
		t.Fatal(err)
	}
	r, err = m.Check(ctx, "k")
	step("after it was forgotten", r, err, true, 0)
	if _, err := m.Record(ctx, "k", -1); err == nil {
		t.Error("negative hits: got no error")
	}
}

func TestLimitersShareAStoreByName(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	defer s.Close()
	limiter := func(name string) *weir.Limiter {
		return weir.MustLimiter(weir.Sliding(1, time.Hour), weir.WithStore(s), weir.WithName(name))
	}
	a, again, b := limiter("a"), limiter("a"), limiter("b")
	if r, _ := a.Allow(t.Context(), "k"); !r.Allowed {
		t.Error("a: denied")
	}
	if r, _ := again.Allow(t.Context(), "k"); r.Allowed {
		t.Error("a again: allowed, want one count for one name")
	}
	if r, _ := b.Allow(t.Context(), "k"); !r.Allowed {
		t.Error("b: denied, want a count of its own")
	}
	for _, m := range []*weir.Limiter{a, again, b} {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	if r, err := b.Check(t.Context(), "k"); err != nil || r.Used != 1 {
		t.Errorf("the store after its limiters were closed: got %+v, %v, want it open", r, err)
	}
}

// Namespaces keep the counters of one store apart, those of rules too.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	defer s.Close()
	for _, namespace := range []string{"", "red", "blue"} {
		m := weir.MustLimiter(weir.Sliding(1, time.Hour), weir.WithStore(s), weir.WithName("a"), weir.WithNamespace(namespace))
		e := engine(t, []rule.Rule{{Name: "posts", Per: []string{"user"}, Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Hour)}}, weir.WithStore(s), weir.WithNamespace(namespace))
		if r, err := m.Allow(t.Context(), "k"); err != nil || !r.Allowed {
			t.Errorf("limiter in %q: got %+v, %v, want a count of its own", namespace, r, err)
		}
		for i := range 2 {
			if d := takes(t, e, "user", "ann"); d.Allowed != (i == 0) {
				t.Errorf("engine in %q, take %d: got allowed %v", namespace, i, d.Allowed)
			}
		}
	}
}

// A limit on different members that is asked without one would count all hits
// as the same member, and deny nobody.
func TestMembersNeedNames(t *testing.T) {
	t.Parallel()
	m := weir.MustLimiter(weir.Members(1, time.Hour))
	defer m.Close()
	ctx := t.Context()
	for name, ask := range map[string]func() (weir.Result, error){
		"allow":        func() (weir.Result, error) { return m.Allow(ctx, "k") },
		"record":       func() (weir.Result, error) { return m.Record(ctx, "k", 1) },
		"refund":       func() (weir.Result, error) { return m.Refund(ctx, "k", 1) },
		"empty member": func() (weir.Result, error) { return m.AllowMember(ctx, "k", "") },
	} {
		var input *fault.Fault
		if r, err := ask(); !errors.As(err, &input) || input.Path != "member" {
			t.Errorf("%s: got %+v, %v, want an error about the member", name, r, err)
		}
	}
	if r, err := m.AllowMember(ctx, "k", "ann"); err != nil || !r.Allowed {
		t.Errorf("first member: got %+v, %v, want allowed", r, err)
	}
	if r, err := m.Check(ctx, "k"); err != nil || r.Allowed || r.Used != 1 {
		t.Errorf("check for a new member: got %+v, %v, want denied with 1 used", r, err)
	}
	for _, step := range []struct {
		name    string
		ask     func(context.Context, string, string) (weir.Result, error)
		member  string
		used    int64
		allowed bool
	}{
		{"record past the quota", m.RecordMember, "bob", 1, true},
		{"the member recorded last", m.AllowMember, "bob", 1, true},
		{"one of its two uses", m.RefundMember, "bob", 1, true},
		{"its last use, while ann may be inside", m.RefundMember, "bob", 1, true},
		{"one too many", m.AllowMember, "eve", 1, false},
	} {
		if r, err := step.ask(ctx, "k", step.member); err != nil || r.Used != step.used || r.Allowed != step.allowed {
			t.Errorf("%s: got %+v, %v, want allowed %v with %d used", step.name, r, err, step.allowed, step.used)
		}
	}
	hits := weir.MustLimiter(weir.Sliding(1, time.Hour))
	defer hits.Close()
	var f *fault.Fault
	if _, err := hits.AllowMember(ctx, "k", "ann"); !errors.As(err, &f) || f.Path != "member" {
		t.Errorf("a member of a limit on hits: got %v, want a fault of member", err)
	}
}

func TestCounter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, err := weir.NewCounter(window.Cells(time.Hour, 60))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ctx := t.Context()
		for i := range int64(10) { // 1, 2, … 10 hits, a minute apart
			if _, err := c.Add(ctx, "home", i+1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		if n, err := c.Count(ctx, "home", time.Hour); n != 55 || err != nil {
			t.Errorf("last hour: got %d, %v, want 55", n, err)
		}
		// 8 + 9 + 10, less what rounding takes from the oldest cell.
		if n, _ := c.Count(ctx, "home", 3*time.Minute); n < 26 || n > 27 {
			t.Errorf("last three minutes: got %d, want 26 or 27", n)
		}
		h, err := c.History(ctx, "home")
		if err != nil || len(h) != 11 || h[0].Hits != 1 || h[9].Hits != 10 || h[10].Hits != 0 {
			t.Errorf("history: got %v, %v, want 1 to 10 and an empty current cell", h, err)
		}
		if err := c.Forget(ctx, "home"); err != nil {
			t.Fatal(err)
		}
		if n, _ := c.Count(ctx, "home", time.Hour); n != 0 {
			t.Errorf("after it was forgotten: got %d, want 0", n)
		}
	})
}

func TestCounterKinds(t *testing.T) {
	t.Parallel()
	for _, w := range []window.Window{window.Sliding(time.Hour), window.Fixed(time.Hour), window.Calendar(window.Day, nil)} {
		c, err := weir.NewCounter(w)
		if err != nil {
			t.Fatalf("%s: %v", w, err)
		}
		if n, err := c.Add(t.Context(), "k", 7); n != 7 || err != nil {
			t.Errorf("%s: got %d, %v, want 7", w, n, err)
		}
		_ = c.Close()
	}
	if _, err := weir.NewCounter(window.Bucket(time.Hour, 1)); err == nil {
		t.Error("a bucket counter: got no error")
	}
}

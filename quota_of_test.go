package weir_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// limitOf returns a quota that is the value of the attribute customer_limit.
func limitOf(most int64) *rule.Quota { return &rule.Quota{Of: "customer_limit", Most: most} }

// TestConstantQuotaOfAnAttribute compares a limit that is always n, as the value of an
// attribute, with one that names n for this value, for each kind of window and measure. Both
// have the same largest quota, which decides how much a window remembers of what was
// recorded past n.
func TestConstantQuotaOfAnAttribute(t *testing.T) {
	t.Parallel()
	hour := window.Sliding(time.Hour)
	for name, r := range map[string]rule.Rule{
		"sliding":  {Window: hour},
		"cells":    {Window: window.Cells(time.Hour, 6)},
		"fixed":    {Window: window.Fixed(time.Hour)},
		"calendar": {Window: window.Calendar(window.Day, nil)},
		"aligned":  {Window: window.Aligned(time.Hour)},
		"bucket":   {Window: window.Bucket(time.Hour, 0)},
		"burst":    {Window: window.Bucket(time.Hour, 3)},
		"ever":     {Window: window.Ever()},
		"held":     {Window: window.Held(time.Hour)},
		"hold":     {Window: hour, Hold: 10 * time.Minute},
		"ban":      {Window: hour, Ban: window.Ban{For: 2 * time.Hour}},
		"after":    {Window: hour, After: window.After{Count: 3, Window: window.Calendar(window.Day, nil)}},
		"sum":      {Window: hour, Measure: window.Sum, Of: "tokens"},
		"distinct": {Window: hour, Measure: window.Distinct, Of: "tokens"},
		"denied":   {Window: hour, CountDenied: true, Near: 80},
		"together": {Window: hour, Per: []string{"user"}, Together: "user"},
	} {
		for n := range int64(8) {
			t.Run(fmt.Sprint(name, "/", n), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					r := r // of this test
					r.Name = "limit"
					r.Quota = limitOf(100)
					given := engine(t, []rule.Rule{r})
					r.Quota = &rule.Quota{By: "customer_limit", Cases: map[string]int64{fmt.Sprint(n): n, "other": 100}}
					fixed := engine(t, []rule.Rule{r})
					compareEngines(t, given, fixed, n)
				})
			})
		}
	}
}

// compareEngines makes the same random calls to both engines.
func compareEngines(t *testing.T, given, fixed *weir.Engine, n int64) {
	t.Helper()
	random := rand.New(rand.NewPCG(uint64(n), 1))
	verbs := []store.Verb{store.Take, store.Take, store.Take, store.Check, store.Record, store.Refund, store.Settle, store.Cancel, store.Renew}
	var last [2]weir.Request // the latest takes that hold
	for range 200 {
		time.Sleep(time.Duration(random.Int64N(int64(20 * time.Minute))))
		verb := verbs[random.IntN(len(verbs))]
		attributes := []string{"user", string(rune('a' + random.IntN(2))), "tokens", fmt.Sprint(random.IntN(3))}
		r := weir.Request{Attributes: weir.Attributes(attributes...)}
		if !verb.NeedsReceipt() {
			r.Hits = random.Int64N(3)
		}
		requests := [2]weir.Request{r, r}
		if verb.NeedsReceipt() {
			if requests = last; last[0].Receipt.IsZero() {
				continue
			}
		} else {
			for i := range requests {
				requests[i].Attributes = weir.Attributes(append(attributes, "customer_limit", fmt.Sprint(n))...)
			}
		}
		var decisions [2]weir.Decision
		for i, e := range []*weir.Engine{given, fixed} {
			if err := e.Do(t.Context(), verb, &requests[i], &decisions[i]); err != nil {
				t.Fatal(err)
			}
		}
		if verb == store.Take && !decisions[0].Receipt.IsZero() {
			for i := range last {
				last[i] = weir.Request{Attributes: requests[i].Attributes, Receipt: decisions[i].Receipt}
			}
		}
		for i := range decisions {
			decisions[i].Receipt, decisions[i].Rules = weir.Receipt{}, nil
		}
		if !reflect.DeepEqual(decisions[0], decisions[1]) {
			t.Fatalf("%s %v: got %+v, want %+v", verb, r, decisions[0], decisions[1])
		}
	}
}

// The quota may change between the requests of one key, which share a counter. Any number
// of quotas is right, although only a few are kept.
func TestQuotaOfAnAttributeChanges(t *testing.T) {
	t.Parallel()
	e := engine(t, []rule.Rule{{Name: "calls", Per: []string{"user"}, Quota: limitOf(40), Window: window.Fixed(time.Hour)}})
	for used := int64(1); used <= 40; used++ {
		for _, quota := range []int64{used - 1, used} {
			d, err := e.Take(t.Context(), request(fmt.Sprint("user=ann customer_limit=", quota)))
			if err != nil {
				t.Fatal(err)
			}
			if u := d.Usages[0]; u.Quota != quota || d.Allowed != (quota == used) || u.Used != min(used, u.Used) {
				t.Fatalf("got %+v with %d used, want the quota %d", u, used-1, quota)
			}
		}
	}
	u, err := e.Usage(t.Context(), "calls", weir.Attributes("user", "ann", "customer_limit", "1000"))
	if err != nil || u.Used != 40 || u.Quota != 40 {
		t.Errorf("got %d of %d, %v, want 40 of 40", u.Used, u.Quota, err)
	}
}

// A value that is no quota is an error that names the attribute, in every call and in one
// request of a batch, and nothing is counted.
func TestQuotaThatIsNoNumber(t *testing.T) {
	t.Parallel()
	e := engine(t, []rule.Rule{
		{Name: "seen", Window: window.Fixed(time.Hour)},
		{Name: "calls", Per: []string{"user"}, Quota: limitOf(40), Window: window.Fixed(time.Hour)},
	})
	bad := func(err error) bool {
		f, ok := errors.AsType[*fault.Fault](err)
		return ok && f.Path == "attributes.customer_limit" && strings.Contains(f.Problem, "rule calls")
	}
	for _, value := range []string{"-1", "1.5", "many", "+5", " 5"} {
		r := weir.Request{Attributes: weir.Attributes("user", "ann", "customer_limit", value)}
		for _, verb := range []store.Verb{store.Check, store.Take, store.Record, store.Refund} {
			if err := e.Do(t.Context(), verb, &r, new(weir.Decision)); !bad(err) {
				t.Errorf("%s with %q: got %v, want a fault of the attribute", verb, value, err)
			}
		}
		if _, err := e.Usage(t.Context(), "calls", r.Attributes); !bad(err) {
			t.Errorf("usage with %q: got %v, want a fault of the attribute", value, err)
		}
		if _, _, err := e.Explain(t.Context(), r); !bad(err) {
			t.Errorf("explain with %q: got %v, want a fault of the attribute", value, err)
		}
	}
	for _, name := range []string{"seen", "calls"} {
		if u, err := e.Usage(t.Context(), name, weir.Attributes("user", "ann", "customer_limit", "5")); err != nil || u.Used != 0 {
			t.Errorf("%s: got %d counted (%v), want 0", name, u.Used, err)
		}
	}
	if _, err := e.Usage(t.Context(), "calls", weir.Attributes("user", "ann")); err == nil {
		t.Error("got the usage without a quota, want an error")
	}
}

package window_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhq/weir/window"
)

// After a count, hits below it go to the base alone, and from the hit that
// reaches it on to the limit too. The twin is two twins and that sentence;
// waits are found by the laws (see FuzzLaws).
func TestAfter(t *testing.T) {
	t.Parallel()
	for _, count := range []int64{1, 2, 30} {
		for _, quota := range []int64{1, 3, 10} {
			for _, shape := range shapes {
				rnd := rand.New(rand.NewPCG(uint64(count), uint64(quota)))
				l := window.MustCompile(window.Limit{Quota: quota, Window: window.Sliding(2 * time.Second), After: window.After{Count: count, Window: window.Fixed(time.Minute)}})
				base, inner := fixed(time.Minute), &log{length: 2 * time.Second}
				tr := traffic{shape: shape, verbs: []verb{take, take, take, check}, length: 2 * time.Second, most: 4}
				var s window.State
				for i, c := range tr.calls(rnd, 2000) {
					n := c.hits.N
					above := min(n, max(0, base.used(c.now)+n-count+1)) // hits count to used+n
					want := inner.used(c.now)+above <= quota || above == 0
					var r window.Result
					if s, r = c.do(l, s); r.Allowed != want {
						t.Fatalf("after %d, quota %d, call %d, %s of %d: got %+v, want allowed %v", count, quota, i, c.verb, n, r, want)
					}
					if want && c.verb == take {
						base.add(c.now, n)
						if above > 0 {
							inner.add(c.now, above)
						}
					}
					if got, want := r.Used, inner.used(c.now); got != want {
						t.Fatalf("after %d, quota %d, call %d: got %d used, want %d", count, quota, i, got, want)
					}
				}
			}
		}
	}
}

// A refund takes back what both windows hold of the newest hits.
func TestAfterRefund(t *testing.T) {
	t.Parallel()
	l := window.MustCompile(window.Limit{Quota: 5, Window: window.Sliding(time.Minute), After: window.After{Count: 3, Window: window.Fixed(time.Hour)}})
	one := window.Hits{N: 1}
	s, r := l.Take(nil, 0, window.Hits{N: 4}) // the third and the fourth are the limit's
	if r.Used != 2 {
		t.Fatalf("four hits: got %d used, want 2", r.Used)
	}
	if s, r = l.Refund(s, 0, one); r.Used != 1 {
		t.Errorf("a refund: got %d used, want 1", r.Used)
	}
	if s, r = l.Refund(s, 0, window.Hits{N: 2}); r.Used != 0 {
		t.Errorf("two more: got %d used, want 0", r.Used)
	}
	if s, r = l.Take(s, 0, one); r.Used != 0 {
		t.Errorf("the second hit again: got %d used, want 0", r.Used)
	}
	if _, r = l.Take(s, 0, one); r.Used != 1 {
		t.Errorf("the third hit again: got %d used, want 1", r.Used)
	}
}

package leasestore_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/window"
)

// Instances that count a key under different quotas, as in a deploy that lowers it, admit no more than the larger one and
// their credits: what the others report of their credit takes nothing away that was counted.
func TestCreditUnderDifferentQuotas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limit := window.Limit{Quota: 5000, Window: window.Sliding(time.Second), Lease: 50}
		f := newFleet(4, limit, 500*time.Microsecond, 0)
		limit.Quota = 2500
		f.lower = window.MustCompile(limit)
		f.run(t.Context(), 3*time.Second, func(int, time.Duration) float64 { return 5000 })
		f.finish(t)
	})
}

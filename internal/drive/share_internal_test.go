package drive

import (
	"testing"
	"time"

	"github.com/weirhq/weir/window"
)

// Limits whose quotas come with requests are many, and their shares are not all kept.
func TestSharesAreBounded(t *testing.T) {
	t.Parallel()
	l := Local{Nodes: 2}
	most := window.MustCompile(window.Limit{Quota: 10 * maxShares, Window: window.Sliding(time.Hour)})
	for n := range most.Quota {
		if got := l.share(most.WithQuota(n)).Quota; got != (n+1)/2 {
			t.Fatalf("got a share of %d, want %d", got, (n+1)/2)
		}
	}
	kept := 0
	l.shares.Range(func(any, any) bool { kept++; return true })
	if kept > maxShares {
		t.Errorf("got %d shares, want at most %d", kept, maxShares)
	}
}

package envoyrlqs

import (
	"fmt"
	"testing"
	"time"

	rlqs "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"

	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
)

// A report on a stream that has as many buckets as it may drops the old ones once: a further bucket looks at no others.
func TestFullSession(t *testing.T) {
	t.Parallel()
	engine := scripttest.Engine(t, scripttest.Rules(t, "rules: [{name: api, per: [user], limit: 100, window: 1m}]"))
	now := time.Now()
	id := func(n int) *rlqs.BucketId {
		return &rlqs.BucketId{Bucket: map[string]string{"user": fmt.Sprint(n)}}
	}
	s := &session{buckets: map[string]*bucket{}}
	for n := range maxBuckets {
		s.bucket(id(n)).last = now.Add(-2 * maxLife)
	}
	if b := s.bucket(id(maxBuckets)); !b.untracked || len(s.buckets) != maxBuckets {
		t.Errorf("a further bucket: got %d buckets, and that it is one of them: %v", len(s.buckets), !b.untracked)
	}
	in := &rlqs.RateLimitQuotaUsageReports{BucketQuotaUsages: []*rlqs.RateLimitQuotaUsageReports_BucketQuotaUsage{{BucketId: id(maxBuckets)}}}
	if out, err := s.report(t.Context(), engine, in, now); err != nil || len(out.BucketAction) != 1 || len(s.buckets) != 1 {
		t.Errorf("a report: got %v, %v and %d buckets, want an assignment for the only one", out, err, len(s.buckets))
	}
}

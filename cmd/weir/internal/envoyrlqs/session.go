package envoyrlqs

import (
	"container/list"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	rlqs "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/urlpath"
	"github.com/weirhq/weir/internal/run"
)

// session is one stream: the buckets of one Envoy. It is not safe for concurrent use.
type session struct {
	domain  string
	buckets map[string]*bucket // by the text of the id
	idle    *list.List         // the buckets by their last request, the oldest first
	due     time.Time          // of a bucket that is due first, or earlier; zero: none is
	pool    *pool
	share   string        // of the caller
	bytes   int64         // of the buckets; guarded by the mu of pool
	crowded chan struct{} // has a value when shrink should be called
}

// open returns a new session of a caller of a share, which close must end.
func (p *pool) open(share string) *session {
	return &session{buckets: map[string]*bucket{}, idle: list.New(), pool: p, share: share, crowded: make(chan struct{}, 1)}
}

func (s *session) close() { s.pool.add(s, -s.bytes) }

// batch is the maximum number of buckets that are asked for in one call of the store.
const batch = 256

// report takes the usages of a message, which was checked, and returns the assignments that are sent at once. Its error ends the stream.
func (s *session) report(ctx context.Context, engine *weir.Engine, in *rlqs.RateLimitQuotaUsageReports, now time.Time) (*rlqs.RateLimitQuotaResponse, error) {
	out := new(rlqs.RateLimitQuotaResponse)
	usages := make([]*rlqs.RateLimitQuotaUsageReports_BucketQuotaUsage, 0, len(in.BucketQuotaUsages))
	all := make([]*bucket, 0, len(in.BucketQuotaUsages))
	for _, u := range in.BucketQuotaUsages {
		if isDecidable(u) {
			usages, all = append(usages, u), append(all, s.bucket(u))
		} else {
			out.BucketAction = append(out.BucketAction, refuse(u))
		}
	}
	s.shrink(out)
	for len(all) > 0 {
		n := min(batch, len(all))
		buckets, asks := all[:n:n], make([]run.Assignment, n)
		for i, b := range buckets {
			if slices.Contains(buckets[:i], b) { // its usage in this message was not expected: it is counted, and answered once
				b = &bucket{id: b.id, attributes: b.attributes, untracked: true}
			}
			buckets[i], asks[i] = b, b.ask(usages[i], now)
		}
		if err := s.assign(ctx, engine, buckets, asks, out); err != nil {
			return nil, err
		}
		all, usages = all[n:], usages[n:]
	}
	return out, nil
}

// more returns assignments for buckets that got less than they wanted, before their next reports. Its error ends the stream.
func (s *session) more(ctx context.Context, engine *weir.Engine, now time.Time) (*rlqs.RateLimitQuotaResponse, error) {
	var buckets []*bucket
	var asks []run.Assignment
	s.due = time.Time{}
	for _, b := range s.buckets {
		switch {
		case b.due.IsZero():
		case b.due.After(now) || len(buckets) == batch:
			s.wake(b)
		default:
			buckets, asks = append(buckets, b), append(asks, b.more(now))
		}
	}
	out := new(rlqs.RateLimitQuotaResponse)
	return out, s.assign(ctx, engine, buckets, asks, out)
}

// wake lets more run when b is due.
func (s *session) wake(b *bucket) {
	if !b.due.IsZero() && (s.due.IsZero() || b.due.Before(s.due)) {
		s.due = b.due
	}
}

// assign asks the engine for assignments for buckets, and adds them to out.
func (s *session) assign(ctx context.Context, engine *weir.Engine, buckets []*bucket, asks []run.Assignment, out *rlqs.RateLimitQuotaResponse) error {
	requests := make([]weir.Item, len(buckets))
	for i, b := range buckets {
		requests[i].Request.Attributes = b.attributes
	}
	if _, err := engine.Run(ctx, requests, run.Options{Assign: asks}); err != nil {
		return err
	}
	sent := time.Now()
	for i, b := range buckets {
		if b.untracked {
			continue
		}
		action := b.assign(&asks[i], sent)
		if s.wake(b); action == nil {
			continue
		}
		if out.BucketAction = append(out.BucketAction, action); action.GetAbandonAction() != nil {
			s.drop(b)
		}
	}
	return nil
}

// bucket returns the bucket of a usage.
func (s *session) bucket(u *rlqs.RateLimitQuotaUsageReports_BucketQuotaUsage) *bucket {
	id := u.BucketId
	var text strings.Builder
	attributes := make([]weir.Attribute, 0, len(id.Bucket)+1)
	for _, name := range slices.Sorted(maps.Keys(id.Bucket)) {
		value := id.Bucket[name]
		attributes = append(attributes, weir.Attribute{Name: name, Value: value})
		for _, part := range [...]string{name, value} {
			text.WriteByte(byte(len(part) >> 8))
			text.WriteByte(byte(len(part)))
			text.WriteString(part)
		}
	}
	attributes = append(attributes, weir.Attribute{Name: "domain", Value: s.domain}) // which no entry replaces
	attributes = urlpath.InAttributes(attributes)
	key := text.String()
	b := s.buckets[key]
	if b == nil {
		b = &bucket{key: key, id: id, attributes: attributes}
		b.place = s.idle.PushFront(b)
		s.buckets[key] = b
		s.pool.add(s, b.size())
	}
	if u.NumRequestsAllowed|u.NumRequestsDenied != 0 {
		s.idle.MoveToBack(b.place)
	}
	return b
}

// shrink drops the least recently used buckets, and adds to out that Envoy abandons them, until there are at most
// maxBuckets and s does not crowd the pool.
func (s *session) shrink(out *rlqs.RateLimitQuotaResponse) {
	for len(s.buckets) > maxBuckets || s.pool.crowds(s) {
		b := s.idle.Front().Value.(*bucket)
		s.drop(b)
		action := &rlqs.RateLimitQuotaResponse_BucketAction{BucketId: b.id}
		setAbandon(action)
		out.BucketAction = append(out.BucketAction, action)
	}
}

// drop forgets b. What is assigned to it counts in full.
func (s *session) drop(b *bucket) {
	b.untracked = true
	delete(s.buckets, b.key)
	s.idle.Remove(b.place)
	s.pool.add(s, -b.size())
}

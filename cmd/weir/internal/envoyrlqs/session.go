package envoyrlqs

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	rlqs "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/internal/run"
)

// session is one stream: the buckets of one Envoy. It is not safe for concurrent use.
type session struct {
	domain  string
	buckets map[string]*bucket // by the text of the id
	due     time.Time          // of a bucket that is due first, or earlier; zero: none is
	memory  access.Reservation
	bytes   int64 // of the buckets
}

// batch is the maximum number of buckets that are asked for in one call of the store.
const batch = 256

// report takes the usages of a message, which was checked, and returns the assignments that are sent at once. Its error ends the stream.
func (s *session) report(ctx context.Context, engine *weir.Engine, in *rlqs.RateLimitQuotaUsageReports, now time.Time) (*rlqs.RateLimitQuotaResponse, error) {
	out := new(rlqs.RateLimitQuotaResponse)
	if len(s.buckets)+len(in.BucketQuotaUsages) > maxBuckets {
		s.sweep(now) // once, as it looks at all buckets
	}
	for usages := range slices.Chunk(in.BucketQuotaUsages, batch) {
		buckets := make([]*bucket, 0, len(usages))
		asks := make([]run.Assignment, 0, len(usages))
		for _, u := range usages {
			if !isDecidable(u) {
				out.BucketAction = append(out.BucketAction, refuse(u))
				continue
			}
			b := s.bucket(u.BucketId)
			if slices.Contains(buckets, b) { // its usage in this message was not expected: it is counted, and answered once
				b = &bucket{id: u.BucketId, attributes: b.attributes, untracked: true}
			}
			buckets, asks = append(buckets, b), append(asks, b.ask(u, now))
		}
		if err := s.assign(ctx, engine, buckets, asks, out); err != nil {
			return nil, err
		}
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

// assign has the engine answer asks, which are of buckets, and adds the assignments to out.
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

// bucket returns the bucket with an id. If there is no room for it, it is not tracked: its usage counts, and it gets no assignment.
func (s *session) bucket(id *rlqs.BucketId) *bucket {
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
	key := text.String()
	if b := s.buckets[key]; b != nil {
		return b
	}
	b := &bucket{key: key, id: id, attributes: attributes}
	if len(s.buckets) >= maxBuckets || s.memory.Reserve(b.size()) != nil {
		b.untracked = true
		return b
	}
	s.bytes += b.size()
	s.buckets[key] = b
	return b
}

// drop forgets b. What is assigned to it counts in full.
func (s *session) drop(b *bucket) {
	delete(s.buckets, b.key)
	s.bytes -= b.size()
	s.memory.Shrink(streamBytes + s.bytes)
}

// sweep drops buckets that Envoy does not report anymore.
func (s *session) sweep(now time.Time) {
	for _, b := range s.buckets {
		if now.Sub(b.last) > maxLife {
			s.drop(b)
		}
	}
}

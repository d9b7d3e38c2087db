package envoyrlqs

import (
	"fmt"

	rlqs "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"

	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/sizes"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/window"
)

// Resource limits of one stream. A bucket reserves bucketBytes and its text of the memory for requests.
const (
	maxBuckets  = 10_000
	streamBytes = 64 << 10
	bucketBytes = 2 << 10

	// A decoded message takes about textTimes its size, and objectBytes for each bucket and entry.
	textTimes   = 4
	objectBytes = 256
)

// Numbers of fields in messages.
const (
	usagesField = 2 // of reports
	idField     = 1 // of a usage
	entryField  = 1 // of an id
)

// excess returns the number of objects in a message, or the fault of one that has too many. It runs before decoding.
func excess(b []byte) (objects int, err error) {
	i := 0
	for usage := range grpcserver.Submessages(b, usagesField) {
		if i++; i > maxBuckets {
			return 0, fault.Newf("bucket_quota_usages", "are more than %d", maxBuckets)
		}
		entries := 0
		for id := range grpcserver.Submessages(usage, idField) {
			entries += grpcserver.Count(id, entryField)
		}
		if entries > sizes.Attributes {
			return 0, fault.Newf(at(i-1, "bucket_id"), "has %d entries: want at most %d", entries, sizes.Attributes)
		}
		objects += 2 + entries
	}
	return objects, nil
}

// check returns the fault of a message, as a [*fault.Fault] with its path. The first message sets the domain of the stream.
func (s *session) check(in *rlqs.RateLimitQuotaUsageReports) error {
	if s.domain == "" {
		s.domain = in.Domain
	}
	switch {
	case s.domain == "":
		return fault.Newf("domain", "is missing")
	case in.Domain != "" && in.Domain != s.domain:
		return fault.Newf("domain", "differs from that of the first message")
	case len(in.Domain) > sizes.Text:
		return fault.Newf("domain", "has %d bytes: want at most %d", len(in.Domain), sizes.Text)
	}
	for i, u := range in.BucketQuotaUsages {
		entries := u.GetBucketId().GetBucket()
		if n := len(entries); n == 0 || n > sizes.Attributes {
			return fault.Newf(at(i, "bucket_id"), "has %d entries: want 1 to %d", n, sizes.Attributes)
		}
		for name, value := range entries {
			if name == "" || value == "" || max(len(name), len(value)) > sizes.Text {
				return fault.Newf(at(i, "bucket_id"), "has a key or a value without text, or of more than %d bytes", sizes.Text)
			}
		}
		if most := max(u.NumRequestsAllowed, u.NumRequestsDenied); most > uint64(window.MaxHits)/2 {
			return fault.Newf(at(i, "num_requests"), "%d: want at most %d", most, window.MaxHits/2)
		}
	}
	return nil
}

// at returns the path of a field of usage i.
func at(i int, field string) string { return fmt.Sprintf("bucket_quota_usages[%d].%s", i, field) }

package envoyrlqs

import (
	"fmt"

	rlqs "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/sizes"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/window"
)

// Resource limits of one stream. A bucket takes bucketBytes and its text of the [pool].
const (
	maxBuckets  = 10_000
	bucketBytes = 2 << 10

	// maxValue is in bytes, for values in ids.
	maxValue = 8 << 10

	// A decoded message takes about textTimes its size, and objectBytes for each usage, id and entry. While it is
	// answered, each usage takes bucketBytes more, even if there is no place for its bucket.
	textTimes   = 4
	objectBytes = 256
)

// Numbers of fields in messages.
const (
	usagesField = 2 // of reports
	idField     = 1 // of a usage
	entryField  = 1 // of an id
	valueField  = 2 // of an entry
)

// texts lead to the values in ids.
var texts = []protowire.Number{usagesField, idField, entryField, valueField}

// memoryOf returns about how many bytes of memory it takes to decode and answer a message, or the fault of an id that has
// too many entries. It runs before decoding.
func memoryOf(b []byte) (bytes int64, err error) {
	i := 0
	bytes = textTimes * int64(len(b))
	for usage := range grpcserver.Submessages(b, usagesField) {
		entries := 0
		for id := range grpcserver.Submessages(usage, idField) {
			entries += grpcserver.Count(id, entryField)
		}
		if entries == 0 || entries > sizes.Attributes {
			return 0, fault.Newf(at(i, "bucket_id"), "has %d entries: want 1 to %d", entries, sizes.Attributes)
		}
		i++
		bytes += bucketBytes + objectBytes*int64(2+entries)
	}
	return bytes, nil
}

// check returns the fault of a message, as a [*fault.Fault] with its path. It ends the stream, so it is one of Envoy's
// configuration: what Envoy's clients choose, which are the values in ids, is not ([isDecidable]). The first message sets the domain
// of the stream.
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
		for name := range u.BucketId.Bucket {
			if name == "" || len(name) > sizes.Text {
				return fault.Newf(at(i, "bucket_id"), "has a key without text, or of more than %d bytes", sizes.Text)
			}
		}
	}
	return nil
}

// isDecidable reports whether the rules can decide a bucket with this usage.
func isDecidable(u *rlqs.RateLimitQuotaUsageReports_BucketQuotaUsage) bool {
	for _, value := range u.BucketId.Bucket {
		if len(value) > maxValue {
			return false
		}
	}
	return max(u.NumRequestsAllowed, u.NumRequestsDenied) <= uint64(window.MaxHits)/2
}

// at returns the path of a field of usage i.
func at(i int, field string) string { return fmt.Sprintf("bucket_quota_usages[%d].%s", i, field) }

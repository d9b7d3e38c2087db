package envoyrls

import (
	"strings"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirhq/weir"
)

// request is a RateLimitRequest.
type request struct {
	domain      string
	hits        uint32
	descriptors []descriptor
}

// descriptor is a RateLimitDescriptor.
type descriptor struct {
	entries  []weir.Attribute                              // keys and values
	limit    *common.RateLimitDescriptor_RateLimitOverride // nil: none
	hits     uint64                                        // if ownHits is set
	ownHits  bool
	negative bool
}

// set sets r to in.
func (r *request) set(in *rls.RateLimitRequest) {
	r.domain, r.hits, r.descriptors = in.Domain, in.HitsAddend, make([]descriptor, len(in.Descriptors))
	for i, from := range in.Descriptors {
		entries := make([]weir.Attribute, len(from.Entries), len(from.Entries)+1) // and the domain
		for i, e := range from.Entries {
			entries[i] = weir.Attribute{Name: e.Key, Value: e.Value}
		}
		r.descriptors[i] = descriptor{
			entries: entries, limit: from.Limit, hits: from.HitsAddend.GetValue(), ownHits: from.HitsAddend != nil, negative: from.IsNegativeHits,
		}
	}
}

// answer is the status of one descriptor.
type answer struct {
	status   rls.RateLimitResponse_DescriptorStatus
	decision *weir.Decision
}

// setLimit sets the current limit. A multiplier of 0 is left out.
func (a *answer) setLimit(name string, quota uint32, unit rls.RateLimitResponse_RateLimit_Unit, times uint32) {
	a.status.CurrentLimit = &rls.RateLimitResponse_RateLimit{Name: name, RequestsPerUnit: quota, Unit: unit}
	if times > 0 {
		a.status.CurrentLimit.UnitMultiplier = wrapperspb.UInt32(times)
	}
}

// setReset sets the time until the reset: whole seconds, rounded up so that a
// client does not return too early.
func (a *answer) setReset(wait time.Duration) {
	a.status.DurationUntilReset = &durationpb.Duration{Seconds: int64((wait + time.Second - 1) / time.Second)}
}

// textOf returns entries as KEY=VALUE, separated by commas. Different entries have
// different texts: in keys and values, %, =, ~ and commas are %XX. A pattern that is not
// empty replaces the value of its entry, after a tilde.
func textOf(entries []weir.Attribute, patterns []string) string {
	n := 0
	for _, e := range entries {
		n += len(e.Name) + len(e.Value) + 2
	}
	var b strings.Builder
	b.Grow(n)
	for i, e := range entries {
		if i > 0 {
			b.WriteByte(',')
		}
		writeEscaped(&b, e.Name)
		if len(patterns) > i && patterns[i] != "" {
			b.WriteByte('~')
			writeEscaped(&b, patterns[i])
			continue
		}
		b.WriteByte('=')
		writeEscaped(&b, e.Value)
	}
	return b.String()
}

func writeEscaped(b *strings.Builder, text string) {
	const special = "%=,~"
	for {
		i := strings.IndexAny(text, special)
		if i < 0 {
			b.WriteString(text)
			return
		}
		const hex = "0123456789ABCDEF"
		b.WriteString(text[:i])
		b.WriteByte('%')
		b.WriteByte(hex[text[i]>>4])
		b.WriteByte(hex[text[i]&15])
		text = text[i+1:]
	}
}

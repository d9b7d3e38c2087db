package envoyrls

import (
	"slices"
	"strings"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirhq/weir"
)

// request is a RateLimitRequest. Its memory is reused.
type request struct {
	domain      string
	hits        uint32
	descriptors []descriptor

	// attributes are the entries of all descriptors, with the domain after those of each
	// descriptor.
	attributes []weir.Attribute
}

// descriptor is a RateLimitDescriptor.
type descriptor struct {
	// entries are the keys and values. The domain follows them in memory, so that asks
	// needs no copy.
	entries []weir.Attribute

	limit    *common.RateLimitDescriptor_RateLimitOverride // nil: none
	hits     uint64                                        // if ownHits is set
	ownHits  bool
	negative bool
}

// asks returns the attributes of the request of d: its entries and the domain.
func (d *descriptor) asks() []weir.Attribute { return d.entries[:len(d.entries)+1] }

// set sets r to in.
func (r *request) set(in *rls.RateLimitRequest) {
	n := len(in.Descriptors)
	for _, from := range in.Descriptors {
		n += len(from.Entries)
	}
	all := slices.Grow(r.attributes[:0], n)
	r.domain, r.hits, r.descriptors = in.Domain, in.HitsAddend, r.descriptors[:0]
	for _, from := range in.Descriptors {
		start := len(all)
		for _, e := range from.Entries {
			all = append(all, weir.Attribute{Name: e.Key, Value: e.Value})
		}
		end := len(all)
		all = append(all, weir.Attribute{Name: domainAttribute, Value: in.Domain})
		r.descriptors = append(r.descriptors, descriptor{
			entries: all[start : end : end+1], limit: from.Limit, hits: from.HitsAddend.GetValue(), ownHits: from.HitsAddend != nil, negative: from.IsNegativeHits,
		})
	}
	r.attributes = all
}

// answer is the status of one descriptor, with the memory of its messages.
type answer struct {
	status   rls.RateLimitResponse_DescriptorStatus
	limit    rls.RateLimitResponse_RateLimit
	times    wrapperspb.UInt32Value
	reset    durationpb.Duration
	decision *weir.Decision
}

// setLimit sets the current limit. A multiplier of 0 is left out.
func (a *answer) setLimit(name string, quota uint32, unit rls.RateLimitResponse_RateLimit_Unit, times uint32) {
	a.limit.Name, a.limit.RequestsPerUnit, a.limit.Unit = name, quota, unit
	if times > 0 {
		a.times.Value = times
		a.limit.UnitMultiplier = &a.times
	}
	a.status.CurrentLimit = &a.limit
}

// setReset sets the time until the reset: whole seconds, rounded up so that a
// client does not return too early.
func (a *answer) setReset(wait time.Duration) {
	a.reset.Seconds = int64((wait + time.Second - 1) / time.Second)
	a.status.DurationUntilReset = &a.reset
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

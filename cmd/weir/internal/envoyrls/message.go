package envoyrls

import (
	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirhq/weir"
)

// request is a RateLimitRequest. Its memory is used again.
type request struct {
	domain      string
	hits        uint32
	descriptors []descriptor

	// attributes are the entries of all descriptors, and the domain behind those of
	// each descriptor.
	attributes []weir.Attribute
}

// descriptor is a RateLimitDescriptor.
type descriptor struct {
	// entries are the keys and values. In the memory behind them is the domain, so that
	// asks needs no copy.
	entries []weir.Attribute

	limit    *common.RateLimitDescriptor_RateLimitOverride // nil: none
	hits     uint64                                        // if ownHits is set
	ownHits  bool
	negative bool

	from, to int // where the entries are
}

// asks returns the attributes of the request that d is: its entries and the domain.
func (d *descriptor) asks() []weir.Attribute { return d.entries[:len(d.entries)+1] }

// reset empties r.
func (r *request) reset() {
	r.domain, r.hits, r.descriptors, r.attributes = "", 0, r.descriptors[:0], r.attributes[:0]
}

// add adds an empty descriptor.
func (r *request) add() *descriptor {
	r.descriptors = append(r.descriptors, descriptor{from: len(r.attributes)})
	return &r.descriptors[len(r.descriptors)-1]
}

// added ends the entries of d, which was added last.
func (r *request) added(d *descriptor) {
	d.to = len(r.attributes)
	r.attributes = append(r.attributes, weir.Attribute{Name: domainAttribute})
}

// complete gives all descriptors their entries, and the domain.
func (r *request) complete() {
	for i := range r.descriptors {
		d := &r.descriptors[i]
		r.attributes[d.to].Value = r.domain
		d.entries = r.attributes[d.from : d.to : d.to+1]
	}
}

// set sets r to in.
func (r *request) set(in *rls.RateLimitRequest) {
	r.reset()
	r.domain, r.hits = in.GetDomain(), in.GetHitsAddend()
	for _, from := range in.GetDescriptors() {
		d := r.add()
		d.limit, d.hits, d.ownHits, d.negative = from.GetLimit(), from.GetHitsAddend().GetValue(), from.GetHitsAddend() != nil, from.GetIsNegativeHits()
		for _, e := range from.GetEntries() {
			r.attributes = append(r.attributes, weir.Attribute{Name: e.GetKey(), Value: e.GetValue()})
		}
		r.added(d)
	}
	r.complete()
}

// status is the DescriptorStatus of one descriptor.
type status struct {
	code      rls.RateLimitResponse_Code
	remaining uint32
	reset     int64 // in seconds; negative: none

	limited bool // there is a current limit, of which the rest is
	quota   uint32
	unit    rls.RateLimitResponse_RateLimit_Unit
	times   uint32 // of the unit; 0 is not told
	name    string
}

// message returns s as a generated message.
func (s *status) message() *rls.RateLimitResponse_DescriptorStatus {
	out := &rls.RateLimitResponse_DescriptorStatus{Code: s.code, LimitRemaining: s.remaining}
	if s.reset >= 0 {
		out.DurationUntilReset = &durationpb.Duration{Seconds: s.reset}
	}
	if s.limited {
		out.CurrentLimit = &rls.RateLimitResponse_RateLimit{Name: s.name, RequestsPerUnit: s.quota, Unit: s.unit}
		if s.times > 0 {
			out.CurrentLimit.UnitMultiplier = wrapperspb.UInt32(s.times)
		}
	}
	return out
}

// message returns the answer as a generated message.
func (x *exchange) message() *rls.RateLimitResponse {
	out := &rls.RateLimitResponse{
		OverallCode: x.code, ResponseHeadersToAdd: x.rest.ResponseHeadersToAdd, RequestHeadersToAdd: x.rest.RequestHeadersToAdd,
		RawBody: x.rest.RawBody, DynamicMetadata: x.rest.DynamicMetadata,
	}
	for i := range x.answers {
		out.Statuses = append(out.Statuses, x.answers[i].status.message())
	}
	return out
}

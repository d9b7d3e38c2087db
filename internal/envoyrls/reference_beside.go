package envoyrls

import (
	"fmt"
	"strconv"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// besideByFiles adds what an answer of envoyproxy/ratelimit carries beside its
// statuses.
func (a *API) besideByFiles(x *exchange, limits []found) {
	r := a.config.Reference
	if r.Headers != [3]string{} {
		if s := strictest(x.out.Statuses, limits); s != nil {
			for i, value := range []int64{int64(s.CurrentLimit.RequestsPerUnit), int64(s.LimitRemaining), s.DurationUntilReset.GetSeconds()} {
				x.out.ResponseHeadersToAdd = append(x.out.ResponseHeadersToAdd, &core.HeaderValue{Key: r.Headers[i], Value: strconv.FormatInt(value, 10)})
			}
		}
	}
	if r.Metadata {
		x.out.DynamicMetadata = metadataOf(&x.in, limits)
	}
}

// strictest returns the status that the header fields tell: the last one that is
// over a limit without quota_mode or, if there is none, the first with the fewest
// hits left. It returns nil if there is no limit.
func strictest(statuses []*rls.RateLimitResponse_DescriptorStatus, limits []found) (best *rls.RateLimitResponse_DescriptorStatus) {
	for _, s := range statuses {
		if s.CurrentLimit != nil && (best == nil || s.LimitRemaining < best.LimitRemaining) {
			best = s
		}
	}
	for i, s := range statuses {
		f := &limits[i]
		if f.over && (f.override || !f.limit.Quota) {
			best = s
		}
	}
	return best
}

// metadataOf returns the call, and the metadata of the limits that it does not
// exceed. Of values for the same key the first one stays.
func metadataOf(in *rls.RateLimitRequest, limits []found) *structpb.Struct {
	descriptors := &structpb.ListValue{}
	for _, d := range in.Descriptors {
		descriptors.Values = append(descriptors.Values, structpb.NewStructValue(descriptorOf(d)))
	}
	fields := map[string]*structpb.Value{
		"domain":      structpb.NewStringValue(in.Domain),
		"descriptors": structpb.NewListValue(descriptors),
	}
	if in.HitsAddend > 0 {
		fields["hitsAddend"] = structpb.NewNumberValue(float64(in.HitsAddend))
	}
	all := map[string]any{}
	for i := range limits {
		if f := &limits[i]; f.limit != nil && !f.over {
			merge(all, f.limit.Metadata)
		}
	}
	if len(all) > 0 {
		if m, err := structpb.NewStruct(all); err == nil {
			fields["metadata"] = structpb.NewStructValue(m)
		}
	}
	return &structpb.Struct{Fields: fields}
}

// merge adds what from has and to has not, in tables within tables, too.
func merge(to, from map[string]any) {
	for key, value := range from {
		there, ok := to[key]
		if !ok {
			if table, is := value.(map[string]any); is {
				mine := map[string]any{}
				merge(mine, table)
				value = mine
			}
			to[key] = value
			continue
		}
		mine, a := there.(map[string]any)
		theirs, b := value.(map[string]any)
		if a && b {
			merge(mine, theirs)
		}
	}
}

func descriptorOf(d *common.RateLimitDescriptor) *structpb.Struct {
	entries := &structpb.ListValue{}
	for _, e := range d.Entries {
		entries.Values = append(entries.Values, structpb.NewStringValue(e.Key+"="+e.Value))
	}
	fields := map[string]*structpb.Value{"entries": structpb.NewListValue(entries)}
	if d.Limit != nil {
		fields["limit"] = structpb.NewStringValue(fmt.Sprintf("requests_per_unit:%d unit:%s", d.Limit.RequestsPerUnit, strings.ToUpper(d.Limit.Unit.String())))
	}
	if d.HitsAddend != nil {
		fields["hitsAddend"] = structpb.NewNumberValue(float64(d.HitsAddend.Value))
	}
	return &structpb.Struct{Fields: fields}
}

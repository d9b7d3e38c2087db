package envoyrls

import (
	"fmt"
	"strconv"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// besideByFiles adds what an answer of envoyproxy/ratelimit carries beside its
// statuses.
func (a *API) besideByFiles(x *exchange, limits []found) {
	r := a.config.Reference
	if r.Headers != [3]string{} {
		if s := strictest(x.answers, limits); s != nil {
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
func strictest(answers []answer, limits []found) (best *rls.RateLimitResponse_DescriptorStatus) {
	for i := range answers {
		if s := &answers[i].status; s.CurrentLimit != nil && (best == nil || s.LimitRemaining < best.LimitRemaining) {
			best = s
		}
	}
	for i := range answers {
		f := &limits[i]
		if f.over && (f.override || !f.limit.Quota) {
			best = &answers[i].status
		}
	}
	return best
}

// metadataOf returns the call, and the metadata of the limits that it does not
// exceed. Of values for the same key the first one stays.
func metadataOf(in *request, limits []found) *structpb.Struct {
	descriptors := &structpb.ListValue{}
	for i := range in.descriptors {
		descriptors.Values = append(descriptors.Values, structpb.NewStructValue(descriptorOf(&in.descriptors[i])))
	}
	fields := map[string]*structpb.Value{
		"domain":      structpb.NewStringValue(in.domain),
		"descriptors": structpb.NewListValue(descriptors),
	}
	if in.hits > 0 {
		fields["hitsAddend"] = structpb.NewNumberValue(float64(in.hits))
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

func descriptorOf(d *descriptor) *structpb.Struct {
	entries := &structpb.ListValue{}
	for _, e := range d.entries {
		entries.Values = append(entries.Values, structpb.NewStringValue(e.Name+"="+e.Value))
	}
	fields := map[string]*structpb.Value{"entries": structpb.NewListValue(entries)}
	if d.limit != nil {
		fields["limit"] = structpb.NewStringValue(fmt.Sprintf("requests_per_unit:%d unit:%s", d.limit.RequestsPerUnit, strings.ToUpper(d.limit.Unit.String())))
	}
	if d.ownHits {
		fields["hitsAddend"] = structpb.NewNumberValue(float64(d.hits))
	}
	return &structpb.Struct{Fields: fields}
}

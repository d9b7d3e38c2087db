package envoyrls

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/envoyfile"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Reference has the settings of envoyproxy/ratelimit that change its answers.
type Reference struct {
	// Files returns the rule files in force.
	Files func() *envoyfile.Config

	// Now returns the time, for the reset of limits that have counted nothing.
	Now func() window.Instant

	// Shadow makes every call OK. Quota treats every descriptor as one with quota_mode,
	// including those without a limit that counts, which are never over a limit.
	Shadow, Quota bool

	// Together counts a call under all its limits or under none. Otherwise each
	// descriptor is counted by itself.
	Together bool

	// Headers are the names of the header fields for the limit, for what remains,
	// and for the time until the reset, of answers to clients. RequestHeaders are those of
	// the request that the proxy passes on. The zero value adds none.
	Headers, RequestHeaders [3]string

	// Metadata adds the call and the metadata of its limits to answers.
	Metadata bool

	// Observe is called for each descriptor with a limit that counts, if it is not
	// nil.
	Observe func(o Observed)

	// Answered is called for each call, if it is not nil.
	Answered func(c Answered)
}

// Answered has the result of one call.
type Answered struct {
	GRPC     bool // the call is not in JSON
	Took     time.Duration
	Degraded bool  // decided without the store
	Shadowed bool  // over the limit, and OK because of Shadow
	Err      error // the call was not decided
}

// Observed has the result of one descriptor.
type Observed struct {
	Limit  *envoyfile.Limit
	Values []string // of the entries, if metrics name them
	Hits   int64
	Quota  int64 // that of a limit that came with the call, or of Limit
	Shadow bool  // never denies
	Over   bool  // over the limit, even in shadow mode
	Used   int64 // after the call
}

// found is the limit of one descriptor in the files.
type found struct {
	limit    *envoyfile.Limit // nil: none
	override bool             // the limit came with the call
	requests uint32
	unit     rls.RateLimitResponse_RateLimit_Unit
	times    uint32 // of the unit
	window   window.Window
	item     int // -1: no request
	over     bool
}

// decideByFiles decides a call as envoyproxy/ratelimit does: each descriptor is a
// separate request, in their order.
func (a *API) decideByFiles(ctx context.Context, x *exchange) error {
	x.begin(len(x.in.descriptors))
	files := a.config.Reference.Files()
	limits, err := a.planByFiles(x, files)
	if err != nil {
		return err
	}
	if err := a.runByFiles(ctx, x); err != nil {
		return err
	}
	over, quotas, left := false, 0, 0
	for i := range limits {
		f := &limits[i]
		a.statusByFiles(x, i, f)
		switch {
		case a.config.Reference.isQuota(f):
			quotas++
			if !f.over {
				left++
			}
		case f.over:
			over = true
		}
	}
	over = over || quotas > 0 && left == 0
	x.shadowed = over && a.config.Reference.Shadow
	x.out.OverallCode = codeOf(!over || x.shadowed)
	a.addExtrasByFiles(x, limits)
	return nil
}

// isQuota reports whether a descriptor is one with quota_mode.
func (r *Reference) isQuota(f *found) bool {
	return r.Quota || f.item >= 0 && !f.override && f.limit.Quota
}

// planByFiles adds a request for each descriptor with a limit that counts.
func (a *API) planByFiles(x *exchange, files *envoyfile.Config) ([]found, error) {
	limits := make([]found, len(x.in.descriptors))
	patterns := make([][]string, len(limits))
	var replaced map[string]bool
	for i := range x.in.descriptors {
		d := &x.in.descriptors[i]
		match := files.Match(x.in.domain, len(d.entries), func(k int) (key, value string) {
			return d.entries[k].Name, d.entries[k].Value
		})
		patterns[i] = match.Patterns
		f := &limits[i]
		f.limit, f.item = match.Limit, -1
		if l := match.Limit; l != nil {
			f.requests, f.unit, f.window = l.Requests, unitsOfFiles[l.Unit], files.Window(l.Unit, l.Times)
			if l.Times > 1 {
				f.times = l.Times
			}
		}
		if d.limit != nil && match.Domain {
			o, err := overrideOf(i, d.limit)
			if err != nil {
				return nil, err
			}
			f.override, f.requests, f.window = true, o.quota, window.Aligned(o.length)
			f.unit, f.times = rls.RateLimitResponse_RateLimit_Unit(d.limit.Unit), d.limit.UnitMultiplier.GetValue()
			if f.unit == rls.RateLimitResponse_RateLimit_MONTH && f.times <= 1 {
				f.window = files.Window(envoyfile.Month, 1)
			}
			continue // it replaces no other
		}
		if f.limit != nil {
			for _, name := range f.limit.Replaces {
				if replaced == nil {
					replaced = map[string]bool{}
				}
				replaced[name] = true
			}
		}
	}
	for i := range x.in.descriptors {
		d := &x.in.descriptors[i]
		f := &limits[i]
		if f.limit != nil && !f.override && !f.limit.Unlimited && f.limit.Name != "" && replaced[f.limit.Name] {
			f.limit = nil
		}
		if !f.override && (f.limit == nil || f.limit.Rule == "") {
			continue
		}
		set, name := files.Set, ""
		if f.override {
			patterns[i] = nil // share_threshold does not share a descriptor's own limit
			o := override{files.OverrideRule(x.in.domain, f.limit, f.window), f.requests, f.window.Length}
			var err error
			set, err = a.overrides.rules(x.namespace, i, o, func() (*rule.Set, error) { return files.OverrideSet(o.rule, o.quota, f.window) })
			if err != nil {
				return nil, err
			}
			name = o.rule
		} else {
			name = f.limit.Rule
		}
		f.item = len(x.takes)
		hits, check := hitsOf(&x.in, d)
		x.takes = append(x.takes, weir.Item{Verb: verbOf(d, check), Request: weir.Request{Rules: set, Hits: hits, Attributes: []weir.Attribute{
			{Name: envoyfile.LimitAttribute, Value: name}, {Name: envoyfile.DescriptorAttribute, Value: textOf(d.entries, patterns[i])},
		}}})
	}
	return limits, nil
}

// runByFiles decides the requests of x in one call of the store.
func (a *API) runByFiles(ctx context.Context, x *exchange) error {
	if len(x.takes) == 0 {
		return nil
	}
	together := a.config.Reference.Together
	for i := range x.takes {
		together = together && x.takes[i].Verb == store.Take
	}
	_, err := x.run(ctx, x.takes, together, nil)
	return err
}

// statusByFiles fills in the status of descriptor i.
func (a *API) statusByFiles(x *exchange, i int, f *found) {
	to := &x.answers[i]
	to.status.Code = rls.RateLimitResponse_OK
	if f.item < 0 {
		if f.limit != nil && f.limit.Unlimited {
			to.status.LimitRemaining = math.MaxUint32
		}
		return
	}
	it := &x.takes[f.item]
	d := &it.Decision
	quota := int64(f.requests)
	used, reset := int64(0), time.Duration(0)
	f.over = !d.Allowed
	x.degraded = x.degraded || d.Degraded
	if len(d.Usages) > 0 {
		u := &d.Usages[0]
		used, reset = u.Used, u.ResetAfter
		// A check asks whether the hits so far are within the limit.
		if f.over = !u.Allowed; it.Verb != store.Take {
			f.over = used > quota
		}
	}
	if reset <= 0 {
		now := a.config.Reference.Now()
		_, end := f.window.PeriodBounds(now)
		reset = end.Sub(now)
	}
	if f.limit != nil && a.config.Reference.Observe != nil {
		a.observe(x, i, f, it, used)
	}
	if f.limit != nil && f.limit.Shadow && !f.override {
		f.over = false
	}
	name := ""
	if f.limit != nil && !f.override {
		name = f.limit.Name
	}
	to.setLimit(name, f.requests, f.unit, f.times)
	to.status.Code = codeOf(!f.over)
	if !f.over {
		to.status.LimitRemaining = uint32(max(quota-used, 0))
	}
	to.setReset(reset)
}

func (a *API) observe(x *exchange, i int, f *found, it *weir.Item, used int64) {
	var values []string
	if f.limit.HasValues() {
		for _, e := range x.in.descriptors[i].entries {
			values = append(values, e.Value)
		}
	}
	hits := it.Request.Hits
	if it.Verb != store.Take {
		hits = 0
	}
	a.config.Reference.Observe(Observed{f.limit, values, hits, int64(f.requests), f.limit.Shadow && !f.override, f.over, used})
}

// unitsOfFiles are the units of the files in the protocol.
var unitsOfFiles = [...]rls.RateLimitResponse_RateLimit_Unit{
	envoyfile.None:   rls.RateLimitResponse_RateLimit_UNKNOWN,
	envoyfile.Second: rls.RateLimitResponse_RateLimit_SECOND,
	envoyfile.Minute: rls.RateLimitResponse_RateLimit_MINUTE,
	envoyfile.Hour:   rls.RateLimitResponse_RateLimit_HOUR,
	envoyfile.Day:    rls.RateLimitResponse_RateLimit_DAY,
	envoyfile.Week:   rls.RateLimitResponse_RateLimit_WEEK,
	envoyfile.Month:  rls.RateLimitResponse_RateLimit_MONTH,
	envoyfile.Year:   rls.RateLimitResponse_RateLimit_YEAR,
}

// addExtrasByFiles adds what an answer of envoyproxy/ratelimit has in addition to its statuses.
func (a *API) addExtrasByFiles(x *exchange, limits []found) {
	r := a.config.Reference
	if s := r.strictest(x.answers, limits); s != nil {
		x.out.ResponseHeadersToAdd = fieldsOf(s, r.Headers)
		x.out.RequestHeadersToAdd = fieldsOf(s, r.RequestHeaders)
	}
	if r.Metadata {
		x.out.DynamicMetadata = metadataOf(&x.in, limits)
	}
}

// fieldsOf returns the header fields with these names that describe s.
func fieldsOf(s *rls.RateLimitResponse_DescriptorStatus, names [3]string) (fields []*core.HeaderValue) {
	if names == [3]string{} {
		return nil
	}
	for i, value := range []int64{int64(s.CurrentLimit.RequestsPerUnit), int64(s.LimitRemaining), s.DurationUntilReset.GetSeconds()} {
		fields = append(fields, &core.HeaderValue{Key: names[i], Value: strconv.FormatInt(value, 10)})
	}
	return fields
}

// strictest returns the status for the header fields: the last one that is over a limit without
// quota_mode or, if there is none, the first with the fewest hits left. It returns nil if there is
// no limit.
func (r *Reference) strictest(answers []answer, limits []found) (best *rls.RateLimitResponse_DescriptorStatus) {
	for i := range answers {
		if s := &answers[i].status; s.CurrentLimit != nil && (best == nil || s.LimitRemaining < best.LimitRemaining) {
			best = s
		}
	}
	for i := range answers {
		if f := &limits[i]; f.over && !r.isQuota(f) {
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

// merge adds the values of from that to lacks, recursively.
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

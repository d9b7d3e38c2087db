package envoyrls

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/headers"
	"github.com/weirhq/weir/rule"
)

// Names of what an answer has in addition to its statuses.
const (
	receiptHeader   = "x-weir-receipt" // of the request to the service behind the proxy
	receiptMetadata = "weir.receipt"
	outcomeMetadata = "weir.outcome"
	ruleMetadata    = "weir.rule"
)

// addExtras adds what an answer has in addition to its statuses: receipts, the outcome that the
// rules define, its body, and header fields.
func (a *API) addExtras(x *exchange) error {
	var metadata map[string]*structpb.Value
	set := func(name, value string) {
		if metadata == nil {
			metadata = map[string]*structpb.Value{}
		}
		metadata[name] = structpb.NewStringValue(value)
	}
	if receipts := receiptsOf(x.takes); receipts != "" {
		set(receiptMetadata, receipts)
		x.out.RequestHeadersToAdd = append(x.out.RequestHeadersToAdd, &core.HeaderValue{Key: receiptHeader, Value: receipts})
	}
	if d := decisive(x); d != nil {
		set(outcomeMetadata, strings.ToValidUTF8(d.Outcome, "\uFFFD"))
		if d.Rule != "" {
			set(ruleMetadata, d.Rule)
		}
		if o, ok := d.Rules.Outcome(d.Outcome); ok && !d.Allowed && len(o.Body) > 0 {
			x.out.RawBody = o.Body
			x.out.ResponseHeadersToAdd = append(x.out.ResponseHeadersToAdd, &core.HeaderValue{Key: "content-type", Value: "application/json"})
		}
	}
	if metadata != nil {
		x.out.DynamicMetadata = &structpb.Struct{Fields: metadata}
	}
	if a.config.Headers.Dialect != headers.None {
		a.headers(x)
	}
	return nil
}

// receiptsOf returns the receipts of what items hold, separated by commas. There
// is one for each descriptor that holds.
func receiptsOf(items []weir.Item) string {
	var all []byte
	for i := range items {
		if r := items[i].Decision.Receipt; !r.IsZero() {
			if len(all) > 0 {
				all = append(all, ',')
			}
			all = r.Take.Append(all)
		}
	}
	return string(all)
}

// decisive returns the first decision that denies or, if none does, the first with
// an outcome other than allow. It returns nil if all are simply allowed.
func decisive(x *exchange) (d *weir.Decision) {
	for i := range x.answers {
		switch next := x.answers[i].decision; {
		case !next.Allowed:
			return next
		case d == nil && next.Outcome != rule.Allow:
			d = next
		}
	}
	return d
}

// headers adds the fields that tell clients about their limits: those of all
// descriptors, each limit once.
func (a *API) headers(x *exchange) {
	var all, one headers.Limits
	for i := range x.answers {
		d := x.answers[i].decision
		one.SetDecision(d)
		if d.RetryAfter > all.RetryAfter {
			all.RetryAfter = d.RetryAfter
		}
		if all.Degraded == "" {
			all.Degraded = one.Degraded
		}
		for _, p := range one.Policies {
			at := slices.IndexFunc(all.Policies, func(q headers.Policy) bool { return q.Name == p.Name })
			switch {
			case at < 0:
				all.Policies = append(all.Policies, p)
			case p.RetryAfter != 0 || p.Remaining < all.Policies[at].Remaining && all.Policies[at].RetryAfter == 0:
				all.Policies[at] = p
			}
		}
	}
	fields := http.Header{}
	a.config.Headers.Set(fields, &all)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		x.out.ResponseHeadersToAdd = append(x.out.ResponseHeadersToAdd, &core.HeaderValue{Key: name, Value: fields[name][0]})
	}
}

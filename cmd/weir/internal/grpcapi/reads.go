package grpcapi

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/client/rpcwire"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/receipt"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// explain serves the method Explain.
func (a *API) explain(ctx context.Context, c *grpcserver.Call, in *weirv1.ExplainRequest) (*weirv1.ExplainResponse, error) {
	space, err := c.Namespace(a.spaces)
	if err != nil {
		return nil, err
	}
	r := weir.Request{Hits: in.GetHits()}
	if r.Attributes, err = attributesOf(in.GetAttributes()); err != nil {
		return nil, err
	}
	m := memory{bounds: c.Bounds()}
	defer m.free()
	if err := m.rules(space.Engine().Rules().Len()); err != nil {
		return nil, err
	}
	why, err := space.Engine().Explain(ctx, r)
	if err != nil {
		return nil, err
	}
	out := &weirv1.ExplainResponse{Decision: decisionOf(&why.Decision)}
	for i := range why.Rules {
		e := &why.Rules[i]
		x := &weirv1.RuleExplanation{Rule: e.Rule, Kind: kindOf(e.Kind), Matched: e.Matched, Shadow: e.Shadow, Reasons: e.Reasons}
		if e.Usage != nil {
			x.Usage = usageOf(e.Usage)
		}
		out.Rules = append(out.Rules, x)
	}
	return out, nil
}

// rules reserves the memory of an answer that lists n rules, if it is large.
func (m *memory) rules(n int) error {
	const each = 2 << 10
	if n*each > smallAnswer {
		return m.reserve(int64(n) * each)
	}
	return nil
}

// usage serves the method Usage.
func (a *API) usage(ctx context.Context, c *grpcserver.Call, in *weirv1.UsageRequest) (*weirv1.UsageResponse, error) {
	space, attrs, err := a.key(c, in.GetRule(), in.GetAttributes())
	if err != nil {
		return nil, err
	}
	u, err := space.Engine().Usage(ctx, in.GetRule(), attrs)
	if err != nil {
		return nil, err
	}
	out := &weirv1.UsageResponse{Usage: usageOf(&u.Usage), Holds: int64(u.Holds), Strikes: u.Strikes, Degraded: u.Degraded}
	for _, cell := range u.History {
		out.Series = append(out.Series, &weirv1.Cell{Start: timestamppb.New(cell.Start.Time()), Length: durationOf(cell.Length), Hits: cell.Hits})
	}
	return out, nil
}

// forget serves the method Forget.
func (a *API) forget(ctx context.Context, c *grpcserver.Call, in *weirv1.ForgetRequest) (*weirv1.ForgetResponse, error) {
	space, attrs, err := a.key(c, in.GetRule(), in.GetAttributes())
	if err != nil {
		return nil, err
	}
	if err := space.Engine().Forget(ctx, in.GetRule(), attrs); err != nil {
		return nil, err
	}
	return &weirv1.ForgetResponse{}, nil
}

// attributesOf returns the attributes in a map. The error is a [*fault.Fault].
func attributesOf(from map[string]string) ([]weir.Attribute, error) {
	var ask rpcwire.Ask
	attrs, err := ask.ReadRequest(rpcwire.AppendMap(nil, from), weir.Check, true, nil)
	switch {
	case err != nil:
		return nil, malformed()
	case ask.Fault != nil:
		return nil, ask.Fault
	}
	return attrs, nil
}

// decisionOf, usageOf, kindOf and durationOf return generated messages. They are for
// calls that are rare; others use package rpcwire.
func decisionOf(d *weir.Decision) *weirv1.Decision {
	out := &weirv1.Decision{
		Allowed: d.Allowed, Outcome: d.Outcome, Rule: d.Rule, RetryAfter: durationOf(d.RetryAfter), RetryRule: d.RetryRule,
		Verdicts: d.Verdicts, Triggered: d.Triggered, Unmatched: d.Unmatched,
		Degraded: d.Degraded, DegradedReason: string(d.DegradedReason), Hold: durationOf(d.Hold),
	}
	if d.Receipt != (receipt.Receipt{}) {
		out.Receipt = d.Receipt.String()
	}
	for i := range d.Usages {
		out.Limits = append(out.Limits, usageOf(&d.Usages[i]))
	}
	return out
}

func usageOf(u *weir.Usage) *weirv1.RuleUsage {
	out := &weirv1.RuleUsage{
		Rule: u.Rule, Kind: kindOf(u.Kind), Key: u.Key, Shadow: u.Shadow, Allowed: u.Allowed, Hits: u.Hits, Used: u.Used,
		RetryAfter: durationOf(u.RetryAfter), ResetAfter: durationOf(u.ResetAfter),
		Held: u.Held, Banned: u.Banned, Struck: u.Struck, Before: u.Before,
	}
	if u.Quota != window.Unlimited {
		out.Quota = &u.Quota
	}
	if u.Remaining != window.Unlimited {
		out.Remaining = &u.Remaining
	}
	if u.BannedUntil != 0 {
		out.BannedUntil = timestamppb.New(u.BannedUntil.Time())
	}
	return out
}

func kindOf(k rule.Kind) weirv1.RuleKind { return weirv1.RuleKind(k) + weirv1.RuleKind_RULE_KIND_LIMIT }

func durationOf(d time.Duration) *durationpb.Duration {
	switch d {
	case 0:
		return nil
	case window.Never:
		return &durationpb.Duration{Seconds: -1}
	}
	return durationpb.New(d)
}

// problem returns a fault of a field.
func problem(field, text string, args ...any) error { return fault.Newf(field, text, args...) }

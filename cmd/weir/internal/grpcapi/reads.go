package grpcapi

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/fault"
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
	m := memory{resources: c.Resources()}
	defer m.free()
	if err := m.rules(space.Engine().Rules().Len()); err != nil {
		return nil, err
	}
	d, why, err := space.Engine().Explain(ctx, r)
	if err != nil {
		return nil, err
	}
	out := &weirv1.ExplainResponse{Decision: decisionOf(&d)}
	for i := range why {
		e := &why[i]
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

// problem returns a fault of a field.
func problem(field, text string, args ...any) error { return fault.Newf(field, text, args...) }

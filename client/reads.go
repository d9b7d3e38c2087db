package client

import (
	"context"

	"google.golang.org/grpc"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Explain returns the answer of a check, and for each rule whether it matches the
// request or why not: see [weir.Engine.Explain]. The token needs the scope read.
func (c *Client) Explain(ctx context.Context, r weir.Request) (d weir.Decision, why []weir.RuleExplanation, err error) {
	if err := sendable(store.Check, &r); err != nil {
		return d, nil, err
	}
	in := &weirv1.ExplainRequest{Attributes: attributesOf(r.Attributes)}
	if r.Hits != 0 {
		in.Hits = &r.Hits
	}
	var out *weirv1.ExplainResponse
	if err := c.begin(ctx, "explain"); err != nil {
		return d, nil, err
	}
	err = c.ask(ctx, "explain", func(ctx context.Context, o grpc.CallOption) (err error) {
		out, err = c.rest.Explain(ctx, in, o)
		return err
	})
	if err != nil {
		return d, nil, err
	}
	if readDecision(out.GetDecision(), &d) != nil {
		return weir.Decision{}, nil, unreadable("explain")
	}
	for _, e := range out.GetRules() {
		x := weir.RuleExplanation{
			Rule: e.GetRule(), Kind: kindOf(e.GetKind()), Matched: e.GetMatched(), Shadow: e.GetShadow(), Reasons: e.GetReasons(),
		}
		if e.Usage != nil {
			u := usageOf(e.Usage)
			x.Usage = &u
		}
		why = append(why, x)
	}
	return d, why, nil
}

// Usage returns what the rule called name has counted for one key: see
// [weir.Engine.Usage]. The token needs the scope read.
func (c *Client) Usage(ctx context.Context, name string, attributes []weir.Attribute) (u weir.KeyUsage, err error) {
	if err := askable(name, attributes); err != nil {
		return u, err
	}
	var out *weirv1.UsageResponse
	if err := c.begin(ctx, "usage"); err != nil {
		return u, err
	}
	err = c.ask(ctx, "usage", func(ctx context.Context, o grpc.CallOption) (err error) {
		out, err = c.rest.Usage(ctx, &weirv1.UsageRequest{Rule: name, Attributes: attributesOf(attributes)}, o)
		return err
	})
	if err != nil {
		return u, err
	}
	if out.GetUsage() == nil {
		return u, unreadable("usage")
	}
	u.Usage, u.Holds, u.Strikes, u.Degraded = usageOf(out.GetUsage()), int(out.GetHolds()), out.GetStrikes(), out.GetDegraded()
	for _, cell := range out.GetSeries() {
		u.History = append(u.History, window.Cell{Start: window.At(cell.GetStart().AsTime()), Length: cell.GetLength().AsDuration(), Hits: cell.GetHits()})
	}
	return u, nil
}

// Forget drops what the rule called name has counted for one key: see
// [weir.Engine.Forget]. The token needs the scope admin.
func (c *Client) Forget(ctx context.Context, name string, attributes []weir.Attribute) error {
	if err := askable(name, attributes); err != nil {
		return err
	}
	if err := c.begin(ctx, "forget"); err != nil {
		return err
	}
	return c.ask(ctx, "forget", func(ctx context.Context, o grpc.CallOption) error {
		_, err := c.rest.Forget(ctx, &weirv1.ForgetRequest{Rule: name, Attributes: attributesOf(attributes)}, o)
		return err
	})
}

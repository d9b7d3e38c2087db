package client

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/client/rpcwire"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// Explain returns the answer of a check, and for each rule whether it matches the
// request or why not: see [weir.Engine.Explain]. The token needs the scope read.
func (c *Client) Explain(ctx context.Context, r weir.Request) (x weir.Explanation, err error) {
	if err := sendable(weir.Check, &r); err != nil {
		return x, err
	}
	in := &weirv1.ExplainRequest{Attributes: attributesOf(r.Attributes)}
	if r.Hits != 0 {
		in.Hits = &r.Hits
	}
	var out *weirv1.ExplainResponse
	if err := c.begin(ctx, "explain"); err != nil {
		return x, err
	}
	err = c.ask(ctx, "explain", func(ctx context.Context, o grpc.CallOption) (err error) {
		out, err = c.rest.Explain(ctx, in, o)
		return err
	})
	if err == nil {
		err = again(out.GetDecision(), func(b []byte) error { return rpcwire.ReadDecision(b, &x.Decision) })
	}
	for _, e := range out.GetRules() {
		y := weir.RuleExplanation{
			Rule: e.GetRule(), Kind: rule.Kind(e.GetKind() - weirv1.RuleKind_RULE_KIND_LIMIT), Matched: e.GetMatched(), Shadow: e.GetShadow(), Reasons: e.GetReasons(), //nolint:gosec // small
		}
		if e.Usage != nil && err == nil {
			y.Usage = new(weir.Usage)
			err = again(e.Usage, func(b []byte) error { return rpcwire.ReadUsage(b, y.Usage) })
		}
		x.Rules = append(x.Rules, y)
	}
	if err != nil {
		return weir.Explanation{}, err
	}
	return x, nil
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
	if err == nil {
		err = again(out.GetUsage(), func(b []byte) error { return rpcwire.ReadUsage(b, &u.Usage) })
	}
	if err != nil {
		return weir.KeyUsage{}, err
	}
	u.Holds, u.Strikes, u.Degraded = int(out.GetHolds()), out.GetStrikes(), out.GetDegraded()
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

// again reads a generated message with the code of package rpcwire.
func again(m proto.Message, read func([]byte) error) error {
	b, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	return read(b)
}

// attributesOf returns attributes as a map. Of two with the same name the last one
// counts.
func attributesOf(list []weir.Attribute) map[string]string {
	m := make(map[string]string, len(list))
	for _, a := range list {
		m[a.Name] = a.Value
	}
	return m
}

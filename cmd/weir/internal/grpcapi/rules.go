package grpcapi

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// rules serves the method Rules.
func (a *API) rules(_ context.Context, c *grpcserver.Call, _ *weirv1.RulesRequest) (*weirv1.RulesResponse, error) {
	space, err := c.Namespace(a.spaces)
	if err != nil {
		return nil, err
	}
	from, set := space.Source(), space.Engine().Rules()
	m := memory{resources: c.Resources()}
	defer m.free()
	if err := m.rules(set.Len()); err != nil {
		return nil, err
	}
	out := &weirv1.RulesResponse{File: from.File, Hash: from.Hash, Loaded: timestamppb.New(from.Loaded)}
	for i := range set.Len() {
		out.Rules = append(out.Rules, ruleOf(set.Rule(i)))
	}
	return out, nil
}

// ruleOf returns r with the words of the rules file, without those at their default.
func ruleOf(r *rule.Rule) *weirv1.Rule {
	out := &weirv1.Rule{
		Name: r.Name, Kind: kindOf(r.Kind()), Per: r.Per, Trigger: r.Trigger,
		Hold: durationOf(r.Hold), MaxHolds: int32(r.MaxHolds), Then: r.Then, //nolint:gosec // at most 10,000
	}
	for _, c := range r.When {
		out.When = append(out.When, c.Attribute+" "+c.Test.String())
	}
	for name, n := range r.Networks {
		if out.Networks == nil {
			out.Networks = map[string]string{}
		}
		out.Networks[name] = answer.Network(n)
	}
	switch r.Measure {
	case window.Sum:
		out.Sum = r.Of
	case window.Distinct:
		out.Distinct = r.Of
	}
	if q := r.Quota; q != nil {
		out.Limit = &weirv1.Quota{By: q.By, Cases: q.Cases, Else: q.Else}
		if q.By == "" {
			out.Limit = &weirv1.Quota{Value: &q.Value}
		}
	}
	if r.Kind() != rule.KindVerdict {
		out.Window = r.Window.String()
	}
	if r.Release {
		out.Unsettled = "release"
	}
	if b := r.Ban; b.For != 0 {
		out.Ban = &weirv1.Ban{For: durationOf(b.For), Factor: b.Factor, Most: durationOf(b.Most), Forget: durationOf(b.Forget)}
	}
	if r.CountRest {
		out.Rest = "count"
	}
	for name, n := range r.Feedback {
		if out.Feedback == nil {
			out.Feedback = map[string]int64{}
		}
		if n == window.All {
			n = -1
		}
		out.Feedback[name] = n
	}
	if r.Mode != rule.Enforce {
		out.Mode = r.Mode.String()
	}
	return out
}

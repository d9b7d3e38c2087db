package grpcapi

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// explain serves the method Explain.
func (a *API) explain(ctx context.Context, c *grpcserver.Call, in *weirv1.ExplainRequest) (*weirv1.ExplainResponse, error) {
	ns, err := c.Namespace(a.namespaces)
	if err != nil {
		return nil, err
	}
	r := weir.Request{Hits: in.GetHits()}
	if r.Attributes, err = attributesOf(in.GetAttributes()); err != nil {
		return nil, err
	}
	if err := c.Reserve(int64(ns.Engine().Rules().Len()) * listedBytes); err != nil {
		return nil, err
	}
	d, why, err := ns.Explain(ctx, r, run.Options{Admit: func(s run.Size) error {
		return c.Reserve(2 * sizeOf(s)) // each usage is also in the explanation of its rule
	}})
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

// About the memory of what answers list, in bytes. The text of a key comes on top, twice: as it is, and encoded.
const (
	listedBytes = 1 << 10 // of a rule, an override, or a denial
	keyBytes    = 256     // of a key of a top list
	cellBytes   = 256
)

// usage serves the method Usage.
func (a *API) usage(ctx context.Context, c *grpcserver.Call, in *weirv1.UsageRequest) (*weirv1.UsageResponse, error) {
	ns, attrs, err := a.key(c, in.GetRule(), in.GetAttributes())
	if err != nil {
		return nil, err
	}
	u, err := ns.Engine().Usage(ctx, in.GetRule(), attrs)
	if err != nil {
		return nil, err
	}
	if err := c.Reserve(int64(len(u.History)) * cellBytes); err != nil {
		return nil, err
	}
	out := &weirv1.UsageResponse{Usage: usageOf(&u.Usage), Holds: int64(u.Holds), Strikes: u.Strikes, Degraded: u.Degraded, Series: cellsOf(u.History)}
	return out, nil
}

// forget serves the method Forget.
func (a *API) forget(ctx context.Context, c *grpcserver.Call, in *weirv1.ForgetRequest) (*weirv1.ForgetResponse, error) {
	ns, attrs, err := a.key(c, in.GetRule(), in.GetAttributes())
	if err != nil {
		return nil, err
	}
	if err := ns.Forget(ctx, callerOf(ctx, c), in.GetRule(), attrs); err != nil {
		return nil, err
	}
	return &weirv1.ForgetResponse{}, nil
}

// setCount serves the method SetCount.
func (a *API) setCount(ctx context.Context, c *grpcserver.Call, in *weirv1.SetCountRequest) (*weirv1.SetCountResponse, error) {
	ns, attrs, err := a.key(c, in.GetRule(), in.GetAttributes())
	if err != nil {
		return nil, err
	}
	before, used, err := ns.SetCount(ctx, callerOf(ctx, c), in.GetRule(), attrs, in.GetHits())
	if err != nil {
		return nil, err
	}
	return &weirv1.SetCountResponse{Before: before, Used: used}, nil
}

// liftBan serves the method LiftBan.
func (a *API) liftBan(ctx context.Context, c *grpcserver.Call, in *weirv1.LiftBanRequest) (*weirv1.LiftBanResponse, error) {
	ns, attrs, err := a.key(c, in.GetRule(), in.GetAttributes())
	if err != nil {
		return nil, err
	}
	lifted, err := ns.LiftBan(ctx, callerOf(ctx, c), in.GetRule(), attrs)
	if err != nil {
		return nil, err
	}
	return &weirv1.LiftBanResponse{Lifted: lifted}, nil
}

// key finds the namespace and the attributes of a call about one key.
func (a *API) key(c *grpcserver.Call, rule string, from map[string]string) (*namespace.Namespace, []weir.Attribute, error) {
	ns, err := c.Namespace(a.namespaces)
	if err != nil {
		return nil, nil, err
	}
	if rule == "" {
		return nil, nil, fault.Newf("rule", "is missing; name one")
	}
	attrs, err := attributesOf(from)
	return ns, attrs, err
}

// some is the rules that a call is about: the one called name, or all if name is
// empty.
type some struct {
	namespace *namespace.Namespace
	set       *rule.Set
	rules     []int
	n         int
}

func (a *API) some(c *grpcserver.Call, name string, n int32, fallback int) (s some, err error) {
	if s.namespace, err = c.Namespace(a.namespaces); err != nil {
		return s, err
	}
	if s.namespace.Tops() == nil {
		return s, answer.NoTops()
	}
	switch s.n = int(n); {
	case n == 0:
		s.n = fallback
	case n < 0 || n > top.MaxAsked:
		return s, fault.Newf("n", "%d: want a number from 1 to %d", n, top.MaxAsked)
	}
	s.set = s.namespace.Engine().Rules()
	s.rules, err = answer.Select(s.set, name, name == "")
	return s, err
}

// top serves the method Top.
func (a *API) top(_ context.Context, c *grpcserver.Call, in *weirv1.TopRequest) (*weirv1.TopResponse, error) {
	s, err := a.some(c, in.GetRule(), in.GetN(), 10)
	if err != nil {
		return nil, err
	}
	tops, out := s.namespace.Tops(), &weirv1.TopResponse{}
	n := top.PerRule(s.n, len(s.rules))
	if err := c.Reserve(2 * int64(n) * keyBytes); err != nil { // of one rule, before it is read
		return nil, err
	}
	for _, i := range s.rules {
		r := s.set.Rule(i)
		t := tops.Top(r.Name, n)
		if in.GetRule() == "" && t.Used.Total == 0 && t.Denied.Total == 0 {
			continue
		}
		if err := c.Reserve(listedBytes + keysBytes(&t.Used) + keysBytes(&t.Denied)); err != nil {
			return nil, err
		}
		out.Rules = append(out.Rules, &weirv1.TopRule{
			Rule: r.Name, Kind: kindOf(r.Kind()), Shadow: r.Mode == rule.Shadow, Since: timestamppb.New(t.Since),
			Used: listOf(&t.Used), Denied: listOf(&t.Denied),
		})
	}
	out.Missed = tops.Missed()
	return out, nil
}

// keysBytes returns about the memory of the keys of l.
func keysBytes(l *top.List) (n int64) {
	for i := range l.Entries {
		n += keyBytes + 2*int64(len(l.Entries[i].Key))
	}
	return n
}

func listOf(l *top.List) *weirv1.TopList {
	out := &weirv1.TopList{Total: l.Total, Sample: l.Sample, Error: l.Error}
	for i := range l.Entries {
		e := &l.Entries[i]
		out.Keys = append(out.Keys, &weirv1.TopKey{Key: e.Key, Count: e.Count, Error: e.Error, Override: e.Override})
	}
	return out
}

// denials serves the method Denials.
func (a *API) denials(ctx context.Context, c *grpcserver.Call, in *weirv1.DenialsRequest) (*weirv1.DenialsResponse, error) {
	s, err := a.some(c, in.GetRule(), in.GetN(), 50)
	if err != nil {
		return nil, err
	}
	attrs, err := attributesOf(in.GetAttributes())
	if err != nil {
		return nil, err
	}
	rules, bad := s.namespace.Tops().Select(s.set, s.rules, attrs)
	if bad != nil {
		return nil, bad.In("attributes")
	}
	q := top.Query{Rules: rules, N: s.n, Share: c.Caller.Share()}
	if in.GetSince() != nil {
		q.Since = in.GetSince().AsTime()
	}
	if err := c.Reserve(2 * int64(s.n) * listedBytes); err != nil {
		return nil, err
	}
	found, err := s.namespace.Tops().Denials(ctx, q)
	if err != nil {
		return nil, err
	}
	size := int64(0)
	for i := range found.List {
		size += 2 * int64(len(found.List[i].Key))
	}
	if err := c.Reserve(size); err != nil {
		return nil, err
	}
	out := &weirv1.DenialsResponse{Dropped: found.Dropped, Degraded: found.Degraded}
	if !found.Oldest.IsZero() {
		out.Oldest = timestamppb.New(found.Oldest)
	}
	for i := range found.List {
		d := &found.List[i]
		x := &weirv1.Denial{
			Time: timestamppb.New(d.Time), Rule: d.Rule, Key: d.Key, Reason: string(d.Reason), Outcome: d.Outcome, Shadow: d.Shadow,
			Hits: d.Hits, Used: d.Used, Quota: d.Quota, RetryAfter: durationOf(d.RetryAfter), DegradedReason: string(d.Cause), Override: d.Override,
		}
		if !d.BannedUntil.IsZero() {
			x.BannedUntil = timestamppb.New(d.BannedUntil)
		}
		out.Denials = append(out.Denials, x)
	}
	return out, nil
}

// rules serves the method Rules.
func (a *API) rules(_ context.Context, c *grpcserver.Call, _ *weirv1.RulesRequest) (*weirv1.RulesResponse, error) {
	ns, err := c.Namespace(a.namespaces)
	if err != nil {
		return nil, err
	}
	from, set := ns.Source(), ns.Engine().Rules()
	if err := c.Reserve(int64(set.Len()) * listedBytes); err != nil {
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
		Near: int32(r.Near), //nolint:gosec // at most 100
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
		out.Limit = &weirv1.Quota{By: q.By, Cases: q.Cases, Of: q.Of, Most: q.Most, Else: q.Else}
		if q.Attribute() == "" {
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

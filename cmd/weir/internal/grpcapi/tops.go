package grpcapi

import (
	"context"
	"fmt"
	"net/http"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/rule"
)

// key finds the namespace and the attributes of a call about one key.
func (a *API) key(c *grpcserver.Call, rule string, from map[string]string) (*namespace.Namespace, []weir.Attribute, error) {
	space, err := c.Namespace(a.spaces)
	if err != nil {
		return nil, nil, err
	}
	if rule == "" {
		return nil, nil, problem("rule", "is missing; name one")
	}
	attrs, err := attributesOf(from)
	return space, attrs, err
}

// some is the rules that a call is about: the one called name, or all if name is
// empty.
type some struct {
	space *namespace.Namespace
	set   *rule.Set
	rules []int
	n     int
}

func (a *API) some(c *grpcserver.Call, name string, n int32, fallback int) (s some, err error) {
	if s.space, err = c.Namespace(a.spaces); err != nil {
		return s, err
	}
	if s.space.Tops() == nil {
		return s, &answer.Problem{Status: http.StatusNotFound, Detail: "the service keeps no top keys and denials: it runs with --top-keys 0"}
	}
	switch s.n = int(n); {
	case n == 0:
		s.n = fallback
	case n < 0 || n > top.MaxAsked:
		return s, problem("n", "%d: want a number from 1 to %d", n, top.MaxAsked)
	}
	s.set = s.space.Engine().Rules()
	if name == "" {
		s.rules = make([]int, s.set.Len())
		for i := range s.rules {
			s.rules[i] = i
		}
		return s, nil
	}
	i, ok := s.set.Find(name)
	if !ok {
		return s, fmt.Errorf("%w: %.64q", weir.ErrUnknownRule, name)
	}
	s.rules = []int{i}
	return s, nil
}

// top serves the method Top.
func (a *API) top(_ context.Context, c *grpcserver.Call, in *weirv1.TopRequest) (*weirv1.TopResponse, error) {
	s, err := a.some(c, in.GetRule(), in.GetN(), 10)
	if err != nil {
		return nil, err
	}
	tops, out := s.space.Tops(), &weirv1.TopResponse{}
	n := top.PerRule(s.n, len(s.rules))
	for _, i := range s.rules {
		r := s.set.Rule(i)
		t := tops.Top(r.Name, n)
		if in.GetRule() == "" && t.Used.Total == 0 && t.Denied.Total == 0 {
			continue
		}
		out.Rules = append(out.Rules, &weirv1.TopRule{
			Rule: r.Name, Kind: kindOf(r.Kind()), Shadow: r.Mode == rule.Shadow, Since: timestamppb.New(t.Since),
			Used: listOf(&t.Used), Denied: listOf(&t.Denied),
		})
	}
	out.Missed = tops.Missed()
	return out, nil
}

func listOf(l *top.List) *weirv1.TopList {
	out := &weirv1.TopList{Total: l.Total, Sample: l.Sample, Error: l.Error}
	for i := range l.Entries {
		e := &l.Entries[i]
		out.Keys = append(out.Keys, &weirv1.TopKey{Key: e.Key, Count: e.Count, Error: e.Error})
	}
	return out
}

// denials serves the method Denials.
func (a *API) denials(_ context.Context, c *grpcserver.Call, in *weirv1.DenialsRequest) (*weirv1.DenialsResponse, error) {
	s, err := a.some(c, in.GetRule(), in.GetN(), 50)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(s.rules))
	for i, at := range s.rules {
		names[i] = s.set.Rule(at).Name
	}
	out := &weirv1.DenialsResponse{}
	all := s.space.Tops().Denials(names, s.n)
	for i := range all {
		d := &all[i]
		x := &weirv1.Denial{
			Time: timestamppb.New(d.Time), Rule: d.Rule, Key: d.Key, Reason: string(d.Reason), Outcome: d.Outcome, Shadow: d.Shadow,
			Hits: d.Hits, Used: d.Used, Quota: d.Quota, RetryAfter: durationOf(d.RetryAfter), DegradedReason: string(d.Cause),
		}
		if !d.BannedUntil.IsZero() {
			x.BannedUntil = timestamppb.New(d.BannedUntil)
		}
		out.Denials = append(out.Denials, x)
	}
	return out, nil
}

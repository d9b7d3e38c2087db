package grpcapi

import (
	"context"
	"encoding/base64"
	"net/http"
	"time"

	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/types/known/timestamppb"

	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/audit"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/overrides"
	"github.com/weirhq/weir/cmd/weir/internal/sizes"
	"github.com/weirhq/weir/fault"
)

// callerOf returns who makes a call.
func callerOf(ctx context.Context, c *grpcserver.Call) audit.Caller {
	address := ""
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		address = p.Addr.String()
	}
	return namespace.CallerOf(c.Caller, address)
}

// withOverrides returns the namespace of a call about overrides.
func (a *API) withOverrides(c *grpcserver.Call) (*namespace.Namespace, error) {
	ns, err := c.Namespace(a.namespaces)
	if err == nil && ns.Kept().Overrides == nil {
		err = &answer.Problem{Status: http.StatusNotFound, Detail: "the service keeps no overrides"}
	}
	return ns, err
}

// setOverride serves the method SetOverride.
func (a *API) setOverride(ctx context.Context, c *grpcserver.Call, in *weirv1.SetOverrideRequest) (*weirv1.SetOverrideResponse, error) {
	ns, err := a.withOverrides(c)
	if err != nil {
		return nil, err
	}
	from := in.GetOverride()
	o := overrides.Override{Rule: from.GetRule(), Limit: from.GetLimit(), Burst: from.GetBurst(), Note: from.GetNote()}
	if from.GetUntil() != nil {
		if err := from.GetUntil().CheckValid(); err != nil {
			return nil, fault.Newf("override.until", "is no instant")
		}
		o.Until = from.GetUntil().AsTime().Truncate(time.Microsecond)
	}
	if o.Attributes, err = attributesOf(from.GetAttributes()); err != nil {
		return nil, within("override", err)
	}
	set, err := ns.SetOverride(ctx, callerOf(ctx, c), o)
	if err != nil {
		return nil, within("override", err)
	}
	return &weirv1.SetOverrideResponse{Override: overrideOf(&set)}, nil
}

// within returns err, whose fault is in a field.
func within(field string, err error) error {
	if list := fault.Of(err); len(list) == 1 {
		return list[0].In(field)
	}
	return err
}

// removeOverride serves the method RemoveOverride.
func (a *API) removeOverride(ctx context.Context, c *grpcserver.Call, in *weirv1.RemoveOverrideRequest) (*weirv1.RemoveOverrideResponse, error) {
	ns, err := a.withOverrides(c)
	if err != nil {
		return nil, err
	}
	switch {
	case in.GetRule() == "":
		return nil, fault.Newf("rule", "is missing; name one")
	case len(in.GetAttributes()) == 0:
		return nil, fault.Newf("attributes", "are missing; name those of the override")
	}
	attrs, err := attributesOf(in.GetAttributes())
	if err != nil {
		return nil, err
	}
	return &weirv1.RemoveOverrideResponse{}, ns.RemoveOverride(ctx, callerOf(ctx, c), in.GetRule(), attrs)
}

// overrides serves the method Overrides.
func (a *API) overrides(ctx context.Context, c *grpcserver.Call, in *weirv1.OverridesRequest) (*weirv1.OverridesResponse, error) {
	ns, err := a.withOverrides(c)
	if err != nil {
		return nil, err
	}
	after, err := base64.RawURLEncoding.DecodeString(in.GetAfter())
	if err != nil {
		return nil, fault.Newf("after", "want the next of an earlier answer")
	}
	if err := c.Reserve(overrides.PageSize * listedBytes); err != nil {
		return nil, err
	}
	p, err := ns.Kept().Overrides.List(ctx, ns.Name(), ns.Engine().Rules(), in.GetRule(), string(after))
	if err != nil {
		return nil, err
	}
	out := &weirv1.OverridesResponse{Next: base64.RawURLEncoding.EncodeToString([]byte(p.Next)), Degraded: p.Degraded}
	for i := range p.Overrides {
		out.Overrides = append(out.Overrides, overrideOf(&p.Overrides[i]))
	}
	return out, nil
}

func overrideOf(o *overrides.Override) *weirv1.Override {
	m := &weirv1.Override{
		Rule: o.Rule, Attributes: map[string]string{}, Limit: o.Limit, Burst: o.Burst, Note: o.Note, By: o.By, Set: timestamppb.New(o.Set), Idle: o.Idle,
	}
	for _, a := range o.Attributes {
		m.Attributes[a.Name] = a.Value
	}
	if !o.Until.IsZero() {
		m.Until = timestamppb.New(o.Until)
	}
	return m
}

// audit serves the method Audit.
func (a *API) audit(ctx context.Context, c *grpcserver.Call, in *weirv1.AuditRequest) (*weirv1.AuditResponse, error) {
	ns, err := c.Namespace(a.namespaces)
	if err != nil {
		return nil, err
	}
	n, until := int(in.GetN()), time.Time{}
	switch {
	case n == 0:
		n = 50
	case n < 0 || n > audit.MaxAsked:
		return nil, fault.Newf("n", "%d: want a number from 1 to %d", n, audit.MaxAsked)
	}
	if in.GetUntil() != nil {
		if err := in.GetUntil().CheckValid(); err != nil {
			return nil, fault.Newf("until", "is no instant")
		}
		until = in.GetUntil().AsTime()
	}
	if err := c.Reserve(int64(n) * 2 * sizes.Text); err != nil {
		return nil, err
	}
	found, err := ns.Kept().Audit.List(ctx, ns.Name(), n, until)
	if err != nil {
		return nil, err
	}
	out := &weirv1.AuditResponse{Degraded: found.Degraded}
	for i := range found.Entries {
		e := &found.Entries[i]
		out.Entries = append(out.Entries, &weirv1.AuditEntry{
			Time: timestamppb.New(e.Time), Action: string(e.Action), Token: e.By.Token, Address: e.By.Address, Rule: e.Rule, Attributes: e.Attributes,
			Before: string(e.Before), After: string(e.After),
		})
	}
	return out, nil
}

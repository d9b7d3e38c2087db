package grpcapi_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/cmd/weir/internal/audit"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/kept"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/overrides"
)

func TestOverrides(t *testing.T) {
	t.Parallel()
	engine := engineOf(t, "rules: [{name: calls, per: [customer, page], limit: 2, window: 1h}]", memory(t))
	book := overrides.New(overrides.Config{Store: kept.NewMemory(nil)})
	book.Follow("default", engine.Override)
	space := namespace.New("default", engine, 0, nil).WithKept(&namespace.Kept{Overrides: book, Audit: audit.New(audit.Config{})})
	_, c := serve(t, grpcserver.Config{}, namespace.NewSet(space))
	ctx := t.Context()
	acme := map[string]string{"customer": "acme"}
	set, err := c.SetOverride(ctx, &weirv1.SetOverrideRequest{Override: &weirv1.Override{
		Rule: "calls", Attributes: acme, Limit: 5, Until: timestamppb.New(time.Now().Add(time.Hour)), Note: "ticket",
	}})
	if err != nil || set.GetOverride().GetLimit() != 5 || set.GetOverride().GetSet() == nil || set.GetOverride().GetUntil() == nil {
		t.Fatalf("got %v, %v", set, err)
	}
	u, err := c.Usage(ctx, &weirv1.UsageRequest{Rule: "calls", Attributes: map[string]string{"customer": "acme", "page": "a"}})
	if err != nil || u.GetUsage().GetQuota() != 5 || !u.GetUsage().GetOverride() {
		t.Errorf("got %v, %v, want 5 by an override", u, err)
	}
	for _, tc := range []struct {
		code  codes.Code
		field string
		o     *weirv1.Override
	}{
		{codes.InvalidArgument, "override.rule", nil},
		{codes.InvalidArgument, "override.attributes.user", &weirv1.Override{Rule: "calls", Attributes: map[string]string{"user": "a"}}},
		{codes.InvalidArgument, "override.limit", &weirv1.Override{Rule: "calls", Attributes: acme, Limit: -1}},
		{codes.InvalidArgument, "override.until", &weirv1.Override{Rule: "calls", Attributes: acme, Until: &timestamppb.Timestamp{Nanos: -1}}},
		{codes.InvalidArgument, "override.attributes.customer", &weirv1.Override{Rule: "calls", Attributes: map[string]string{"customer": strings.Repeat("x", 2000)}}},
		{codes.FailedPrecondition, "", &weirv1.Override{Rule: "calls", Attributes: map[string]string{"page": "a"}}},
	} {
		_, err := c.SetOverride(ctx, &weirv1.SetOverrideRequest{Override: tc.o})
		if status.Code(err) != tc.code || !strings.Contains(err.Error(), tc.field) {
			t.Errorf("%v: got %v, want %v of %s", tc.o, err, tc.code, tc.field)
		}
	}
	all, err := c.Overrides(ctx, &weirv1.OverridesRequest{})
	if err != nil || len(all.GetOverrides()) != 1 || all.GetOverrides()[0].GetNote() != "ticket" {
		t.Errorf("got %v, %v, want one", all, err)
	}
	if _, err := c.Overrides(ctx, &weirv1.OverridesRequest{After: "?"}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("got %v for a page that is none", err)
	}
	for range 2 {
		if _, err := c.RemoveOverride(ctx, &weirv1.RemoveOverrideRequest{Rule: "calls", Attributes: acme}); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.Forget(ctx, &weirv1.ForgetRequest{Rule: "calls", Attributes: map[string]string{"customer": "acme", "page": "a"}}); err != nil {
		t.Error(err)
	}
	got, err := c.Audit(ctx, &weirv1.AuditRequest{})
	if err != nil || len(got.GetEntries()) != 3 {
		t.Fatalf("got %v, %v, want 3 changes", got, err)
	}
	for i, action := range []string{"forget", "override-removed", "override-set"} {
		e := got.GetEntries()[i]
		if e.GetAction() != action || e.GetRule() != "calls" || e.GetAttributes()["customer"] != "acme" || e.GetAddress() == "" {
			t.Errorf("got %v, want %s", e, action)
		}
	}
	for _, n := range []int32{-1, 1001} {
		if _, err := c.Audit(ctx, &weirv1.AuditRequest{N: n}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("got %v for %d changes", err, n)
		}
	}
}

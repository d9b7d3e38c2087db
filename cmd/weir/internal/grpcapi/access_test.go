package grpcapi_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/window"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func protoName(name string) protoreflect.Name { return protoreflect.Name(name) }

// TestScopes makes each call with each token, and without one.
func TestScopes(t *testing.T) {
	t.Parallel()
	_, c := serve(t, locked(t), namespace.Only(engineOf(t, rules, memory(t))))
	decide := func(ctx context.Context) error {
		s, err := c.Decide(ctx)
		if err == nil {
			_ = s.Send(&weirv1.DecideRequest{}) // io.EOF if the stream was refused meanwhile: Recv has the reason
			_, err = s.Recv()
			_ = s.CloseSend()
		}
		return err
	}
	for name, call := range map[string]struct {
		need access.Scope
		do   func(context.Context) error
	}{
		"take":    {access.Decide, func(ctx context.Context) error { _, err := c.Take(ctx, &weirv1.TakeRequest{}); return err }},
		"check":   {access.Decide, func(ctx context.Context) error { _, err := c.Check(ctx, &weirv1.CheckRequest{}); return err }},
		"settle":  {access.Decide, func(ctx context.Context) error { _, err := c.Settle(ctx, &weirv1.SettleRequest{}); return err }},
		"cancel":  {access.Decide, func(ctx context.Context) error { _, err := c.Cancel(ctx, &weirv1.CancelRequest{}); return err }},
		"renew":   {access.Decide, func(ctx context.Context) error { _, err := c.Renew(ctx, &weirv1.RenewRequest{}); return err }},
		"record":  {access.Record, func(ctx context.Context) error { _, err := c.Record(ctx, &weirv1.RecordRequest{}); return err }},
		"refund":  {access.Record, func(ctx context.Context) error { _, err := c.Refund(ctx, &weirv1.RefundRequest{}); return err }},
		"batch":   {access.None, func(ctx context.Context) error { _, err := c.Batch(ctx, &weirv1.BatchRequest{}); return err }},
		"decide":  {access.None, decide},
		"explain": {access.Read, func(ctx context.Context) error { _, err := c.Explain(ctx, &weirv1.ExplainRequest{}); return err }},
		"usage":   {access.Read, func(ctx context.Context) error { _, err := c.Usage(ctx, &weirv1.UsageRequest{}); return err }},
		"top":     {access.Read, func(ctx context.Context) error { _, err := c.Top(ctx, &weirv1.TopRequest{}); return err }},
		"denials": {access.Read, func(ctx context.Context) error { _, err := c.Denials(ctx, &weirv1.DenialsRequest{}); return err }},
		"rules":   {access.Read, func(ctx context.Context) error { _, err := c.Rules(ctx, &weirv1.RulesRequest{}); return err }},
		"set override": {access.Override, func(ctx context.Context) error {
			_, err := c.SetOverride(ctx, &weirv1.SetOverrideRequest{})
			return err
		}},
		"remove override": {access.Override, func(ctx context.Context) error {
			_, err := c.RemoveOverride(ctx, &weirv1.RemoveOverrideRequest{})
			return err
		}},
		"overrides": {access.Read, func(ctx context.Context) error { _, err := c.Overrides(ctx, &weirv1.OverridesRequest{}); return err }},
		"audit":     {access.Admin, func(ctx context.Context) error { _, err := c.Audit(ctx, &weirv1.AuditRequest{}); return err }},
		"setCount":  {access.Admin, func(ctx context.Context) error { _, err := c.SetCount(ctx, &weirv1.SetCountRequest{}); return err }},
		"liftBan":   {access.Admin, func(ctx context.Context) error { _, err := c.LiftBan(ctx, &weirv1.LiftBanRequest{}); return err }},
		"forget":    {access.Admin, func(ctx context.Context) error { _, err := c.Forget(ctx, &weirv1.ForgetRequest{}); return err }},
	} {
		if got := status.Code(call.do(t.Context())); got != codes.Unauthenticated {
			t.Errorf("%s without a token: got %v, want Unauthenticated", name, got)
		}
		for _, token := range access.ScopeNames() {
			scope, _ := access.ParseScopes(token)
			if got := status.Code(call.do(as(t, token))); (got == codes.PermissionDenied) == scope.Has(call.need) {
				t.Errorf("%s with %s: got %v", name, token, got)
			}
		}
	}
}

// A call is for the namespace in its metadata. On a stream each message is.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	counts := memory(t)
	home, shop := engineOf(t, rules, counts), engineOf(t, rules, counts, weir.WithNamespace("shop"))
	_, c := serve(t, grpcserver.Config{}, namespace.NewSet(namespace.New("default", home, 0, nil), namespace.New("shop", shop, 0, nil)))
	in := metadata.AppendToOutgoingContext(t.Context(), "weir-namespace", "shop")
	if _, err := c.Take(in, &weirv1.TakeRequest{Attributes: post("ann")}); err != nil {
		t.Fatal(err)
	}
	s, err := c.Decide(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(&weirv1.DecideRequest{Requests: []*weirv1.Request{{Attributes: post("ann")}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(); err != nil {
		t.Fatal(err)
	}
	_ = s.CloseSend()
	if a, b := used(t, home, "posts", "ann"), used(t, shop, "posts", "ann"); a != 0 || b != 2 {
		t.Errorf("got %d and %d hits, want 0 and 2", a, b)
	}
	none := metadata.AppendToOutgoingContext(t.Context(), "weir-namespace", "none")
	if _, err := c.Take(none, &weirv1.TakeRequest{}); status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), "none") {
		t.Errorf("got %v, want NotFound", err)
	}
}

// What is beyond a bound of the service gets Unavailable, counts nothing, and leaves
// nothing reserved.
func TestOverload(t *testing.T) {
	t.Parallel()
	b := &access.ResourceLimits{Requests: 1, Memory: 100 << 10}
	e := engineOf(t, rules, memory(t))
	_, c := serve(t, grpcserver.Config{Resources: b}, namespace.Only(e))
	s, err := c.Decide(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(requests ...*weirv1.Request) *weirv1.DecideResponse {
		if err := s.Send(&weirv1.DecideRequest{Requests: requests}); err != nil {
			t.Fatal(err)
		}
		a, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	ann := &weirv1.Request{Attributes: post("ann")}
	if a := ask(ann); a.GetAnswers()[0].GetDecision() == nil {
		t.Fatalf("got %v, want a decision", a)
	}
	if _, memory := b.Now(); memory != 64<<10 {
		t.Errorf("got %d bytes reserved for a stream, want 64 KiB", memory)
	}
	if other, err := c.Decide(t.Context()); err != nil {
		t.Error(err)
	} else if _, err := other.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("a second stream: got %v, want Unavailable", err)
	}
	if err := b.Begin(); err != nil {
		t.Fatal(err)
	}
	if p := ask(ann).GetProblem(); p.GetCode() != int32(codes.Unavailable) || p.GetRetryAfter().AsDuration() != access.OverloadRetry {
		t.Errorf("got %v, want Unavailable with a wait", p)
	}
	if _, err := c.Take(t.Context(), &weirv1.TakeRequest{Attributes: post("ann")}); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v, want Unavailable", err)
	}
	b.End()
	many := make([]*weirv1.Request, 100)
	for i := range many {
		many[i] = ann
	}
	if p := ask(many...).GetProblem(); p.GetReason() != "OVERLOAD" {
		t.Errorf("got %v, want an overload of memory", p)
	}
	if _, err := c.Batch(t.Context(), &weirv1.BatchRequest{Requests: many}); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v, want Unavailable", err)
	}
	_ = s.CloseSend()
	_, _ = s.Recv()
	if n := used(t, e, "posts", "ann"); n != 1 {
		t.Errorf("got %d hits, want 1", n)
	}
	if _, err := c.Take(t.Context(), &weirv1.TakeRequest{Attributes: post("ann")}); err != nil {
		t.Error(err)
	}
	if requests, memory := b.Now(); requests != 0 || memory != 0 {
		t.Errorf("got %d requests and %d bytes, want none left", requests, memory)
	}
}

// Idle streams of one token leave memory for those of others, and for batches.
func TestIdleStreams(t *testing.T) {
	t.Parallel()
	config := locked(t)
	config.Resources = &access.ResourceLimits{Memory: 8 * access.StreamBytes}
	_, c := serve(t, config, namespace.Only(engineOf(t, rules, memory(t))))
	open := func(token string) (end func(), err error) {
		s, err := c.Decide(as(t, token))
		if err == nil {
			_ = s.Send(&weirv1.DecideRequest{}) // io.EOF if the stream was refused meanwhile: Recv has the reason
			_, err = s.Recv()
		}
		return func() { _ = s.CloseSend(); _, _ = s.Recv() }, err
	}
	var ends []func()
	for n := range 5 {
		end, err := open("decide")
		if want := n == 4; want != (status.Code(err) == codes.Unavailable) || !want && err != nil {
			t.Errorf("stream %d: got %v, want Unavailable: %v", n, err, want)
		}
		ends = append(ends, end)
	}
	end, err := open("record")
	if err != nil {
		t.Errorf("a stream of another token: %v", err)
	}
	many := make([]*weirv1.Request, 64)
	for i := range many {
		many[i] = &weirv1.Request{Attributes: post("ann")}
	}
	if _, err := c.Batch(as(t, "decide"), &weirv1.BatchRequest{Requests: many}); err != nil {
		t.Errorf("a batch: %v", err)
	}
	for _, end := range append(ends, end) {
		end()
	}
	if end, err = open("decide"); err != nil {
		t.Errorf("a stream after others have ended: %v", err)
	}
	end()
	if _, memory := config.Resources.Now(); memory != 0 {
		t.Errorf("got %d bytes reserved, want none", memory)
	}
}

// Many rules are shown and explained within a reservation of 1 KiB each.
func TestManyRulesAreShown(t *testing.T) {
	t.Parallel()
	const n = 3000
	src := "rules: ["
	for i := range int64(n) {
		src += "{name: rule-" + itoa(i) + ", when: {page: page-" + itoa(i) + "}, per: [user], limit: 9, window: 1h},"
	}
	b := &access.ResourceLimits{Memory: n<<10 + 100<<10}
	_, c := serve(t, grpcserver.Config{Resources: b}, namespace.Only(engineOf(t, src+"]", memory(t))))
	if r, err := c.Rules(t.Context(), &weirv1.RulesRequest{}); err != nil || len(r.GetRules()) != n {
		t.Errorf("got %d rules and %v, want %d", len(r.GetRules()), err, n)
	}
	in := &weirv1.ExplainRequest{Attributes: map[string]string{"page": "page-7", "user": "42"}}
	if r, err := c.Explain(t.Context(), in); err != nil || len(r.GetRules()) != n {
		t.Errorf("got %d explanations and %v, want %d", len(r.GetRules()), err, n)
	}
}

// Large answers about keys have memory reserved.
func TestReadsReserveMemory(t *testing.T) {
	t.Parallel()
	const n = 500
	tops := top.New(top.Config{Keys: n}, namespace.Default)
	t.Cleanup(tops.Close)
	now := scripttest.Start
	engine, _ := scripttest.NewEngine(t, `rules:
  - {name: views, per: [page], window: {cells: 1h, n: 3600}}
  - {name: posts, when: {action: post}, per: [user], limit: 1, window: 1h}
`, func() window.Instant { return window.At(now) }, weir.WithObserver(tops))
	for i := range int64(n) {
		now = now.Add(time.Second)
		for range 2 {
			_, err := engine.Take(t.Context(), weir.Request{Attributes: weir.Attributes("action", "post", "user", itoa(i), "page", "/home")})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	spaces := namespace.NewSet(namespace.New(namespace.Default, engine, 0, tops))
	enough := &access.ResourceLimits{Memory: 1 << 20}
	_, c := serve(t, grpcserver.Config{Resources: enough}, spaces)
	_, less := serve(t, grpcserver.Config{Resources: &access.ResourceLimits{Memory: 80 << 10}}, spaces)
	for name, read := range map[string]func(c weirv1.WeirServiceClient) (int, error){
		"top": func(c weirv1.WeirServiceClient) (int, error) {
			out, err := c.Top(t.Context(), &weirv1.TopRequest{Rule: "posts", N: n})
			if err != nil {
				return 0, err
			}
			return len(out.GetRules()[0].GetUsed().GetKeys()), nil
		},
		"denials": func(c weirv1.WeirServiceClient) (int, error) {
			out, err := c.Denials(t.Context(), &weirv1.DenialsRequest{N: n})
			return len(out.GetDenials()), err
		},
		"usage": func(c weirv1.WeirServiceClient) (int, error) {
			out, err := c.Usage(t.Context(), &weirv1.UsageRequest{Rule: "views", Attributes: map[string]string{"page": "/home"}})
			return len(out.GetSeries()), err
		},
	} {
		if got, err := read(c); got != n || err != nil {
			t.Errorf("%s: got %d and %v, want %d", name, got, err, n)
		}
		if _, memory := enough.Now(); memory != 0 {
			t.Errorf("%s: got %d bytes reserved in the end, want none", name, memory)
		}
		if _, err := read(less); status.Code(err) != codes.Unavailable {
			t.Errorf("%s: got %v with less memory, want Unavailable", name, err)
		}
	}
}

// Large messages of a stream have memory reserved, which is not that of streams. The
// stream goes on after one that was refused.
func TestLargeMessages(t *testing.T) {
	t.Parallel()
	b := &access.ResourceLimits{Memory: 70 << 10}
	e := engineOf(t, rules, memory(t))
	_, c := serve(t, grpcserver.Config{Resources: b}, namespace.Only(e))
	s, err := c.Decide(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	large := post("ann")
	for i := range int64(40) {
		large["other"+itoa(i)] = strings.Repeat("x", 1000)
	}
	for i, step := range []struct {
		attributes map[string]string
		reason     string
	}{{post("ann"), ""}, {large, "OVERLOAD"}, {post("ann"), ""}} {
		if err := s.Send(&weirv1.DecideRequest{Id: 7, Requests: []*weirv1.Request{{Attributes: step.attributes}}}); err != nil {
			t.Fatal(err)
		}
		a, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if a.GetId() != 7 || a.GetProblem().GetReason() != step.reason {
			t.Errorf("message %d: got %v, want the reason %q", i, a, step.reason)
		}
	}
}

// A message whose answer is too large does not affect those that wait with it.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	e := engineOf(t, rules, memory(t))
	_, c := serve(t, grpcserver.Config{}, namespace.NewSet(namespace.New(namespace.Default, e, 600, nil)))
	s, err := c.Decide(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const messages = 50
	for i := range messages {
		n := 1
		if i%2 == 1 {
			n = 10
		}
		in := &weirv1.DecideRequest{Id: uint64(i)} //nolint:gosec // small
		for range n {
			in.Requests = append(in.Requests, &weirv1.Request{Attributes: post(itoa(int64(i)))})
		}
		if err := s.Send(in); err != nil {
			t.Fatal(err)
		}
	}
	_ = s.CloseSend()
	for i := range messages {
		a, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if large := a.GetProblem().GetReason() == "TOO_LARGE"; large != (i%2 == 1) || large == (len(a.GetAnswers()) > 0) {
			t.Errorf("message %d: got %v", i, a)
		}
	}
}

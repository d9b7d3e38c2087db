package grpcapi_test

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/grpcapi"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const rules = `rules:
  - {name: posts, when: {action: post}, per: [user], limit: 5, window: 1h}
  - {name: tokens, when: {action: chat}, per: [user], sum: tokens, limit: 100, window: 1h, hold: 5m}
  - {name: hits, when: {action: hit}, per: [user], limit: 1000000, window: {fixed: 1h}}
  - {name: logins, when: {action: login}, per: [user], limit: 3, window: 1h, ban: 1h}
`

// engineOf returns an engine with rules that counts in a store.
func engineOf(t *testing.T, rules string, counts store.Store, options ...weir.Option) *weir.Engine {
	t.Helper()
	return scripttest.Engine(t, scripttest.Rules(t, rules), append(options, weir.WithStore(counts))...)
}

// serve serves the namespaces until the test ends.
func serve(t *testing.T, c grpcserver.Config, spaces *namespace.Set) (*grpcserver.Server, weirv1.WeirServiceClient) {
	t.Helper()
	return serveAPI(t, c, grpcapi.New(spaces))
}

// serveAPI serves an API until the test ends.
func serveAPI(t *testing.T, c grpcserver.Config, api *grpcapi.API) (*grpcserver.Server, weirv1.WeirServiceClient) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "socket")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := grpcserver.New(c)
	s.Add(grpcapi.Service, grpcapi.File, api.Methods())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		_ = s.Close()
		if err := <-ended; err != nil {
			t.Errorf("got %v from Serve, want nil", err)
		}
	})
	return s, weirv1.NewWeirServiceClient(conn)
}

// memory returns a store in memory, which the test's end closes.
func memory(t *testing.T) *memstore.Store {
	t.Helper()
	s := memstore.New()
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func post(user string) map[string]string { return map[string]string{"action": "post", "user": user} }

func hit(user string) map[string]string { return map[string]string{"action": "hit", "user": user} }

// used returns what a rule has counted for a user.
func used(t *testing.T, e *weir.Engine, rule, user string) int64 {
	t.Helper()
	u, err := e.Usage(t.Context(), rule, weir.Attributes("user", user))
	if err != nil {
		t.Fatal(err)
	}
	return u.Used
}

// TestEveryMethod looks for a method of the .proto file that has no handler.
func TestEveryMethod(t *testing.T) {
	t.Parallel()
	methods := weirv1.File_weir_v1_weir_proto.Services().ByName("WeirService").Methods()
	served := map[string]bool{}
	for _, m := range grpcapi.New(nil).Methods() {
		served[m.Name] = true
		d := methods.ByName(protoName(m.Name))
		if d == nil || d.IsStreamingClient() != m.ClientStreams || d.IsStreamingServer() != m.ServerStreams {
			t.Errorf("%s: got %v, want a method of the service that streams as the handler does", m.Name, d)
		}
	}
	for i := range methods.Len() {
		if name := string(methods.Get(i).Name()); !served[name] {
			t.Errorf("%s has no handler", name)
		}
	}
	if got := string(weirv1.File_weir_v1_weir_proto.Services().Get(0).FullName()); got != grpcapi.Service {
		t.Errorf("got service %s, want %s", got, grpcapi.Service)
	}
}

// A denial is an answer. A request of 0 hits is a check. A receipt settles a hold.
func TestVerbs(t *testing.T) {
	t.Parallel()
	e := engineOf(t, rules, memory(t))
	_, c := serve(t, grpcserver.Config{}, namespace.Only(e))
	for i, want := range []bool{true, true, false} {
		a, err := c.Take(t.Context(), &weirv1.TakeRequest{Attributes: post("ann"), Hits: proto.Int64(2)})
		if err != nil || a.GetDecision().GetAllowed() != want {
			t.Fatalf("take %d: got %v, %v, want allowed: %v", i, a, err, want)
		}
		if d := a.GetDecision(); !want && (d.GetOutcome() != "deny" || d.GetRule() != "posts" || d.GetRetryAfter().AsDuration() <= 0) {
			t.Errorf("got %v, want a denial by posts with a wait", d)
		}
	}
	if a, err := c.Record(t.Context(), &weirv1.RecordRequest{Attributes: post("ann"), Hits: proto.Int64(0)}); err != nil || a.GetDecision().GetLimits()[0].GetUsed() != 4 {
		t.Errorf("got %v, %v, want a check", a, err)
	}
	chat := map[string]string{"action": "chat", "user": "ann", "tokens": "80"}
	a, err := c.Take(t.Context(), &weirv1.TakeRequest{Attributes: chat})
	if d := a.GetDecision(); err != nil || d.GetReceipt() == "" || d.GetHold().AsDuration() != 5*time.Minute || !d.GetLimits()[0].GetHeld() {
		t.Fatalf("got %v, %v, want a receipt of a hold of five minutes", a, err)
	}
	chat["tokens"] = "30"
	for _, held := range []bool{true, false} {
		s, err := c.Settle(t.Context(), &weirv1.SettleRequest{Attributes: chat, Receipt: a.GetDecision().GetReceipt()})
		if l := s.GetDecision().GetLimits(); err != nil || len(l) != 1 || l[0].GetHeld() != held || l[0].GetUsed() != 30 {
			t.Errorf("got %v, %v, want held: %v and 30 tokens", s, err, held)
		}
	}
	f, err := c.Take(t.Context(), &weirv1.TakeRequest{Attributes: chat, Final: true})
	if d := f.GetDecision(); err != nil || d.GetReceipt() != "" || d.GetLimits()[0].GetUsed() != 60 {
		t.Errorf("got %v, %v, want a take that holds nothing", f, err)
	}
	if _, err := c.Forget(t.Context(), &weirv1.ForgetRequest{Rule: "tokens", Attributes: map[string]string{"user": "ann"}}); err != nil {
		t.Error(err)
	}
	if u, err := c.Usage(t.Context(), &weirv1.UsageRequest{Rule: "tokens", Attributes: map[string]string{"user": "ann"}}); err != nil || u.GetUsage().GetUsed() != 0 {
		t.Errorf("got %v, %v, want nothing left", u, err)
	}
	ann := map[string]string{"user": "ann"}
	if s, err := c.SetCount(t.Context(), &weirv1.SetCountRequest{Rule: "tokens", Attributes: ann, Hits: 7}); err != nil || s.GetBefore() != 0 || s.GetUsed() != 7 {
		t.Errorf("got %v, %v, want 7 hits that were 0", s, err)
	}
	if _, err := c.LiftBan(t.Context(), &weirv1.LiftBanRequest{Rule: "tokens", Attributes: ann}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("got %v, want that a rule without a ban is refused", err)
	}
	for _, banned := range []bool{false, true} {
		if banned {
			if d, err := c.Take(t.Context(), &weirv1.TakeRequest{Attributes: map[string]string{"action": "login", "user": "ann"}, Hits: new(int64(9))}); err != nil || d.GetDecision().GetAllowed() {
				t.Fatalf("got %v, %v, want a ban", d, err)
			}
		}
		if l, err := c.LiftBan(t.Context(), &weirv1.LiftBanRequest{Rule: "logins", Attributes: ann}); err != nil || l.GetLifted() != banned {
			t.Errorf("banned %t: got %v, %v", banned, l, err)
		}
	}
	if _, err := c.SetCount(t.Context(), &weirv1.SetCountRequest{Rule: "tokens", Attributes: ann, Hits: -1}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("got %v, want that -1 hits are refused", err)
	}
}

// Input that is wrong ends with InvalidArgument and counts nothing.
func TestBadInput(t *testing.T) {
	t.Parallel()
	e := engineOf(t, rules, memory(t))
	_, c := serve(t, grpcserver.Config{}, namespace.Only(e))
	long := strings.Repeat("x", 1025)
	garbage := &weirv1.TakeRequest{Attributes: post("ann")}
	garbage.ProtoReflect().SetUnknown([]byte{0x1a, 9}) // a text of nine bytes, which are missing
	raw := new(weirv1.BatchRequest)
	raw.ProtoReflect().SetUnknown([]byte{0x0a, 4, 0x0a, 2, 0xff, 0xff})
	many := &weirv1.BatchRequest{Requests: make([]*weirv1.Request, 1001)}
	for i := range many.Requests {
		many.Requests[i] = &weirv1.Request{Attributes: post("ann")}
	}
	for name, call := range map[string]func() error{
		"garbage": func() error { _, err := c.Take(t.Context(), garbage); return err },
		"batch":   func() error { _, err := c.Batch(t.Context(), raw); return err },
		"many":    func() error { _, err := c.Batch(t.Context(), many); return err },
		"value":   func() error { _, err := c.Take(t.Context(), &weirv1.TakeRequest{Attributes: post(long)}); return err },
		"hits": func() error {
			_, err := c.Take(t.Context(), &weirv1.TakeRequest{Attributes: post("ann"), Hits: proto.Int64(-1)})
			return err
		},
		"sum": func() error {
			_, err := c.Take(t.Context(), &weirv1.TakeRequest{Attributes: map[string]string{"action": "chat", "user": "ann", "tokens": "many"}})
			return err
		},
		"receipt": func() error {
			_, err := c.Settle(t.Context(), &weirv1.SettleRequest{Attributes: post("ann"), Receipt: "nope"})
			return err
		},
		"no receipt": func() error {
			_, err := c.Renew(t.Context(), &weirv1.RenewRequest{Attributes: post("ann")})
			return err
		},
		"no rule": func() error { _, err := c.Usage(t.Context(), &weirv1.UsageRequest{}); return err },
		"no key":  func() error { _, err := c.Usage(t.Context(), &weirv1.UsageRequest{Rule: "posts"}); return err },
	} {
		if err := call(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: got %v, want InvalidArgument", name, err)
		}
	}
	if _, err := c.Usage(t.Context(), &weirv1.UsageRequest{Rule: "nope"}); status.Code(err) != codes.NotFound {
		t.Errorf("got %v, want NotFound", err)
	}
	if _, err := c.Top(t.Context(), &weirv1.TopRequest{}); status.Code(err) != codes.NotFound {
		t.Errorf("without a collector: got %v, want NotFound", err)
	}
	if _, err := c.Take(t.Context(), &weirv1.TakeRequest{Attributes: map[string]string{"x": strings.Repeat("x", 1<<20)}}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a message over 1 MiB: got %v, want ResourceExhausted", err)
	}
	if n := used(t, e, "posts", "ann"); n != 0 {
		t.Errorf("got %d hits, want none", n)
	}
}

// In a batch a request that is wrong, or not allowed to the caller, costs the others
// nothing.
func TestBatch(t *testing.T) {
	t.Parallel()
	e := engineOf(t, rules, memory(t))
	_, c := serve(t, locked(t), namespace.Only(e))
	in := &weirv1.BatchRequest{Requests: []*weirv1.Request{
		{Attributes: post("ann")},
		{Attributes: post("ann"), Hits: proto.Int64(-1)},
		{Attributes: post("ann"), Verb: weirv1.Verb_VERB_RECORD},
		{Attributes: post("ann"), Verb: weirv1.Verb_VERB_CHECK},
		{Attributes: map[string]string{"action": "chat", "user": "ann", "tokens": "many"}},
		{Attributes: post("ann"), Verb: 99},
		{Attributes: post("ann"), Hits: proto.Int64(1 << 53)},
	}}
	a, err := c.Batch(as(t, "decide"), in)
	if err != nil || len(a.GetAnswers()) != len(in.GetRequests()) {
		t.Fatalf("got %v, %v, want %d answers", a, err, len(in.GetRequests()))
	}
	for i, want := range []string{"used 1", "hits INVALID 3", " ACCESS_SCOPE 7", "used 1", "attributes.tokens INVALID 3", "verb INVALID 3", "hits INVALID 3"} {
		if got := textOf(a.GetAnswers()[i]); got != want {
			t.Errorf("answer %d: got %s, want %s", i, got, want)
		}
	}
}

// A request with too many attributes costs those in the same message nothing, however large it is, in a batch and on a
// stream.
func TestTooManyAttributes(t *testing.T) {
	t.Parallel()
	for _, n := range []int{65, 200, 20000} {
		e := engineOf(t, rules, memory(t))
		b := &access.ResourceLimits{Memory: 64 << 20}
		_, c := serve(t, grpcserver.Config{Resources: b}, namespace.Only(e))
		many := hit("bob")
		for i := range n - len(many) {
			many["attribute"+itoa(int64(i))] = strings.Repeat("x", 20)
		}
		requests := []*weirv1.Request{{Attributes: hit("ann")}, {Attributes: many}, {Attributes: hit("ann")}}
		for range 200 { // so that the message is a large one
			requests = append(requests, &weirv1.Request{Attributes: map[string]string{"page": strings.Repeat("x", 500)}})
		}
		batch, err := c.Batch(t.Context(), &weirv1.BatchRequest{Requests: requests})
		if err != nil {
			t.Errorf("%d attributes: got %v, want that the others are decided", n, err)
		}
		s, err := c.Decide(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Send(&weirv1.DecideRequest{Id: 7, Requests: requests}); err != nil {
			t.Fatal(err)
		}
		message, err := s.Recv()
		if err != nil || message.GetProblem() != nil {
			t.Errorf("%d attributes: got %v and %v on a stream, want that the others are decided", n, message, err)
		}
		if err := s.CloseSend(); err != nil {
			t.Error(err)
		}
		if _, err := s.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want the end", err)
		}
		for _, answers := range [][]*weirv1.Answer{batch.GetAnswers(), message.GetAnswers()} {
			if len(answers) != len(requests) {
				t.Errorf("%d attributes: got %d answers, want %d", n, len(answers), len(requests))
				continue
			}
			if p := answers[1].GetProblem(); p.GetField() != "attributes" || p.GetDetail() != "more than 64 attributes" || p.GetCode() != int32(codes.InvalidArgument) {
				t.Errorf("%d attributes: got %v, want that they are too many", n, answers[1])
			}
		}
		if got := used(t, e, "hits", "ann"); got != 4 {
			t.Errorf("%d attributes: got %d hits of others, want 4", n, got)
		}
		if _, memory := b.Now(); memory != 0 {
			t.Errorf("%d attributes: got %d bytes after all, want none", n, memory)
		}
	}
}

// textOf returns an answer in short.
func textOf(a *weirv1.Answer) string {
	if d := a.GetDecision(); d != nil {
		return "used " + itoa(d.GetLimits()[0].GetUsed())
	}
	p := a.GetProblem()
	return p.GetField() + " " + p.GetReason() + " " + itoa(int64(p.GetCode()))
}

// Messages of a stream are answered in their order, many at a time. One that is wrong
// costs the others nothing. The stream ends when the client sends no more.
func TestStream(t *testing.T) {
	t.Parallel()
	e := engineOf(t, rules, memory(t))
	_, c := serve(t, grpcserver.Config{}, namespace.Only(e))
	s, err := c.Decide(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const messages = 100
	go func() {
		for i := range messages {
			in := &weirv1.DecideRequest{Id: uint64(i), Requests: []*weirv1.Request{{Attributes: hit(itoa(int64(i))), Verb: weirv1.Verb_VERB_RECORD}, {Attributes: hit("all"), Verb: weirv1.Verb_VERB_RECORD}}}
			switch i {
			case 10:
				in.ProtoReflect().SetUnknown([]byte{0x12, 9}) // a request of nine bytes, which are missing
			case 20:
				in.Timeout = durationpb.New(-time.Second)
			case 30:
				in.Requests = make([]*weirv1.Request, 1001)
				for k := range in.Requests {
					in.Requests[k] = &weirv1.Request{Attributes: hit("all")}
				}
			case 40:
				in.Requests = nil
			}
			if err := s.Send(in); err != nil {
				t.Errorf("message %d: %v", i, err)
			}
		}
		if err := s.CloseSend(); err != nil {
			t.Error(err)
		}
	}()
	counted := int64(0)
	for i := range messages {
		a, err := s.Recv()
		if err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		// What could not be read has no id.
		if want := uint64(i); a.GetId() != want && i != 10 {
			t.Errorf("got id %d, want %d", a.GetId(), want)
		}
		switch i {
		case 10, 30:
			if a.GetProblem().GetCode() != int32(codes.InvalidArgument) {
				t.Errorf("message %d: got %v, want InvalidArgument", i, a)
			}
			continue
		case 20:
			if a.GetProblem().GetCode() != int32(codes.DeadlineExceeded) {
				t.Errorf("message %d: got %v, want DeadlineExceeded", i, a)
			}
			continue
		case 40:
			if len(a.GetAnswers()) != 0 || a.GetProblem() != nil {
				t.Errorf("message %d: got %v, want no answers", i, a)
			}
			continue
		}
		counted++
		if len(a.GetAnswers()) != 2 || a.GetAnswers()[1].GetDecision().GetLimits()[0].GetBefore() != counted-1 {
			t.Errorf("message %d: got %v, want what was counted before", i, a)
		}
	}
	if _, err := s.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want the end", err)
	}
}

// When the server shuts down, a stream ends. What it has not answered was not counted.
func TestStreamEnds(t *testing.T) {
	t.Parallel()
	e := engineOf(t, rules, memory(t))
	server, c := serve(t, grpcserver.Config{}, namespace.Only(e))
	s, err := c.Decide(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for s.Send(&weirv1.DecideRequest{Requests: []*weirv1.Request{{Attributes: hit("ann"), Verb: weirv1.Verb_VERB_RECORD}}}) == nil {
		}
	}()
	var answers int64
	down := make(chan error, 1)
	for {
		_, err := s.Recv()
		if err != nil {
			if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "stopping") {
				t.Errorf("got %v, want that the service is stopping", err)
			}
			break
		}
		if answers++; answers == 100 {
			go func() { down <- server.Shutdown(context.Background()) }()
		}
	}
	<-sent
	if err := <-down; err != nil {
		t.Error(err)
	}
	if n := used(t, e, "hits", "ann"); n != answers {
		t.Errorf("got %d answers, and %d hits counted", answers, n)
	}
}

// locked returns the configuration of a server with one token for each scope, called
// like the scope.
func locked(t *testing.T) grpcserver.Config {
	t.Helper()
	var own []access.Own
	for _, name := range access.ScopeNames() {
		scope, err := access.ParseScopes(name)
		if err != nil {
			t.Fatal(err)
		}
		own = append(own, access.Own{Name: name, Token: name, Scopes: scope})
	}
	keys := scripttest.Keys(t, "", own...)
	return grpcserver.Config{Auth: &access.Authenticator{Keys: keys, Reach: access.ReachNamed}}
}

// as returns a context with a token.
func as(t *testing.T, token string) context.Context {
	t.Helper()
	return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
}

// Denials are selected by attributes and since.
func TestDenials(t *testing.T) {
	t.Parallel()
	tops := top.New(top.Config{Keys: 10}, namespace.Default)
	engine := engineOf(t, rules, memstore.New(), weir.WithObserver(tops))
	t.Cleanup(func() { _ = engine.Close() })
	_, c := serve(t, grpcserver.Config{}, namespace.NewSet(namespace.New(namespace.Default, engine, 0, tops)))
	for _, user := range []string{"ann", "bob"} {
		_, err := engine.Take(t.Context(), weir.Request{Attributes: weir.Attributes("action", "post", "user", user), Hits: 6})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		in   *weirv1.DenialsRequest
		want string
	}{
		{&weirv1.DenialsRequest{}, "bob ann"},
		{&weirv1.DenialsRequest{Rule: "posts", Attributes: map[string]string{"user": "ann"}}, "ann"},
		{&weirv1.DenialsRequest{Attributes: map[string]string{"user": "ann"}, Since: timestamppb.New(time.Now().Add(-time.Hour))}, "ann"},
		{&weirv1.DenialsRequest{Since: timestamppb.New(time.Now().Add(time.Hour))}, ""},
	} {
		out, err := c.Denials(t.Context(), row.in)
		var got []string
		for _, d := range out.GetDenials() {
			got = append(got, d.GetKey())
		}
		if err != nil || strings.Join(got, " ") != row.want || out.GetDropped() != 0 || out.GetDegraded() || (out.GetOldest() != nil) != (row.in.GetRule() != "") {
			t.Errorf("%v: got %v, %v, want %s", row.in, out, err, row.want)
		}
	}
	_, err := c.Denials(t.Context(), &weirv1.DenialsRequest{Rule: "posts", Attributes: map[string]string{"usr": "ann"}})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "attributes.usr: is in no key of the rules asked for") {
		t.Errorf("got %v, want the attribute that is wrong", err)
	}
}

// The rules say how a quota depends on an attribute.
func TestRulesSayQuota(t *testing.T) {
	t.Parallel()
	rules := "rules:\n  - {name: fixed, limit: 0, window: 1h}\n  - {name: by, limit: {by: plan, pro: 10, else: 5}, window: 1h}\n" +
		"  - {name: of, limit: {of: customer_limit, else: 5, most: 1000}, window: 1h}\n"
	_, c := serve(t, grpcserver.Config{}, namespace.Only(engineOf(t, rules, memory(t))))
	r, err := c.Rules(t.Context(), &weirv1.RulesRequest{})
	if err != nil || len(r.GetRules()) != 3 {
		t.Fatalf("got %v and %v, want three rules", r, err)
	}
	five := proto.Int64(5)
	for i, want := range []*weirv1.Quota{
		{Value: proto.Int64(0)}, {By: "plan", Cases: map[string]int64{"pro": 10}, Else: five}, {Of: "customer_limit", Most: 1000, Else: five},
	} {
		if got := r.GetRules()[i].GetLimit(); !proto.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// The rules say from which part of its quota on a limit reports.
func TestRulesSayNear(t *testing.T) {
	t.Parallel()
	rules := "rules:\n  - {name: posts, per: [user], limit: 10, near: 80%, window: 1h}\n  - {name: reads, per: [user], limit: 10, window: 1h}\n"
	_, c := serve(t, grpcserver.Config{}, namespace.Only(engineOf(t, rules, memory(t))))
	r, err := c.Rules(t.Context(), &weirv1.RulesRequest{})
	if err != nil || len(r.GetRules()) != 2 {
		t.Fatalf("got %v and %v, want two rules", r, err)
	}
	if got := [2]int32{r.Rules[0].Near, r.Rules[1].Near}; got != [2]int32{80, 0} {
		t.Errorf("got near %v, want 80 and 0", got)
	}
}

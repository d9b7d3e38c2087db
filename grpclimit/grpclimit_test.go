package grpclimit_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/grpclimit"
	"github.com/weirhq/weir/guard"
	"github.com/weirhq/weir/internal/guardtest"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// echo is a service with a unary method and a stream in both directions. Both answer
// what they got.
var echo = grpc.ServiceDesc{
	ServiceName: "test.Echo",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Once", Handler: func(_ any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		m := new(wrapperspb.StringValue)
		if err := decode(m); err != nil {
			return nil, err
		}
		handler := func(_ context.Context, m any) (any, error) { return m, nil }
		if interceptor == nil {
			return handler(ctx, m)
		}
		return interceptor(ctx, m, &grpc.UnaryServerInfo{FullMethod: "/test.Echo/Once"}, handler)
	}}},
	Streams: []grpc.StreamDesc{{StreamName: "Chat", ServerStreams: true, ClientStreams: true, Handler: func(_ any, s grpc.ServerStream) error {
		for {
			m := new(wrapperspb.StringValue)
			if err := s.RecvMsg(m); err != nil {
				if errors.Is(err, io.EOF) {
					return nil
				}
				return err
			}
			if err := s.SendMsg(m); err != nil {
				return err
			}
		}
	}}},
}

// client runs the service behind limits and returns a client of it, which may have
// its own limits.
func client(t *testing.T, server []grpc.ServerOption, dial ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(server...)
	s.RegisterService(&echo, nil)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	cc, err := grpc.NewClient(l.Addr().String(), append(dial, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return cc
}

// once makes a unary call, and returns the header of the answer.
func once(ctx context.Context, cc *grpc.ClientConn, text string) (metadata.MD, error) {
	var md metadata.MD
	got := new(wrapperspb.StringValue)
	err := cc.Invoke(ctx, "/test.Echo/Once", wrapperspb.String(text), got, grpc.Header(&md))
	if err == nil && got.Value != text {
		err = errors.New("got another text: " + got.Value)
	}
	return md, err
}

// chat opens a stream.
func chat(ctx context.Context, t *testing.T, cc *grpc.ClientConn) grpc.ClientStream {
	t.Helper()
	s, err := cc.NewStream(ctx, &echo.Streams[0], "/test.Echo/Chat")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// say sends a message and waits for its answer.
func say(s grpc.ClientStream, text string) error {
	if err := s.SendMsg(wrapperspb.String(text)); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return s.RecvMsg(new(wrapperspb.StringValue))
}

// denial checks that err is a denial by a limit, with a wait of about a minute.
func denial(t *testing.T, err error, limit string) {
	t.Helper()
	s := status.Convert(err)
	if s.Code() != codes.ResourceExhausted {
		t.Fatalf("got %v, want ResourceExhausted", err)
	}
	if wait, ok := grpclimit.Wait(err); !ok || wait < 50*time.Second || wait > time.Minute {
		t.Errorf("got a wait of %v, %v", wait, ok)
	}
	for _, detail := range s.Details() {
		if f, ok := detail.(*errdetails.QuotaFailure); ok && len(f.Violations) == 1 && f.Violations[0].Subject == limit {
			return
		}
	}
	t.Errorf("got %v, want a QuotaFailure of %s", s.Details(), limit)
}

func TestUnaryServer(t *testing.T) {
	t.Parallel()
	limit := grpclimit.Must(grpclimit.Keys(guardtest.Limiter(t, weir.Sliding(1, time.Minute)), grpclimit.PeerIP, grpclimit.Options{Name: "calls"}))
	cc := client(t, limit.ServerOptions())
	md, err := once(t.Context(), cc, "a")
	if err != nil || strings.Join(md["ratelimit"], "") != `"calls";r=0` || strings.Join(md["ratelimit-policy"], "") != `"calls";q=1;w=60` {
		t.Errorf("got %v %v, want the limit in the header", md, err)
	}
	_, err = once(t.Context(), cc, "b")
	denial(t, err, "calls")
}

// The message of a unary call is at hand: its key can come from it.
func TestKeyFromTheMessage(t *testing.T) {
	t.Parallel()
	limit := grpclimit.Must(grpclimit.Keys(guardtest.Limiter(t, weir.Sliding(1, time.Minute)), func(c grpclimit.Call) string {
		return c.Message.(*wrapperspb.StringValue).Value
	}))
	cc := client(t, limit.ServerOptions())
	for text, want := range map[string]codes.Code{"a": codes.OK, "b": codes.OK, "": codes.InvalidArgument} {
		if _, err := once(t.Context(), cc, text); status.Code(err) != want {
			t.Errorf("%q: got %v, want %v", text, err, want)
		}
	}
	_, err := once(t.Context(), cc, "a")
	denial(t, err, "requests")
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	cc := client(t, grpclimit.Must(grpclimit.Keys(guardtest.Limiter(t, weir.Sliding(1, time.Minute)), grpclimit.Metadata("api-key"))).ServerOptions())
	ann := metadata.AppendToOutgoingContext(t.Context(), "api-key", "ann")
	if _, err := once(ann, cc, "a"); err != nil {
		t.Error(err)
	}
	_, err := once(ann, cc, "a")
	denial(t, err, "requests")
	if _, err := once(t.Context(), cc, "a"); status.Code(err) != codes.InvalidArgument {
		t.Errorf("got %v for a call without a key", err)
	}
	if _, ok := grpclimit.Wait(io.EOF); ok {
		t.Error("got a wait of another error")
	}
}

// Streams count when they are opened; with Messages each message counts, too.
func TestStreamServer(t *testing.T) {
	t.Parallel()
	cc := client(t, grpclimit.Must(grpclimit.Keys(guardtest.Limiter(t, weir.Sliding(1, time.Minute)), grpclimit.PeerIP)).ServerOptions())
	s := chat(t.Context(), t, cc)
	for range 3 {
		if err := say(s, "a"); err != nil {
			t.Fatal(err)
		}
	}
	denial(t, say(chat(t.Context(), t, cc), "a"), "requests")

	cc = client(t, grpclimit.Must(grpclimit.Keys(guardtest.Limiter(t, weir.Sliding(3, time.Minute)), grpclimit.PeerIP)).EachMessage().ServerOptions())
	s = chat(t.Context(), t, cc) // 1
	for range 2 {
		if err := say(s, "a"); err != nil {
			t.Fatal(err)
		}
	}
	denial(t, say(s, "a"), "requests")
}

var inFlight = rule.Rule{Name: "chats", Per: []string{"method"}, Quota: &rule.Quota{Value: 1}, Window: window.Held(30 * time.Second)}

func byMethod(c grpclimit.Call, list []weir.Attribute) []weir.Attribute {
	return append(list, weir.Attribute{Name: "method", Value: c.Method})
}

// A stream is in flight until it has ended, on a server and on a client.
func TestInFlight(t *testing.T) {
	t.Parallel()
	for side, options := range map[string]func(*grpclimit.Limit) *grpc.ClientConn{
		"server": func(l *grpclimit.Limit) *grpc.ClientConn { return client(t, l.ServerOptions()) },
		"client": func(l *grpclimit.Limit) *grpc.ClientConn { return client(t, nil, l.DialOptions()...) },
	} {
		settled := make(guardtest.Settles, 10)
		cc := options(grpclimit.Must(grpclimit.Rules(guardtest.Engine(t, []rule.Rule{inFlight}, nil, weir.WithObserver(settled)), byMethod)))
		first := chat(t.Context(), t, cc)
		if err := say(first, "a"); err != nil {
			t.Fatal(err)
		}
		second, err := cc.NewStream(t.Context(), &echo.Streams[0], "/test.Echo/Chat")
		if err == nil {
			err = say(second, "a")
		}
		if status.Code(err) != codes.ResourceExhausted {
			t.Errorf("%s: got %v, want a denial while the first stream is open", side, err)
		}
		if err := first.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if err := first.RecvMsg(new(wrapperspb.StringValue)); !errors.Is(err, io.EOF) {
			t.Fatalf("%s: got %v, want the end of the stream", side, err)
		}
		<-settled // a server ends a stream a moment after its client has seen the end
		if err := say(chat(t.Context(), t, cc), "a"); err != nil {
			t.Errorf("%s: got %v, want a place after the end", side, err)
		}
	}
}

// A client that limits itself does not send what it denies.
func TestClient(t *testing.T) {
	t.Parallel()
	cc := client(t, nil, grpclimit.Must(grpclimit.Keys(guardtest.Limiter(t, weir.Sliding(2, time.Minute)), grpclimit.Method)).EachMessage().DialOptions()...)
	for range 2 {
		if _, err := once(t.Context(), cc, "a"); err != nil {
			t.Fatal(err)
		}
	}
	_, err := once(t.Context(), cc, "a")
	denial(t, err, "requests")
	s := chat(t.Context(), t, cc) // 1, of another key
	if err := say(s, "a"); err != nil {
		t.Error(err)
	}
	denial(t, say(s, "a"), "requests")
	_, err = cc.NewStream(t.Context(), &echo.Streams[0], "/test.Echo/Chat")
	denial(t, err, "requests")
}

// While the store cannot answer, the policy decides, and the header has the reason.
func TestOutage(t *testing.T) {
	t.Parallel()
	for policy, want := range map[rule.Outage]codes.Code{rule.OutageAllow: codes.OK, rule.OutageDeny: codes.Unavailable} {
		m := guardtest.Limiter(t, weir.Sliding(1, time.Minute), weir.WithMaxKeys(1), weir.WithOutage(policy))
		cc := client(t, grpclimit.Must(grpclimit.Keys(m, grpclimit.Metadata("user"))).ServerOptions())
		if _, err := once(metadata.AppendToOutgoingContext(t.Context(), "user", "ann"), cc, "a"); err != nil {
			t.Fatal(err)
		}
		md, err := once(metadata.AppendToOutgoingContext(t.Context(), "user", "bob"), cc, "a") // no room for a second key
		if status.Code(err) != want || strings.Join(md["weir-degraded"], "") != "full" || len(md["ratelimit"]) > 0 {
			t.Errorf("%v: got %v %v, want %v and the reason", policy, md, err, want)
		}
	}
}

// Denied and Failed replace the errors of calls; if they return nil, the call goes on.
func TestOptions(t *testing.T) {
	t.Parallel()
	own := status.Error(codes.Aborted, "own")
	for name, tc := range map[string]struct {
		options grpclimit.Options
		want    error
	}{
		"denied, own error": {grpclimit.Options{Denied: func(grpclimit.Call, *guard.Call) error { return own }}, own},
		"denied, goes on":   {grpclimit.Options{Denied: func(grpclimit.Call, *guard.Call) error { return nil }}, nil},
	} {
		cc := client(t, grpclimit.Must(grpclimit.Keys(guardtest.Limiter(t, weir.Sliding(0, time.Minute)), grpclimit.PeerIP, tc.options)).ServerOptions())
		if _, err := once(t.Context(), cc, "a"); status.Code(err) != status.Code(tc.want) {
			t.Errorf("%s: got %v, want %v", name, err, tc.want)
		}
	}
	noKey := grpclimit.Options{Failed: func(_ grpclimit.Call, err error) error {
		if !errors.Is(err, guard.ErrNoKey) {
			t.Errorf("got %v, want ErrNoKey", err)
		}
		return nil
	}}
	cc := client(t, grpclimit.Must(grpclimit.Keys(guardtest.Limiter(t, weir.Sliding(0, time.Minute)), grpclimit.Metadata("user"), noKey)).ServerOptions())
	if _, err := once(t.Context(), cc, "a"); err != nil {
		t.Errorf("got %v, want the call to go on", err)
	}
	if err := say(chat(t.Context(), t, cc), "a"); err != nil {
		t.Errorf("got %v, want the stream to go on", err)
	}
	for _, err := range []error{
		func() error { _, err := grpclimit.Keys(nil, grpclimit.PeerIP); return err }(),
		func() error {
			_, err := grpclimit.Keys(guardtest.Limiter(t, weir.Sliding(1, time.Minute)), nil)
			return err
		}(),
		func() error {
			_, err := grpclimit.Rules(guardtest.Engine(t, []rule.Rule{inFlight}, nil), nil)
			return err
		}(),
	} {
		if err == nil {
			t.Error("got no error for a nil argument")
		}
	}
}

// What a client writes into the metadata is ignored, and what a trusted proxy writes is the client.
func TestPerIP(t *testing.T) {
	t.Parallel()
	for trusted, want := range map[string]codes.Code{"127.0.0.1": codes.OK, "10.0.0.0/8": codes.ResourceExhausted} {
		cc := client(t, grpclimit.PerIP(1, time.Minute, trusted).ServerOptions())
		for i, forwarded := range []string{"203.0.113.1", "203.0.113.2"} {
			_, err := once(metadata.AppendToOutgoingContext(t.Context(), "x-forwarded-for", forwarded), cc, "a")
			if i == 1 && status.Code(err) != want {
				t.Errorf("%s trusted: got %v, want %v", trusted, err, want)
			}
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("got no panic for a network that is none")
		}
	}()
	grpclimit.PerIP(1, time.Minute, "proxy")
}

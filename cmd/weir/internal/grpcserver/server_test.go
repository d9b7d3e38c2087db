package grpcserver_test

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/cmd/weir/internal/sizes"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo is the service of these tests. Say answers with the text it gets, or fails
// as the text says. Each answers each text of a stream. Flood never ends.
const echo = "weir.test.Echo"

// errs are the errors that Say returns for a text.
var errs = map[string]error{
	"fault":    fault.Newf("hits", "3: too many"),
	"outage":   &store.OutageError{Err: errors.New("no answer"), RetryAfter: time.Minute},
	"slowed":   &access.Refusal{Reason: access.Slowed, Detail: "wrong tokens", RetryAfter: time.Minute},
	"closed":   store.ErrClosed,
	"large":    run.ErrLarge,
	"rule":     weir.ErrUnknownRule,
	"late":     context.DeadlineExceeded,
	"overload": &access.Overload{Detail: "too much to do"},
	"other":    errors.New("a bug"),
	"status":   status.Error(codes.AlreadyExists, "as it is"),
}

func methods(block chan struct{}) []grpcserver.Method {
	return []grpcserver.Method{
		{Name: "Say", Need: access.Decide, Serve: grpcserver.Unary(func(_ context.Context, _ *grpcserver.Call, in *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
			if in.Value == "block" {
				block <- struct{}{}
				<-block
			}
			return in, errs[in.Value]
		})},
		{Name: "Repeat", Serve: grpcserver.Unary(func(_ context.Context, c *grpcserver.Call, in *wrapperspb.Int64Value) (*wrapperspb.StringValue, error) {
			if err := c.Reserve(in.Value); err != nil {
				return nil, err
			}
			c.ServerStream = sender{c.ServerStream, block}
			return wrapperspb.String(strings.Repeat("x", int(in.Value))), nil
		})},
		{Name: "Flood", ServerStreams: true, Serve: func(c *grpcserver.Call) error {
			for text := strings.Repeat("x", 10_000); ; {
				if err := c.SendMsg(wrapperspb.String(text)); err != nil {
					return err
				}
			}
		}},
		{Name: "Each", Need: access.Record, ClientStreams: true, ServerStreams: true, Serve: func(c *grpcserver.Call) error {
			for {
				in := new(wrapperspb.StringValue)
				switch err := c.RecvMsg(in); {
				case errors.Is(err, io.EOF):
					return nil
				case err != nil:
					return err
				}
				if err := c.SendMsg(in); err != nil {
					return err
				}
			}
		}},
	}
}

// sender is a stream that sends when it can send to block.
type sender struct {
	grpc.ServerStream
	block chan struct{}
}

func (s sender) SendMsg(m any) error {
	s.block <- struct{}{}
	<-s.block
	return s.ServerStream.SendMsg(m)
}

// serve starts a server and returns it with a connection to it.
func serve(t *testing.T, c grpcserver.Config, block chan struct{}) (*grpcserver.Server, *grpc.ClientConn) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "socket")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := grpcserver.New(c)
	s.Add(echo, "weir/test.proto", methods(block), "echo")
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
	return s, conn
}

func say(ctx context.Context, conn *grpc.ClientConn, text string) (string, error) {
	out := new(wrapperspb.StringValue)
	err := conn.Invoke(ctx, "/"+echo+"/Say", wrapperspb.String(text), out)
	return out.Value, err
}

// Details say which field is wrong, what was exceeded and when to try again.
func TestDetails(t *testing.T) {
	t.Parallel()
	_, conn := serve(t, grpcserver.Config{}, nil)
	for text, want := range map[string][]proto.Message{
		"fault": {
			&errdetails.ErrorInfo{Reason: "INVALID", Domain: "weir"},
			&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "hits", Description: "3: too many"}}},
		},
		"overload": {
			&errdetails.ErrorInfo{Reason: "OVERLOAD", Domain: "weir"},
			&errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{Subject: "service", Description: "too much to do"}}},
			&errdetails.RetryInfo{RetryDelay: durationpb.New(access.OverloadRetry)},
		},
		"outage": {&errdetails.ErrorInfo{Reason: "OUTAGE", Domain: "weir"}, &errdetails.RetryInfo{RetryDelay: durationpb.New(time.Minute)}},
		"closed": {&errdetails.ErrorInfo{Reason: "CLOSED", Domain: "weir"}},
		"rule":   {&errdetails.ErrorInfo{Reason: "UNKNOWN_RULE", Domain: "weir"}},
		"slowed": {
			&errdetails.ErrorInfo{Reason: "ACCESS_SLOWED", Domain: "weir"},
			&errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{Subject: "tokens", Description: "wrong tokens"}}},
			&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Minute)},
		},
		"large": {
			&errdetails.ErrorInfo{Reason: "TOO_LARGE", Domain: "weir"},
			&errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{Subject: "answer", Description: strings.TrimPrefix(run.ErrLarge.Error(), "weir: ")}}},
		},
		"other": nil,
	} {
		_, err := say(t.Context(), conn, text)
		got := status.Convert(err).Details()
		if len(got) != len(want) {
			t.Errorf("%s: got %v, want %v", text, got, want)
			continue
		}
		for i := range got {
			if !proto.Equal(got[i].(proto.Message), want[i]) {
				t.Errorf("%s: got %v, want %v", text, got[i], want[i])
			}
		}
	}
	garbage := new(wrapperspb.BytesValue)
	garbage.ProtoReflect().SetUnknown([]byte{0x0a, 9}) // a text of nine bytes, which are missing
	if err := conn.Invoke(t.Context(), "/"+echo+"/Say", garbage, new(wrapperspb.StringValue)); status.Code(err) != codes.InvalidArgument {
		t.Errorf("bytes that are no message: got %v, want InvalidArgument", err)
	}
}

func TestCodes(t *testing.T) {
	t.Parallel()
	_, conn := serve(t, grpcserver.Config{}, nil)
	for text, want := range map[string]codes.Code{
		"hello":    codes.OK,
		"fault":    codes.InvalidArgument,
		"outage":   codes.Unavailable,
		"closed":   codes.Unavailable,
		"large":    codes.ResourceExhausted,
		"rule":     codes.NotFound,
		"late":     codes.DeadlineExceeded,
		"overload": codes.Unavailable,
		"other":    codes.Internal,
		"status":   codes.AlreadyExists,
	} {
		got, err := say(t.Context(), conn, text)
		if status.Code(err) != want {
			t.Errorf("%s: got %v, want %v", text, err, want)
		}
		if err == nil && got != text {
			t.Errorf("got %q, want %q", got, text)
		}
	}
	_, err := say(t.Context(), conn, "fault")
	if got := status.Convert(err).Message(); got != "hits: 3: too many" {
		t.Errorf("got message %q, want the place and the fault", got)
	}
	if _, err := say(t.Context(), conn, strings.Repeat("x", sizes.Message)); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a message that is too large: got %v, want ResourceExhausted", err)
	}
	stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, "/"+echo+"/Say")
	if err != nil {
		t.Fatal(err)
	}
	_ = stream.CloseSend()
	if err := stream.RecvMsg(new(wrapperspb.StringValue)); status.Code(err) != codes.Internal {
		t.Errorf("a call without a message: got %v, want Internal", err)
	}
}

// withToken returns ctx with a token, as clients send it.
func withToken(ctx context.Context, token string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
}

func TestLock(t *testing.T) {
	t.Parallel()
	shop, ops := access.NewToken(), access.NewToken()
	keys := scripttest.Keys(t, "",
		access.Own{Name: "shop", Token: shop, Scopes: access.Decide},
		access.Own{Name: "ops", Token: ops, Scopes: access.Record})
	var reasons []access.Reason
	auth := &access.Authenticator{Keys: keys, Refused: func(r access.Reason) { reasons = append(reasons, r) }}
	_, conn := serve(t, grpcserver.Config{Auth: auth}, nil)
	for _, tc := range []struct {
		token string
		want  codes.Code
	}{
		{"", codes.Unauthenticated},
		{"weir_wrong", codes.Unauthenticated},
		{ops, codes.PermissionDenied},
		{shop, codes.OK},
	} {
		ctx := t.Context()
		if tc.token != "" {
			ctx = withToken(ctx, tc.token)
		}
		if _, err := say(ctx, conn, "hello"); status.Code(err) != tc.want {
			t.Errorf("got %v, want %v", err, tc.want)
		}
	}
	if len(reasons) != 3 || reasons[0] != access.Missing || reasons[1] != access.Unknown || reasons[2] != access.NoScope {
		t.Errorf("got reasons %v", reasons)
	}

	if _, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
		t.Errorf("health without a token: got %v", err)
	}
	if _, err := services(t.Context(), conn); status.Code(err) != codes.Unauthenticated {
		t.Errorf("reflection without a token: got %v, want Unauthenticated", err)
	}
	names, err := services(withToken(t.Context(), shop), conn)
	if want := "grpc.health.v1.Health grpc.reflection.v1.ServerReflection grpc.reflection.v1alpha.ServerReflection " + echo; err != nil || strings.Join(names, " ") != want {
		t.Errorf("got services %v and %v, want %s", names, err, want)
	}
}

// services asks for the names of all services.
func services(ctx context.Context, conn *grpc.ClientConn) (names []string, err error) {
	stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		return nil, err
	}
	_ = stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
	_ = stream.CloseSend()
	a, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	for _, s := range a.GetListServicesResponse().Service {
		names = append(names, s.Name)
	}
	_, err = stream.Recv()
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}

// More calls than the resource limits allow are refused. Those that are refused leave no
// trace: the next one has its place.
func TestBounds(t *testing.T) {
	t.Parallel()
	block := make(chan struct{})
	resources := &access.ResourceLimits{Requests: 1}
	working := make(chan int32, 10)
	_, conn := serve(t, grpcserver.Config{Resources: resources, Working: func(net.Conn) func(int32) {
		return func(by int32) { working <- by }
	}}, block)
	first := make(chan error, 1)
	go func() { _, err := say(context.Background(), conn, "block"); first <- err }()
	<-block
	if _, err := say(t.Context(), conn, "hello"); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v, want Unavailable", err)
	}
	block <- struct{}{}
	if err := <-first; err != nil {
		t.Errorf("got %v from the call that was at work", err)
	}
	if _, err := say(t.Context(), conn, "hello"); err != nil {
		t.Errorf("got %v, want an answer", err)
	}
	for _, want := range []int32{1, -1, 1, -1} {
		if got := <-working; got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	}
	if n, _ := resources.Now(); n != 0 {
		t.Errorf("got %d requests at work, want none", n)
	}
}

// TestConnectionAge checks that a client opens another connection when one has been open for its
// time, and that no call fails because of that.
func TestConnectionAge(t *testing.T) {
	t.Parallel()
	seen := make(chan net.Conn, 1)
	_, conn := serve(t, grpcserver.Config{Age: 10 * time.Millisecond, Working: func(c net.Conn) func(int32) {
		select {
		case seen <- c:
		default:
		}
		return nil
	}}, nil)
	var first net.Conn
	for {
		if _, err := say(t.Context(), conn, "hello"); err != nil {
			t.Fatalf("got %v, want an answer", err)
		}
		select {
		case c := <-seen:
			if first != nil && c != first {
				return // the test's time-out ends a loop without another connection
			}
			first = c
		default:
		}
	}
}

// A server that is shut down lets calls finish, and reports that it accepts no
// others.
func TestShutdown(t *testing.T) {
	t.Parallel()
	block := make(chan struct{})
	s, conn := serve(t, grpcserver.Config{}, block)
	health := healthpb.NewHealthClient(conn)
	for _, name := range []string{"", "echo", echo} {
		if a, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{Service: name}); err != nil || a.Status != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("health of %q: got %v, %v", name, a, err)
		}
	}
	s.SetReady(false)
	if a, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{Service: "echo"}); err != nil || a.Status != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("health when not ready: got %v, %v", a, err)
	}
	last := make(chan error, 1)
	go func() { _, err := say(context.Background(), conn, "block"); last <- err }()
	<-block
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(context.Background()) }()
	block <- struct{}{}
	if err := <-last; err != nil {
		t.Errorf("got %v from the last call, want an answer", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("got %v from Shutdown", err)
	}
	if _, err := say(t.Context(), conn, "hello"); status.Code(err) != codes.Unavailable {
		t.Errorf("after the end: got %v, want Unavailable", err)
	}
}

// A call that does not end is ended when the time for that is over.
func TestShutdownIsBounded(t *testing.T) {
	t.Parallel()
	s, conn := serve(t, grpcserver.Config{}, nil)
	stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/"+echo+"/Each")
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.SendMsg(wrapperspb.String("one")); err != nil {
		t.Fatal(err)
	}
	out := new(wrapperspb.StringValue)
	if err := stream.RecvMsg(out); err != nil || out.Value != "one" {
		t.Fatalf("got %v, %v, want one", out, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the end of the time", err)
	}
	if err := stream.RecvMsg(out); err == nil {
		t.Error("got an answer after the end")
	}
}

// Streams of health and reflection, which may be idle forever, are limited over all connections, but for the first
// of each. Those that have ended leave room for others.
func TestIdleStreams(t *testing.T) {
	t.Parallel()
	_, path, _, _ := pipe(t, 0)
	connect := func() *grpc.ClientConn {
		conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	watch := func(ctx context.Context, conn *grpc.ClientConn) error {
		stream, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{})
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	}
	const connections, each, want = 5, 240, 1000 + 5
	open := 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range connections {
		conn := connect()
		for range each {
			switch err := watch(ctx, conn); status.Code(err) {
			case codes.OK:
				open++
			case codes.ResourceExhausted:
			default:
				t.Fatal(err)
			}
		}
	}
	if open != want {
		t.Errorf("got %d open streams, want %d", open, want)
	}
	other := connect()
	if err := watch(t.Context(), other); err != nil {
		t.Errorf("the first stream of a connection: got %v", err)
	}
	if _, err := services(t.Context(), other); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("reflection beyond the limit: got %v, want ResourceExhausted", err)
	}
	cancel()
	for {
		_, err := services(t.Context(), other)
		if err == nil {
			break // the test's time-out ends a loop without room
		}
		if status.Code(err) != codes.ResourceExhausted {
			t.Fatal(err)
		}
	}
}

// A client without a token can watch the health of services that do not exist, whose names are not kept.
func TestNamesOfUnknownServices(t *testing.T) { //nolint:paralleltest // it measures memory
	_, _, conn, _ := pipe(t, 0)
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	watch := func(request *healthpb.HealthCheckRequest) healthpb.HealthCheckResponse_ServingStatus {
		stream, err := healthpb.NewHealthClient(conn).Watch(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return answer.Status
	}
	for name, want := range map[string]healthpb.HealthCheckResponse_ServingStatus{
		"": healthpb.HealthCheckResponse_SERVING, echo: healthpb.HealthCheckResponse_SERVING, "other": healthpb.HealthCheckResponse_SERVICE_UNKNOWN,
	} {
		if got := watch(&healthpb.HealthCheckRequest{Service: name}); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
	before := heap()
	for i := range 64 {
		request := &healthpb.HealthCheckRequest{Service: strings.Repeat(string(rune('0'+i)), 500_000)}
		request.ProtoReflect().SetUnknown(append(protowire.AppendTag(nil, 99, protowire.BytesType), protowire.AppendBytes(nil, make([]byte, 500_000))...))
		watch(request)
	}
	if grown := heap() - before; grown > 16<<20 {
		t.Errorf("64 streams keep %d MiB, want less than one message each", grown>>20)
	}
}

// A large message reserves the memory of what it becomes when it is decoded, until it is answered.
func TestUnaryReservesMemory(t *testing.T) {
	t.Parallel()
	resources := &access.ResourceLimits{Memory: 2 << 20}
	_, conn := serve(t, grpcserver.Config{Resources: resources}, nil)
	for size, want := range map[int]codes.Code{60 << 10: codes.OK, 100 << 10: codes.OK, 200 << 10: codes.Unavailable} {
		if _, err := say(t.Context(), conn, strings.Repeat("x", size)); status.Code(err) != want {
			t.Errorf("%d bytes: got %v, want %v", size, err, want)
		}
	}
}

// A large answer reserves its memory until it is sent.
func TestUnaryReservesAnswers(t *testing.T) {
	t.Parallel()
	resources, block := &access.ResourceLimits{Memory: 150 << 10}, make(chan struct{})
	_, conn := serve(t, grpcserver.Config{Resources: resources}, block)
	for size, want := range map[int64]int64{60 << 10: 0, 100 << 10: 100 << 10} {
		ended := make(chan error, 1)
		go func() {
			ended <- conn.Invoke(t.Context(), "/"+echo+"/Repeat", wrapperspb.Int64(size), new(wrapperspb.StringValue))
		}()
		<-block
		if _, memory := resources.Now(); memory != want {
			t.Errorf("got %d bytes reserved for an answer of %d, want %d", memory, size, want)
		}
		block <- struct{}{}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	err := conn.Invoke(t.Context(), "/"+echo+"/Repeat", wrapperspb.Int64(200<<10), new(wrapperspb.StringValue))
	if status.Code(err) != codes.Unavailable {
		t.Errorf("got %v for a larger answer than the memory, want Unavailable", err)
	}
	if _, memory := resources.Now(); memory != 0 {
		t.Errorf("got %d bytes reserved in the end, want none", memory)
	}
}

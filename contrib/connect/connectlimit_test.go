package connectlimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirhq/weir"
	connectlimit "github.com/weirhq/weir/contrib/connect"
	"github.com/weirhq/weir/internal/guardtest"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

type (
	text   = wrapperspb.StringValue
	client = connect.Client[text, text]
)

// serve runs a service with a unary procedure and a stream in both directions, which
// answer what they got, and returns a client of each.
func serve(t *testing.T, server, caller []connect.Interceptor) (once, chat *client) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/test.Echo/Once", connect.NewUnaryHandler("/test.Echo/Once", func(_ context.Context, r *connect.Request[text]) (*connect.Response[text], error) {
		return connect.NewResponse(r.Msg), nil
	}, connect.WithInterceptors(server...)))
	mux.Handle("/test.Echo/Chat", connect.NewBidiStreamHandler("/test.Echo/Chat", func(_ context.Context, s *connect.BidiStream[text, text]) error {
		for {
			m, err := s.Receive()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := s.Send(m); err != nil {
				return err
			}
		}
	}, connect.WithInterceptors(server...)))
	s := httptest.NewUnstartedServer(mux)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	option := connect.WithInterceptors(caller...)
	return connect.NewClient[text, text](s.Client(), s.URL+"/test.Echo/Once", option), connect.NewClient[text, text](s.Client(), s.URL+"/test.Echo/Chat", option)
}

// denial checks that err is a denial by a limit, with the wait in it and in its header.
func denial(t *testing.T, err error, limit string) {
	t.Helper()
	var e *connect.Error
	if !errors.As(err, &e) || e.Code() != connect.CodeResourceExhausted {
		t.Fatalf("got %v, want resource_exhausted", err)
	}
	wait, subject := time.Duration(0), ""
	for _, d := range e.Details() {
		m, err := d.Value()
		if err != nil {
			t.Fatal(err)
		}
		switch m := m.(type) {
		case *errdetails.RetryInfo:
			wait = m.RetryDelay.AsDuration()
		case *errdetails.QuotaFailure:
			subject = m.Violations[0].Subject
		}
	}
	if wait <= 0 || wait > time.Minute || subject != limit {
		t.Errorf("got a wait of %v and the subject %q, want at most a minute and %s", wait, subject, limit)
	}
	if got, want := e.Meta().Get("Retry-After"), fmt.Sprint(math.Ceil(wait.Seconds())); got != want {
		t.Errorf("got a wait of %s s in the header, want %s s", got, want)
	}
}

func TestUnary(t *testing.T) {
	t.Parallel()
	limit := connectlimit.Must(connectlimit.Keys(guardtest.Limiter(t, weir.Sliding(1, time.Minute)), connectlimit.PeerIP, connectlimit.Options{Name: "calls"}))
	once, _ := serve(t, []connect.Interceptor{limit}, nil)
	answer, err := once.CallUnary(t.Context(), connect.NewRequest(wrapperspb.String("a")))
	if err != nil || answer.Msg.Value != "a" || answer.Header().Get("RateLimit") != `"calls";r=0` {
		t.Fatalf("got %v %v", answer, err)
	}
	_, err = once.CallUnary(t.Context(), connect.NewRequest(wrapperspb.String("a")))
	denial(t, err, "calls")
}

// The error of a procedure states the limits, too.
func TestErrorsStateTheLimits(t *testing.T) {
	t.Parallel()
	limit := connectlimit.PerIP(2, time.Minute)
	handler := connect.NewUnaryHandler("/test.Echo/Once", func(context.Context, *connect.Request[text]) (*connect.Response[text], error) {
		return nil, connect.NewError(connect.CodeNotFound, errors.New("none"))
	}, connect.WithInterceptors(limit))
	s := httptest.NewServer(handler)
	defer s.Close()
	_, err := connect.NewClient[text, text](s.Client(), s.URL+"/test.Echo/Once").CallUnary(t.Context(), connect.NewRequest(wrapperspb.String("a")))
	var e *connect.Error
	if !errors.As(err, &e) || e.Code() != connect.CodeNotFound || e.Meta().Get("RateLimit") != `"requests";r=1` {
		t.Errorf("got %v with the header %v", err, e.Meta())
	}
}

func TestNoKey(t *testing.T) {
	t.Parallel()
	once, _ := serve(t, []connect.Interceptor{connectlimit.Must(connectlimit.Keys(guardtest.Limiter(t, weir.Sliding(1, time.Minute)), connectlimit.Header("Api-Key")))}, nil)
	_, err := once.CallUnary(t.Context(), connect.NewRequest(wrapperspb.String("a")))
	if connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("got %v, want invalid_argument", err)
	}
	for _, err := range []error{
		func() error { _, err := connectlimit.Keys(nil, connectlimit.PeerIP); return err }(),
		func() error { _, err := connectlimit.Rules(nil, nil); return err }(),
	} {
		if err == nil {
			t.Error("got no error for a nil argument")
		}
	}
}

// A stream is in flight until it has ended, on a server and on a client.
func TestInFlight(t *testing.T) {
	t.Parallel()
	rules := []rule.Rule{{Name: "chats", Per: []string{"procedure"}, Quota: &rule.Quota{Value: 1}, Window: window.Held(30 * time.Second)}}
	for _, side := range []string{"server", "client"} {
		settled := make(guardtest.Settles, 10)
		e := guardtest.Engine(t, rules, nil, weir.WithObserver(settled))
		limits := []connect.Interceptor{connectlimit.Must(connectlimit.Rules(e, func(c connectlimit.Call, list []weir.Attribute) []weir.Attribute {
			return append(list, weir.Attribute{Name: "procedure", Value: c.Spec.Procedure})
		}))}
		var chat *client
		if side == "server" {
			_, chat = serve(t, limits, nil)
		} else {
			_, chat = serve(t, nil, limits)
		}
		// say sends a message on a stream and returns the error of its answer.
		say := func(s *connect.BidiStreamForClient[text, text]) error {
			if err := s.Send(wrapperspb.String("a")); err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			_, err := s.Receive()
			return err
		}
		first := chat.CallBidiStream(t.Context())
		if err := say(first); err != nil {
			t.Fatalf("%s: %v", side, err)
		}
		second := chat.CallBidiStream(t.Context())
		if err := say(second); connect.CodeOf(err) != connect.CodeResourceExhausted {
			t.Errorf("%s: got %v, want a denial while the first stream is open", side, err)
		}
		if err := errors.Join(second.CloseRequest(), second.CloseResponse(), first.CloseRequest()); err != nil {
			t.Fatalf("%s: %v", side, err)
		}
		if _, err := first.Receive(); !errors.Is(err, io.EOF) {
			t.Fatalf("%s: got %v, want the end of the stream", side, err)
		}
		<-settled
		third := chat.CallBidiStream(t.Context())
		if err := say(third); err != nil {
			t.Errorf("%s: got %v, want a place after the end", side, err)
		}
		if err := errors.Join(third.CloseRequest(), third.CloseResponse(), first.CloseResponse()); err != nil {
			t.Fatalf("%s: %v", side, err)
		}
	}
}

// lasting is a context that outlives its streams, and counts what they leave to its end.
type lasting struct {
	context.Context
	done chan struct{}
	left atomic.Int64
}

func (l *lasting) Done() <-chan struct{} { return l.done }

func (l *lasting) AfterFunc(func()) (stop func() bool) {
	l.left.Add(1)
	return sync.OnceValue(func() bool { l.left.Add(-1); return true })
}

// A stream that has ended leaves nothing behind in its context.
func TestStreamsUnderOneContext(t *testing.T) {
	t.Parallel()
	limit := connectlimit.Must(connectlimit.Keys(guardtest.Limiter(t, weir.Sliding(1, time.Minute)), connectlimit.Procedure))
	_, chat := serve(t, nil, []connect.Interceptor{limit})
	ctx := &lasting{Context: t.Context(), done: make(chan struct{})}
	stream := chat.CallBidiStream(ctx)
	if err := stream.Send(wrapperspb.String("a")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(stream.CloseRequest(), stream.CloseResponse()); err != nil {
		t.Fatal(err)
	}
	for ctx.left.Load() > 0 { // the transport may end later
		runtime.Gosched()
	}
}

// A client that limits itself does not send what it denies.
func TestClient(t *testing.T) {
	t.Parallel()
	limit := connectlimit.Must(connectlimit.Keys(guardtest.Limiter(t, weir.Sliding(1, time.Minute)), connectlimit.Procedure))
	once, _ := serve(t, nil, []connect.Interceptor{limit})
	if _, err := once.CallUnary(t.Context(), connect.NewRequest(wrapperspb.String("a"))); err != nil {
		t.Fatal(err)
	}
	_, err := once.CallUnary(t.Context(), connect.NewRequest(wrapperspb.String("a")))
	denial(t, err, "requests")
}

// What a client writes into the header is ignored, and what a trusted proxy writes is the client.
func TestPerIP(t *testing.T) {
	t.Parallel()
	for trusted, want := range map[string]bool{"127.0.0.1": true, "10.0.0.0/8": false} {
		once, _ := serve(t, []connect.Interceptor{connectlimit.PerIP(1, time.Minute, trusted)}, nil)
		for i, forwarded := range []string{"203.0.113.1", "203.0.113.2"} {
			r := connect.NewRequest(wrapperspb.String("a"))
			r.Header().Set("X-Forwarded-For", forwarded)
			_, err := once.CallUnary(t.Context(), r)
			if i == 1 && (err == nil) != want {
				t.Errorf("%s trusted: got %v, want allowed %v", trusted, err, want)
			}
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("got no panic for a network that is none")
		}
	}()
	connectlimit.PerIP(1, time.Minute, "proxy")
}

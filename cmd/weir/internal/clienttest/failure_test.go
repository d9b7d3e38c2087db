package clienttest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/client"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
)

// modes are the ways of a client to make calls.
var modes = map[string]client.Option{"calls": client.WithStreams(0), "streams": client.WithStreams(1)}

var post = weir.Request{Attributes: weir.Attributes("action", "post", "user", "ann", "page", "/a")}

// counted returns what an engine has counted of post.
func counted(t *testing.T, e *weir.Engine) int64 {
	t.Helper()
	u, err := e.Usage(t.Context(), "views", post.Attributes)
	if err != nil {
		t.Fatal(err)
	}
	return u.Used
}

// silent is a store that does not answer until it is told to. It has counted nothing
// then, if the context of the call is done.
type silent struct {
	store.Store
	calls   chan struct{}
	proceed chan struct{}
}

func (s *silent) Do(ctx context.Context, calls []store.Call) error {
	s.calls <- struct{}{}
	<-s.proceed
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.Store.Do(ctx, calls)
}

// newSilent returns an engine over a silent store.
func newSilent(t *testing.T) (*weir.Engine, *silent) {
	t.Helper()
	s := &silent{memstore.New(), make(chan struct{}, 100), make(chan struct{})}
	t.Cleanup(func() { _ = s.Store.Close() })
	return scripttest.Engine(t, newPair(t).plain.Rules(), weir.WithStore(s)), s
}

// A call ends with its context, and counts nothing if it was not sent.
func TestContextEnds(t *testing.T) {
	t.Parallel()
	for mode, option := range modes {
		e, s := newSilent(t)
		_, target := serve(t, grpcserver.Config{}, e)
		c := open(t, target, option)
		done, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Take(done, post); !errors.Is(err, context.Canceled) || !client.Uncounted(err) {
			t.Errorf("%s: got %v, want that the context is done and nothing was counted", mode, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-s.calls; cancel() }()
		if _, err := c.Take(ctx, post); !errors.Is(err, context.Canceled) || client.Uncounted(err) || status.Code(err) != codes.Canceled {
			t.Errorf("%s: got %v, want that the context is done, and nothing is known", mode, err)
		}
		close(s.proceed)
	}
}

// A service that does not answer costs a call the time that it has, and no more.
func TestTimeout(t *testing.T) {
	t.Parallel()
	for mode, option := range modes {
		e, s := newSilent(t)
		_, target := serve(t, grpcserver.Config{}, e)
		c := open(t, target, option, client.WithTimeout(500*time.Millisecond))
		for range 2 { // also after the first one, whose stream has ended
			if _, err := c.Take(t.Context(), post); !errors.Is(err, context.DeadlineExceeded) || status.Code(err) != codes.DeadlineExceeded {
				t.Errorf("%s: got %v, want a deadline that was exceeded", mode, err)
			}
		}
		close(s.proceed)
	}
}

// Without a service nothing is counted. When it is there, calls get through.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	for mode, option := range modes {
		path := filepath.Join(t.TempDir(), "socket")
		c := open(t, "unix:"+path, option)
		for range 3 {
			if _, err := c.Take(t.Context(), post); status.Code(err) != codes.Unavailable || !client.Uncounted(err) {
				t.Errorf("%s: got %v, want Unavailable, and that nothing was counted", mode, err)
			}
		}
		items := []weir.Item{{Verb: store.Take, Request: post}}
		if c.DoAll(t.Context(), items); status.Code(items[0].Err) != codes.Unavailable || !client.Uncounted(items[0].Err) {
			t.Errorf("%s: got %v, want Unavailable, and that nothing was counted", mode, items[0].Err)
		}
	}
}

// While services come and go, each take that was answered was counted once, and each
// that was refused for certain was not. Errors of other kinds are at most as many as
// the difference.
func TestRestarts(t *testing.T) {
	t.Parallel()
	for mode, option := range modes {
		t.Run(mode, func(t *testing.T) { t.Parallel(); testRestarts(t, option) })
	}
}

func testRestarts(t *testing.T, option client.Option) {
	w := newPair(t)
	path := filepath.Join(t.TempDir(), "socket")
	server, ended := serveAt(t, path, grpcserver.Config{}, w.plain)
	c := open(t, "unix:"+path, option)
	var answered, unknown atomic.Int64
	ticks := make(chan struct{})
	var stop atomic.Bool
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for !stop.Load() {
				_, err := c.Record(t.Context(), post)
				switch {
				case err == nil:
					answered.Add(1)
					select {
					case ticks <- struct{}{}:
					default:
					}
				case !client.Uncounted(err):
					unknown.Add(1)
				}
			}
		})
	}
	for range 4 {
		for range 100 {
			<-ticks
		}
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		server, ended = serveAt(t, path, grpcserver.Config{}, w.plain)
	}
	stop.Store(true)
	all.Wait()
	if n := counted(t, w.plain); n < answered.Load() || n > answered.Load()+unknown.Load() {
		t.Errorf("got %d answers and %d unknown, and counted %d", answered.Load(), unknown.Load(), n)
	}
	if n := unknown.Load(); n > 0 { // an orderly end answers, or says that it has not counted
		t.Errorf("got %d calls whose fate is unknown, want none", n)
	}
}

// Close ends the calls under way, and all goroutines.
func TestClose(t *testing.T) {
	t.Parallel()
	for mode, option := range modes {
		e, s := newSilent(t)
		_, target := serve(t, grpcserver.Config{}, e)
		c := open(t, target, option)
		got := make(chan error, 3)
		for range 3 {
			go func() { _, err := c.Take(t.Context(), post); got <- err }()
		}
		<-s.calls
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		for range 3 {
			if err := <-got; !errors.Is(err, weir.ErrClosed) {
				t.Errorf("%s: got %v, want ErrClosed", mode, err)
			}
		}
		if _, err := c.Take(t.Context(), post); !errors.Is(err, weir.ErrClosed) {
			t.Errorf("%s: got %v after Close, want ErrClosed", mode, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		close(s.proceed)
	}
}

// A caller without the right gets the reason. A caller of too much gets the wait.
func TestRefusals(t *testing.T) {
	t.Parallel()
	keys := scripttest.Keys(t, "", access.Own{Name: "web", Token: "web", Scopes: access.Decide})
	for mode, option := range modes {
		w := newPair(t)
		b := &access.ResourceLimits{Requests: 1}
		target := serveBounded(t, 20_000, grpcserver.Config{Auth: &access.Authenticator{Keys: keys, Reach: access.ReachNamed}, Resources: b}, w.plain)
		_, err := open(t, target, option).Take(t.Context(), post)
		if status.Code(err) != codes.Unauthenticated || !client.Uncounted(err) {
			t.Errorf("%s: got %v, want Unauthenticated", mode, err)
		}
		c := open(t, target, option, client.WithToken("web"))
		if _, err := c.Record(t.Context(), post); status.Code(err) != codes.PermissionDenied || !client.Uncounted(err) {
			t.Errorf("%s: got %v, want PermissionDenied", mode, err)
		}
		if _, err := c.Take(t.Context(), post); err != nil {
			t.Errorf("%s: got %v, want a decision", mode, err)
		}
		if _, err := open(t, target, option, client.WithToken("web"), client.WithNamespace("none")).Take(t.Context(), post); status.Code(err) != codes.NotFound {
			t.Errorf("%s: got %v, want NotFound", mode, err)
		}
		if err := b.Begin(); err != nil {
			t.Fatal(err)
		}
		_, err = c.Take(t.Context(), post)
		var e *client.Error
		if !errors.As(err, &e) || e.Reason != "OVERLOAD" || e.RetryAfter != access.OverloadRetry || !client.Uncounted(err) {
			t.Errorf("%s: got %v, want an overload with a wait", mode, err)
		}
		b.End()
	}
}

// A request whose text cannot be sent costs those in the same message nothing.
func TestNotText(t *testing.T) {
	t.Parallel()
	for mode, option := range modes {
		w := newPair(t)
		_, target := serve(t, grpcserver.Config{}, w.plain)
		c := open(t, target, option)
		items := make([]weir.Item, 5)
		for i := range items {
			items[i] = weir.Item{Verb: store.Record, Request: post}
		}
		items[1].Request.Attributes = weir.Attributes("action", "post", "user", "\xff", "page", "/a")
		items[2].Request.Attributes = weir.Attributes("action", "post", "\xff", "ann", "page", "/a")
		items[3] = weir.Item{Verb: store.Refund, Request: weir.Request{Attributes: post.Attributes, Feedback: "\xff"}}
		c.DoAll(t.Context(), items)
		for i := range items {
			if bad := i%4 != 0; bad != (items[i].Err != nil) || bad && !client.Uncounted(items[i].Err) {
				t.Errorf("%s: item %d: got %v", mode, i, items[i].Err)
			}
		}
		if n := counted(t, w.plain); n != 2 {
			t.Errorf("%s: got %d counted, want 2", mode, n)
		}
	}
}

// Answers that are too large together are asked for one by one.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	for mode, option := range modes {
		w := newPair(t)
		target := serveBounded(t, 3000, grpcserver.Config{}, w.plain)
		c := open(t, target, option)
		items := make([]weir.Item, 20)
		for i := range items {
			items[i] = weir.Item{Verb: store.Record, Request: post}
		}
		c.DoAll(t.Context(), items)
		for i := range items {
			if items[i].Err != nil {
				t.Errorf("%s: item %d: got %v", mode, i, items[i].Err)
			}
		}
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if _, err := c.Record(t.Context(), post); err != nil {
					t.Errorf("%s: got %v", mode, err)
				}
			})
		}
		all.Wait()
		if n := counted(t, w.plain); n != 40 {
			t.Errorf("%s: got %d counted, want 40", mode, n)
		}
		long := weir.Request{Attributes: weir.Attributes("action", string(make([]byte, 2<<20)))}
		if _, err := c.Take(t.Context(), long); err == nil || !client.Uncounted(err) {
			t.Errorf("%s: got %v for a request over 1 MiB, want an error", mode, err)
		}
	}
}

// Text that is not UTF-8, too many attributes, and a value that is too long are wrong input. Nothing is sent, so that no
// service is needed to find it.
func TestText(t *testing.T) {
	t.Parallel()
	const bad = "\xff"
	name, value := weir.Attributes(bad, "x"), weir.Attributes("user", bad)
	var many []weir.Attribute
	for i := range 65 {
		many = append(many, weir.Attribute{Name: fmt.Sprint("attribute", i)})
	}
	for _, option := range modes {
		c := open(t, "unix:"+filepath.Join(t.TempDir(), "nobody"), option)
		take := func(r weir.Request) func() error {
			return func() error { _, err := c.Take(t.Context(), r); return err }
		}
		for i, test := range []struct {
			path string
			call func() error
		}{
			{"attributes", take(weir.Request{Attributes: name})},
			{"attributes.user", take(weir.Request{Attributes: value})},
			{"attributes", take(weir.Request{Attributes: many})},
			{"attributes.user", take(weir.Request{Attributes: weir.Attributes("user", strings.Repeat("x", 1025))})},
			{"feedback", func() error {
				_, err := c.Refund(t.Context(), weir.Request{Attributes: weir.Attributes("user", "ann"), Feedback: bad})
				return err
			}},
			{"attributes.user", func() error {
				items := []weir.Item{{Request: weir.Request{Attributes: value}}}
				c.DoAll(t.Context(), items)
				return items[0].Err
			}},
			{"attributes", func() error {
				items := []weir.Item{{Request: weir.Request{Attributes: many}}}
				c.DoAll(t.Context(), items)
				return items[0].Err
			}},
			{"attributes.user", func() error { _, _, err := c.Explain(t.Context(), weir.Request{Attributes: value}); return err }},
			{"rule", func() error { _, err := c.Usage(t.Context(), bad, nil); return err }},
			{"attributes.user", func() error { _, err := c.Usage(t.Context(), "posts", value); return err }},
			{"rule", func() error { return c.Forget(t.Context(), bad, nil) }},
			{"attributes", func() error { return c.Forget(t.Context(), "posts", name) }},
		} {
			var f *fault.Fault
			if err := test.call(); !errors.As(err, &f) || f.Path != test.path || !client.Uncounted(err) {
				t.Errorf("call %d: got %v, want a fault at %s", i, err, test.path)
			}
		}
	}
}

// broken is a service that gives each call the same answer, and a batch the same answers.
type broken struct {
	weirv1.UnimplementedWeirServiceServer
	answers []*weirv1.Answer
}

func (b *broken) Take(context.Context, *weirv1.TakeRequest) (*weirv1.TakeResponse, error) {
	return &weirv1.TakeResponse{Decision: b.answers[0].GetDecision()}, nil
}

func (b *broken) Explain(context.Context, *weirv1.ExplainRequest) (*weirv1.ExplainResponse, error) {
	return &weirv1.ExplainResponse{Decision: b.answers[0].GetDecision()}, nil
}

func (b *broken) Usage(context.Context, *weirv1.UsageRequest) (*weirv1.UsageResponse, error) {
	return &weirv1.UsageResponse{}, nil
}

func (b *broken) Batch(context.Context, *weirv1.BatchRequest) (*weirv1.BatchResponse, error) {
	return &weirv1.BatchResponse{Answers: b.answers}, nil
}

func (b *broken) Decide(calls grpc.BidiStreamingServer[weirv1.DecideRequest, weirv1.DecideResponse]) error {
	for {
		in, err := calls.Recv()
		if err != nil {
			return err
		}
		if err := calls.Send(&weirv1.DecideResponse{Id: in.GetId(), Answers: b.answers}); err != nil {
			return err
		}
	}
}

// An answer without a valid decision is an internal error of a call that may have counted.
func TestBrokenAnswers(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]*weirv1.Decision{"no decision": nil, "no outcome": {Allowed: true}, "bad receipt": {Allowed: true, Outcome: "allow", Receipt: "x"}} {
		answer := &weirv1.Answer{}
		if d != nil {
			answer.Kind = &weirv1.Answer_Decision{Decision: d}
		}
		l, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
		if err != nil {
			t.Fatal(err)
		}
		s := grpc.NewServer()
		weirv1.RegisterWeirServiceServer(s, &broken{answers: []*weirv1.Answer{answer}})
		go func() { _ = s.Serve(l) }()
		t.Cleanup(s.Stop)
		check := func(call string, err error) {
			t.Helper()
			var e *client.Error
			if !errors.As(err, &e) || status.Code(err) != codes.Internal || client.Uncounted(err) {
				t.Errorf("%s, %s: got %v, want an internal error, and that nothing is known", name, call, err)
			}
		}
		for mode, option := range modes {
			c := open(t, "unix:"+l.Addr().String(), option)
			_, err := c.Take(t.Context(), post)
			check("take by "+mode, err)
			items := make([]weir.Item, 2) // more than the answers
			for i := range items {
				items[i].Request = post
			}
			c.DoAll(t.Context(), items[:1])
			check("batch", items[0].Err)
			c.DoAll(t.Context(), items)
			check("short batch", items[1].Err)
			_, _, err = c.Explain(t.Context(), post)
			check("explain", err)
			_, err = c.Usage(t.Context(), "views", post.Attributes)
			check("usage", err)
		}
	}
}

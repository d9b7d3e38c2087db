package client

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/store"
)

// answerer is a service that answers messages when it is told to. It implements
// [grpc.ClientStream].
type answerer struct {
	grpc.ClientStream
	stream  *stream
	replies chan uint64 // ids
	ended   error       // of the stream, once replies is closed
	callers sync.WaitGroup
	stuck   chan struct{} // nil, or until it is closed messages are not sent
	done    chan struct{} // closed when the client has ended the stream

	mu   sync.Mutex
	sent []int // guarded by mu; how many requests the messages have
}

func newAnswerer() *answerer {
	c := &Client{timeout: 5 * time.Second, alive: context.Background()}
	c.calls.New = func() any { return &call{done: make(chan struct{}, 1)} }
	p := &answerer{stream: newStream(c), replies: make(chan uint64), ended: io.EOF, done: make(chan struct{})}
	p.stream.link = &link{stream: p.stream, rpc: p, cancel: sync.OnceFunc(func() { close(p.done) }), work: make(chan struct{}, 1)}
	go p.stream.link.send()
	go p.stream.link.receive()
	return p
}

func (a *answerer) SendMsg(m any) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent = append(a.sent, len(m.(*weirv1.DecideRequest).GetRequests()))
	if a.stuck != nil {
		<-a.stuck
	}
	return nil
}

func (a *answerer) RecvMsg(m any) error {
	var id uint64
	select {
	case next, ok := <-a.replies:
		if !ok {
			return a.ended
		}
		id = next
	case <-a.done:
		return context.Canceled
	}
	in := m.(*weirv1.DecideResponse)
	in.Id, in.Answers = id, nil
	a.mu.Lock()
	for range a.sent[id-1] {
		in.Answers = append(in.Answers, &weirv1.Answer{Kind: &weirv1.Answer_Decision{Decision: &weirv1.Decision{Allowed: true, Outcome: "allow"}}})
	}
	a.mu.Unlock()
	return nil
}

// messages returns how many requests each message has that was sent so far.
func (a *answerer) messages() []int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.sent)
}

// call starts n callers, each of which calls the given number of times.
func (a *answerer) call(t *testing.T, n, times int) {
	t.Helper()
	for range n {
		a.callers.Go(func() {
			for range times {
				var d weir.Decision
				if err := a.stream.do(context.Background(), store.Take, &weir.Request{}, &d); err != nil || !d.Allowed {
					t.Errorf("got %+v, %v", d, err)
				}
			}
		})
	}
	synctest.Wait()
}

// outcome is the end of a call.
type outcome struct {
	after time.Duration
	err   error
}

// start starts a call with a deadline, or one without if that is 0. It sends the outcome to the channel that it returns.
func (a *answerer) start(deadline time.Duration) <-chan outcome {
	ended := make(chan outcome, 1)
	go func() {
		ctx, cancel := context.Background(), func() {}
		if deadline > 0 {
			ctx, cancel = context.WithTimeout(ctx, deadline)
		}
		defer cancel()
		began := time.Now()
		err := a.stream.do(ctx, store.Take, &weir.Request{}, &weir.Decision{})
		ended <- outcome{time.Since(began), err}
	}()
	synctest.Wait()
	return ended
}

// A single call is sent at once. With two messages in flight, calls wait for an answer, or
// until the newest message has taken a while. Then half of the calls are sent together.
func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newAnswerer()
		expect := func(what string, want ...int) {
			t.Helper()
			synctest.Wait()
			if got := p.messages(); !slices.Equal(got, want) {
				t.Errorf("%s: got messages of %v requests, want %v", what, got, want)
			}
		}
		p.call(t, 1, 1)
		expect("a single call", 1)
		p.call(t, 1, 1)
		expect("one more", 1, 1)
		p.call(t, 38, 1)
		expect("calls beyond two messages", 1, 1)
		time.Sleep(apart)
		p.call(t, 1, 1)
		expect("a while later: half of 41", 1, 1, 21)
		p.replies <- 1
		expect("two are in flight", 1, 1, 21)
		p.replies <- 2
		expect("one is in flight: the other half", 1, 1, 21, 18)
		p.replies <- 3
		p.replies <- 4
		p.callers.Wait()
		close(p.replies)
	})
}

// Callers whose calls one message has answered share the next one: the first of them that calls again waits for the
// others to run.
func TestCallersStayTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 14
		p := newAnswerer()
		reply := func(id int) {
			p.replies <- uint64(id) //nolint:gosec // small
			synctest.Wait()
		}
		p.call(t, 1, 1)
		p.call(t, 1, 1)
		p.call(t, callers, 2)
		reply(1)
		reply(2)
		p.call(t, 1, 1)
		reply(3)
		if got := p.messages(); len(got) != 5 || got[2] != callers || got[4] < callers/2 {
			t.Errorf("got messages of %v requests, want %d in the third and at least half of that in the fifth", got, callers)
		}
		for id := 4; id <= len(p.messages()); id++ {
			reply(id)
		}
		p.callers.Wait()
		close(p.replies)
	})
}

// A call does not end while its message is being encoded: the next call would reuse its memory.
func TestEndWhileSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newAnswerer()
		ended := make(chan error, 4)
		for range cap(ended) {
			go func() { ended <- p.stream.do(context.Background(), store.Take, &weir.Request{}, &weir.Decision{}) }()
			synctest.Wait()
		}
		p.stuck = make(chan struct{})
		p.replies <- 1 // the calls that wait are sent
		if err := <-ended; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		p.stream.close()
		close(p.replies)
		synctest.Wait()
		if len(ended) > 0 {
			t.Errorf("%d calls have ended while a message was being sent", len(ended))
		}
		close(p.stuck)
		synctest.Wait()
		if len(ended) != cap(ended)-1 {
			t.Errorf("%d of %d calls have ended", len(ended), cap(ended)-1)
		}
	})
}

// A call that would be sent again, because the service was stopping, ends when the client is
// closed.
func TestCloseWhileTheServiceStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newAnswerer()
		stopping, err := status.New(codes.Unavailable, "stopping").WithDetails(&errdetails.ErrorInfo{
			Reason: weirv1.ErrorReason_STOPPING.String(), Domain: "weir",
		})
		if err != nil {
			t.Fatal(err)
		}
		p.ended = stopping.Err()
		done := make(chan error, 1)
		go func() { done <- p.stream.do(context.Background(), store.Take, &weir.Request{}, &weir.Decision{}) }()
		synctest.Wait()
		p.stream.close()
		close(p.replies)
		synctest.Wait()
		select {
		case err := <-done:
			if !errors.Is(err, weir.ErrClosed) {
				t.Errorf("got %v, want an error of a closed client", err)
			}
		default:
			t.Fatal("the call has not ended")
		}
	})
}

// Each call has its own deadline, whatever calls are before it in the stream. One that passes ends the call, and
// others get their answers.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newAnswerer()
		brief, long := p.start(3*time.Millisecond), p.start(time.Hour)
		time.Sleep(apart)
		sent := p.start(0)
		for range maxAhead {
			time.Sleep(apart)
			p.start(time.Hour)
		}
		queued := p.start(0)
		if o := <-brief; o.after != 3*time.Millisecond || !errors.Is(o.err, context.DeadlineExceeded) {
			t.Errorf("a call of 3 ms: got %v after %v", o.err, o.after)
		}
		for _, ended := range []<-chan outcome{sent, queued} {
			if o := <-ended; o.after < 5*time.Second || o.after > 5050*time.Millisecond || !errors.Is(o.err, context.DeadlineExceeded) || Uncounted(o.err) != (ended == queued) {
				t.Errorf("a call without a deadline: got %v after %v, want that the time-out has passed", o.err, o.after)
			}
		}
		p.replies <- 1
		p.replies <- 2
		if o := <-long; o.err != nil {
			t.Errorf("a call of an hour: got %v after %v, want its answer", o.err, o.after)
		}
		p.stream.close()
		close(p.replies)
	})
}

// A stream whose messages have no answer, and for which nobody waits any more, is ended, so that the next call gets
// another one.
func TestHangingStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newAnswerer()
		first := p.start(100 * time.Millisecond)
		second := p.start(0)
		time.Sleep(4 * time.Second)
		<-first
		select {
		case <-p.done:
			t.Error("the stream has ended while a call had time left")
		default:
		}
		<-second
		synctest.Wait()
		select {
		case <-p.done:
		default:
			t.Error("the stream has not ended")
		}
	})
}

// While flow control blocks a message, no caller waits for longer than it has time. Calls behind it count nothing.
func TestBlockedSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newAnswerer()
		long := p.start(time.Minute)
		p.stuck = make(chan struct{})
		for i := range 3 {
			if o := <-p.start(100 * time.Millisecond); o.after != 100*time.Millisecond || Uncounted(o.err) != (i > 0) {
				t.Errorf("call %d: got %v after %v, want the end after 100ms", i, o.err, o.after)
			}
		}
		close(p.stuck)
		p.replies <- 1
		if o := <-long; o.err != nil {
			t.Errorf("got %v, want the answer", o.err)
		}
		close(p.replies)
	})
}

// While the service hangs, each call waits as long as it has time, however many there are, and the stream keeps those
// alone that still wait.
func TestHangingService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newAnswerer()
		p.start(time.Hour)
		var calls []<-chan outcome
		for i := range 4000 {
			calls = append(calls, p.start(time.Duration(i%2)*time.Second))
			time.Sleep(5 * time.Millisecond)
		}
		p.stream.mu.Lock()
		if n := len(p.stream.waiting); n > 1000 {
			t.Errorf("%d calls wait, want those of 5 s", n)
		}
		p.stream.mu.Unlock()
		for i, ended := range calls {
			want := 5 * time.Second
			if i%2 == 1 {
				want = time.Second
			}
			if o := <-ended; o.after < want || o.after > want+50*time.Millisecond || !errors.Is(o.err, context.DeadlineExceeded) {
				t.Fatalf("call %d: got %v after %v, want the end after %v", i, o.err, o.after, want)
			}
		}
		p.stream.close()
		close(p.replies)
	})
}

package clienttest_test

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/client"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/internal/once"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
)

// lossy is a store that calls lose after each of its first calls, when that has counted.
type lossy struct {
	store.Store
	calls, first atomic.Int64
	relay        *relay // of the client
	lose         func()
	keys         sync.Map    // of the records of calls, which is nil for a call without a key
	full         atomic.Bool // it has no room for records
}

func (s *lossy) Do(ctx context.Context, calls []store.Call) error {
	for i := range calls {
		var key string
		if calls[i].Once != nil {
			key = string(calls[i].Once.Key)
			if s.full.Load() {
				return once.ErrFull
			}
		}
		s.keys.Store(key, true)
	}
	err := s.Store.Do(ctx, calls)
	if s.calls.Add(1) <= s.first.Load() {
		s.lose()
	}
	return err
}

// relay forwards connections to a socket, until it cuts them.
type relay struct {
	l     net.Listener
	mu    sync.Mutex
	conns []net.Conn // guarded by mu
}

// newRelay returns a relay and the path of its socket.
func newRelay(t *testing.T, to string) (*relay, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "relay")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{l: l}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := new(net.Dialer).DialContext(t.Context(), "unix", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			r.mu.Lock()
			r.conns = append(r.conns, in, out)
			r.mu.Unlock()
			for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
				all.Go(func() {
					_, _ = io.Copy(pair[0], pair[1])
					_ = pair[0].Close()
				})
			}
		}
	})
	t.Cleanup(func() { _ = l.Close(); r.cut(); all.Wait() })
	return r, path
}

// cut closes the connections, with what is under way on them.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.conns = nil
}

// newLossy returns a client with options of a service whose first answers are lost on their
// way, and its engine and store.
func newLossy(t *testing.T, first int64, options ...client.Option) (*client.Client, *weir.Engine, *lossy) {
	t.Helper()
	s := &lossy{Store: memstore.New()}
	s.first.Store(first)
	t.Cleanup(func() { _ = s.Store.Close() })
	e := scripttest.Engine(t, newPair(t).plain.Rules(), weir.WithStore(s))
	path := filepath.Join(t.TempDir(), "socket")
	serveAt(t, path, grpcserver.Config{}, e)
	r, path := newRelay(t, path)
	s.relay, s.lose = r, r.cut
	return open(t, "unix:"+path, options...), e, s
}

// keysOf returns how many keys the calls of a store had, and whether there was a call without one.
func keysOf(s *lossy) (n int, bare bool) {
	s.keys.Range(func(key, _ any) bool {
		if key == "" {
			bare = true
		} else {
			n++
		}
		return true
	})
	return n, bare
}

// TestRetries loses answers: the client asks again under the same key, and what it asks for counts once.
func TestRetries(t *testing.T) {
	t.Parallel()
	for mode, option := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			c, e, s := newLossy(t, 2, option, client.WithRetries(2))
			d, err := c.Record(t.Context(), post)
			if n, bare := keysOf(s); err != nil || !d.Replayed || s.calls.Load() != 3 || n != 1 || bare {
				t.Fatalf("got %+v, %v after %d calls with %d keys (bare: %v), want the first answer in the third call, with one key", d, err, s.calls.Load(), n, bare)
			}
			if d, err = c.Record(t.Context(), post); err != nil || d.Replayed {
				t.Errorf("got %+v, %v, want another key for another record", d, err)
			}
			if n := counted(t, e); n != 2 {
				t.Errorf("got %d counted, want 2", n)
			}
			own := post
			own.IdempotencyKey = "own"
			s.first.Store(s.calls.Load() + 1)
			if d, err = c.Record(t.Context(), own); err != nil || !d.Replayed {
				t.Errorf("got %+v, %v, want the first answer", d, err)
			}
			if d, err = c.Record(t.Context(), own); err != nil || !d.Replayed || own.IdempotencyKey != "own" {
				t.Errorf("got %+v, %v, want the first answer again", d, err)
			}
			if n := counted(t, e); n != 3 {
				t.Errorf("got %d counted, want 3", n)
			}
		})
	}
}

// TestRetriesWithoutRoom asks a service that has no room for answers under keys: the client asks without one,
// unless the caller has stated it or an earlier attempt may have counted.
func TestRetriesWithoutRoom(t *testing.T) {
	t.Parallel()
	for mode, option := range modes {
		c, e, s := newLossy(t, 0, option, client.WithRetries(2))
		s.full.Store(true)
		if d, err := c.Record(t.Context(), post); err != nil || d.Replayed || s.calls.Load() != 1 {
			t.Errorf("%s: got %+v, %v after %d calls without a key, want one", mode, d, err, s.calls.Load())
		}
		own := post
		own.IdempotencyKey = "own"
		if _, err := c.Record(t.Context(), own); status.Code(err) != codes.ResourceExhausted || !client.Uncounted(err) {
			t.Errorf("%s: got %v for a key of the caller, want ResourceExhausted", mode, err)
		}
		s.full.Store(false)
		s.first.Store(s.calls.Load() + 1)
		lose := s.lose
		s.lose = func() { s.full.Store(true); lose() }
		if _, err := c.Record(t.Context(), post); status.Code(err) != codes.ResourceExhausted || client.Uncounted(err) {
			t.Errorf("%s: got %v after a lost answer, want ResourceExhausted, and that it may have counted", mode, err)
		}
		if n := counted(t, e); n != 2 {
			t.Errorf("%s: got %d counted, want 2", mode, n)
		}
	}
}

// TestRetriesEnd loses all answers: the last error is that of a call whose answer was lost.
func TestRetriesEnd(t *testing.T) {
	t.Parallel()
	for mode, option := range modes {
		for retries := range 3 {
			c, e, s := newLossy(t, 100, option, client.WithRetries(retries))
			_, err := c.Record(t.Context(), post)
			if status.Code(err) != codes.Unavailable || client.Uncounted(err) || s.calls.Load() != int64(retries+1) {
				t.Errorf("%s, %d retries: got %v after %d calls, want Unavailable, and that it may have counted", mode, retries, err, s.calls.Load())
			}
			if n := counted(t, e); n != 1 {
				t.Errorf("%s, %d retries: got %d counted, want 1", mode, retries, n)
			}
			before := s.calls.Load()
			if _, err := c.Check(t.Context(), post); err == nil || s.calls.Load() != before+1 {
				t.Errorf("%s, %d retries: got %v and %d calls for a check, want an error after one", mode, retries, err, s.calls.Load()-before)
			}
		}
	}
}

// TestRetriesUnsent loses the answer to the first attempt, and the next one finds no service: the call may have counted.
func TestRetriesUnsent(t *testing.T) {
	t.Parallel()
	for mode, option := range modes {
		c, e, s := newLossy(t, 1, option, client.WithRetries(1))
		s.lose = func() { _ = s.relay.l.Close(); s.relay.cut() }
		_, err := c.Record(t.Context(), post)
		if err == nil || client.Uncounted(err) {
			t.Errorf("%s: got %v, want an error of a call that may have counted", mode, err)
		}
		if n := counted(t, e); n != 1 || s.calls.Load() != 1 {
			t.Errorf("%s: got %d counted in %d calls, want 1 in one", mode, n, s.calls.Load())
		}
		if _, err := c.Record(t.Context(), post); !client.Uncounted(err) {
			t.Errorf("%s: got %v, want an error of a call that was never sent", mode, err)
		}
	}
}

// TestRetriesTime does not answer the first attempt, which leaves time for the second.
func TestRetriesTime(t *testing.T) {
	t.Parallel()
	for mode, option := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			c, e, s := newLossy(t, 1, option, client.WithRetries(59))
			proceed := make(chan struct{})
			s.lose = func() { <-proceed }
			defer close(proceed)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if d, err := c.Record(ctx, post); err != nil || !d.Replayed {
				t.Errorf("got %+v, %v, want the first answer", d, err)
			}
			if n := counted(t, e); n != 1 {
				t.Errorf("got %d counted, want 1", n)
			}
		})
	}
}

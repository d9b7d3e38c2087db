package conn_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/conn"
	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

// callers are callers of a node with one connection, whose other end the test has.
type callers struct {
	t     *testing.T
	node  *conn.Node
	conn  net.Conn
	in    *bufio.Reader
	limit *window.Compiled
	space *store.Space
	all   sync.WaitGroup
	done  atomic.Int64 // callers with an answer
}

func newCallers(t *testing.T) *callers {
	t.Helper()
	here, there := net.Pipe()
	c := &callers{
		t: t, conn: there, in: bufio.NewReader(there), space: store.NewSpace("", "id", "rule", 0),
		limit: window.MustCompile(window.Limit{Quota: 10, Window: window.Sliding(time.Hour)}),
	}
	go func() {
		c.command()
		c.write("%1\r\n$5\r\nproto\r\n:3\r\n")
	}()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{"node:1"}, ForceSingleClient: true, DisableCache: true, DisableRetry: true,
		AlwaysPipelining: true, PipelineMultiplex: -1, ClientSetInfo: rueidis.DisableClientSetInfo,
		ConnWriteTimeout: time.Hour,
		DialCtxFn:        func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return here, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	c.node = conn.NewNode(client)
	t.Cleanup(func() {
		_ = here.Close()
		client.Close()
	})
	return c
}

// call makes n callers call, and waits until all of them wait. Their calls end with an
// error, which is want if that is not nil.
func (c *callers) call(ctx context.Context, n int, want error) {
	for i := range n {
		c.all.Go(func() {
			op := store.Op{Space: c.space, Limit: c.limit, Key: strconv.AppendInt(nil, int64(i), 10), N: 1}
			err := c.node.Run(ctx, script.Call{Verb: store.Take, Ops: []store.Op{op}})
			if c.done.Add(1); err == nil || want != nil && !errors.Is(err, want) {
				c.t.Errorf("got error %v, want %v", err, want)
			}
		})
	}
	synctest.Wait()
}

// command reads a command.
func (c *callers) command() (words []string) {
	line := func() string {
		text, err := c.in.ReadString('\n')
		if err != nil {
			panic(err)
		}
		return strings.TrimSpace(text)
	}
	number := func(text string) int {
		n, err := strconv.Atoi(text[1:])
		if err != nil {
			panic(err)
		}
		return n
	}
	for range number(line()) {
		word := make([]byte, number(line())+2)
		if _, err := io.ReadFull(c.in, word); err != nil {
			panic(err)
		}
		words = append(words, string(word[:len(word)-2]))
	}
	return words
}

// flush reads a command that runs a program, and returns the number of its calls.
func (c *callers) flush() int {
	c.t.Helper()
	n, err := strconv.Atoi(c.command()[2]) // keys
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

func (c *callers) write(text string) {
	if _, err := io.WriteString(c.conn, text); err != nil {
		panic(err)
	}
}

// refuse answers all calls of a command with an error.
func (c *callers) refuse() {
	c.write("-ERR no\r\n")
	synctest.Wait()
}

// wantFlushes reads so many commands, and checks how many calls each of them has.
func (c *callers) wantFlushes(sizes ...int) {
	c.t.Helper()
	for i, want := range sizes {
		if got := c.flush(); got != want {
			c.t.Errorf("flush %d: got %d calls, want %d", i, got, want)
		}
	}
}

// Replicas confirm nothing on a connection that the library has made again: they lack nothing of what was written there.
func TestConfirmationOfALostConnection(t *testing.T) {
	t.Parallel()
	c := newCallers(t)
	for _, lost := range []bool{false, true} {
		go func() {
			c.command()
			c.write(":1\r\n")
		}()
		if err := c.node.Confirm(t.Context(), lost); errors.Is(err, remote.ErrGone) != lost {
			t.Errorf("lost %v: got error %v", lost, err)
		}
	}
}

// The first calls are sent by themselves. The others leave when they are as many as those in
// flight, or when there are few, and 64 at most in one flush.
func TestFlushesShareTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCallers(t)
		sizes := []int{1, 1, 1, 1, 4, 8, 16, 32, 64}
		for _, n := range sizes {
			c.call(t.Context(), n, nil)
		}
		c.call(t.Context(), 172, nil)
		c.wantFlushes(append(sizes, 64)...)
		for range 8 {
			c.refuse()
		}
		if got := c.done.Load(); got != 64 {
			t.Errorf("with 128 calls in flight and 108 in the queue: got %d answers, want 64", got)
		}
		c.call(t.Context(), 19, nil)
		c.call(t.Context(), 1, nil)
		c.wantFlushes(64)
		c.refuse()
		if got := c.done.Load(); got != 128 {
			t.Errorf("with 128 calls in flight and 64 in the queue: got %d answers, want 128", got)
		}
		c.refuse()
		c.wantFlushes(64)
		c.refuse()
		c.refuse()
		if got := c.done.Load(); got != 320 {
			t.Errorf("got %d answers, want 320", got)
		}
		c.all.Wait()
	})
}

// A caller in the queue whose context is cancelled leaves soon, the others stay.
func TestCancelledCallerLeavesTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCallers(t)
		within := func(ctx context.Context) context.Context {
			ctx, cancel := remote.Within(ctx, time.Minute)
			t.Cleanup(cancel)
			return ctx
		}
		own, cancel := context.WithCancel(t.Context())
		c.call(within(t.Context()), 4, nil)
		c.call(within(own), 2, context.Canceled)
		c.call(within(t.Context()), 1, nil)
		time.Sleep(15 * time.Millisecond)
		if got := c.done.Load(); got != 0 {
			t.Errorf("before: got %d callers that have left, want none", got)
		}
		cancel()
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		if got := c.done.Load(); got != 2 {
			t.Errorf("10 ms later: got %d callers that have left, want 2", got)
		}
		c.call(within(t.Context()), 2, nil)
		c.wantFlushes(1, 1, 1, 1)
		c.refuse()
		c.wantFlushes(3)
		for range 4 {
			c.refuse()
		}
		c.all.Wait()
	})
}

// A caller whose time is over leaves its flush, and also the queue when it has joined it too
// late. The others of the flush get their answers.
func TestLateCallersLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCallers(t)
		long, stop := remote.Within(t.Context(), time.Minute)
		defer stop()
		short, end := remote.Within(context.Background(), 10*time.Millisecond)
		defer end()
		c.call(long, 4, nil)
		c.call(short, 2, context.DeadlineExceeded)
		c.call(long, 2, nil)
		c.wantFlushes(1, 1, 1, 1, 4)
		c.refuse()
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		if got := c.done.Load(); got != 3 {
			t.Errorf("after 20 ms: got %d callers with an answer or an error, want 3", got)
		}
		c.call(long, 1, nil)
		c.call(short, 1, context.DeadlineExceeded)
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		if got := c.done.Load(); got != 4 {
			t.Errorf("a caller without time: got %d callers that have left, want 4", got)
		}
		for range 4 {
			c.refuse()
		}
		if got := c.done.Load(); got != 9 {
			t.Errorf("after four more answers: got %d callers with one, want 9", got)
		}
		c.wantFlushes(1)
		c.refuse()
		c.all.Wait()
	})
}

// A caller that has left may use the memory of its ops again while the answer is read: the race detector finds
// who still reads it.
func TestOpsAreTheCallersOnceItHasLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCallers(t)
		short, end := remote.Within(context.Background(), 10*time.Millisecond)
		defer end()
		c.call(t.Context(), 4, nil)
		ops := make([]store.Op, 4)
		for i := range ops {
			ops[i] = store.Op{Space: c.space, Limit: c.limit, Key: []byte{byte(i)}, N: 1}
			c.all.Go(func() {
				if err := c.node.Run(short, script.Call{Verb: store.Take, Ops: ops[i : i+1]}); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got error %v, want that of the deadline", err)
				}
			})
		}
		c.wantFlushes(1, 1, 1, 1, 4)
		time.Sleep(20 * time.Millisecond)
		for range 4 {
			c.refuse()
		}
		c.all.Wait()              // all callers have left
		const reply = 1 + 7 + 4*7 // an admission
		c.write("$" + strconv.Itoa(4*reply) + "\r\n" + strings.Repeat("\x00", 4*reply) + "\r\n")
		for i := range ops {
			ops[i].Role = store.Shadow
		}
	})
}

// The quickest round trip stays for a second at least and two at most. Longer ones,
// of which there are more when callers wait, do not displace it.
func TestShortestRoundTrip(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	var trips conn.RoundTrips
	for _, step := range []struct{ now, trip, want time.Duration }{
		{0, 9 * ms, 9 * ms},
		{10 * ms, 3 * ms, 3 * ms},
		{20 * ms, 30 * ms, 3 * ms},
		{1001 * ms, 20 * ms, 3 * ms},
		{1500 * ms, 6 * ms, 3 * ms},
		{2002 * ms, 40 * ms, 6 * ms},
		{3003 * ms, 40 * ms, 40 * ms},
		{3004 * ms, ms, ms},
	} {
		if got := trips.Learn(step.trip, step.now); got != step.want {
			t.Errorf("at %v, after a trip of %v: got %v, want %v", step.now, step.trip, got, step.want)
		}
	}
}

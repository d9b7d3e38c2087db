package wire_test

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/store/redisstore/internal/wire"
	"github.com/weirhq/weir/window"
)

// party is callers of a node with two connections, whose ends the test has.
type party struct {
	node    *wire.Node
	a, b    *server
	limit   *window.Compiled
	space   *store.Space
	callers sync.WaitGroup
	done    atomic.Int64 // callers with an answer
}

func newParty(t *testing.T) *party {
	t.Helper()
	first, a := pipe(t)
	second, b := pipe(t)
	return &party{
		node: wire.NewNode(first, second), a: a, b: b, space: store.NewSpace("", "id", "rule", 0),
		limit: window.MustCompile(window.Limit{Quota: 10, Window: window.Sliding(time.Hour)}),
	}
}

// call has so many callers call, and waits until all of them wait.
func (p *party) call(ctx context.Context, callers int, want error) {
	for i := range callers {
		p.callers.Go(func() {
			op := store.Op{Space: p.space, Limit: p.limit, Key: strconv.AppendInt(nil, int64(i), 10), N: 1}
			err := p.node.Run(ctx, script.Step{Verb: store.Take, Ops: []store.Op{op}, Which: []int{0}})
			if p.done.Add(1); err == nil || want != nil && !errors.Is(err, want) {
				panic(err)
			}
		})
	}
	synctest.Wait()
}

// steps reads a command and returns the number of its keys.
func (s *server) steps(t *testing.T) int {
	t.Helper()
	line := func() string {
		text, err := s.in.ReadString('\n')
		if err != nil {
			t.Fatalf("the server reads: %v", err)
		}
		return strings.TrimSpace(text)
	}
	number := func(text string) int {
		n, err := strconv.Atoi(text[1:])
		if err != nil {
			t.Fatalf("the server reads: %v", err)
		}
		return n
	}
	keys := 0
	for i := range number(line()) {
		word := make([]byte, number(line())+2)
		if _, err := io.ReadFull(s.in, word); err != nil {
			t.Fatalf("the server reads: %v", err)
		}
		if i == 2 {
			keys = number("$" + strings.TrimSpace(string(word)))
		}
	}
	return keys
}

// refuse answers all steps of a command with an error.
func (s *server) refuse(t *testing.T) {
	t.Helper()
	s.write(t, "-ERR no\r\n")
	synctest.Wait()
}

// When a train is back and as many callers stand in line, these leave before the others
// have their answers: the write of their command waits here for the server to read it.
// Where it waits for long, the others have their answers meanwhile. Fewer callers in
// line leave together with those who had an answer.
func TestFullLineLeavesFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		p.call(t.Context(), 1, nil)
		p.call(t.Context(), 1, nil) // two commands are under way
		p.call(t.Context(), 20, nil)
		p.a.steps(t)
		p.a.refuse(t)
		if got := p.a.steps(t); got != 10 || p.done.Load() != 1 {
			t.Fatalf("half of the line: got a command of %d steps and %d answers, want 10 and 1", got, p.done.Load())
		}
		p.call(t.Context(), 20, nil)
		p.a.refuse(t)
		if got := p.done.Load(); got != 1 {
			t.Errorf("before a full line has left: got %d answers, want those of the train to wait", got)
		}
		if got := p.a.steps(t); got != 20 {
			t.Errorf("the full line: got a command of %d steps, want 20 of 30", got)
		}
		synctest.Wait()
		if got := p.done.Load(); got != 11 {
			t.Errorf("when it has left: got %d answers, want 11", got)
		}
		p.call(t.Context(), 20, nil)
		p.a.refuse(t)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if got := p.done.Load(); got != 31 {
			t.Errorf("while the server does not read the command of the full line: got %d answers, want 31", got)
		}
		if got := p.a.steps(t); got != 25 {
			t.Errorf("the full line: got a command of %d steps, want 25 of 30", got)
		}
		p.call(t.Context(), 19, nil)
		p.a.refuse(t)
		if got := p.done.Load(); got != 56 {
			t.Errorf("before a shorter line has left: got %d answers, want 56", got)
		}
		if got := p.a.steps(t); got != 12 {
			t.Errorf("the shorter line: got a command of %d steps, want 12 of 24", got)
		}
		p.a.refuse(t)
		p.a.steps(t)
		p.a.refuse(t)
		p.b.steps(t)
		p.b.refuse(t)
		p.callers.Wait()
	})
}

// Two trains share the callers evenly. When one of them has taken all, because no other
// was under way, and is back, its callers leave in two again.
func TestTwoTrainsShareTheLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		p.call(t.Context(), 1, nil)
		p.call(t.Context(), 1, nil) // two commands are under way
		p.call(t.Context(), 40, nil)
		p.a.steps(t)
		p.a.refuse(t)
		if got := p.a.steps(t); got != 20 {
			t.Errorf("the first train: got %d steps, want 20", got)
		}
		p.b.steps(t)
		p.b.refuse(t)
		if got := p.b.steps(t); got != 20 {
			t.Errorf("the second train: got %d steps, want 20", got)
		}
		p.b.refuse(t) // b has no other callers: one train is under way
		p.call(t.Context(), 1, nil)
		p.b.steps(t) // alone
		p.call(t.Context(), 30, nil)
		p.b.refuse(t)
		if got := p.b.steps(t); got != 25 {
			t.Errorf("beside a train of 20: got %d steps, want 25 of 30", got)
		}
		p.b.refuse(t)
		if got := p.b.steps(t); got != 5 {
			t.Errorf("the rest: got %d steps, want 5", got)
		}
		p.b.refuse(t)
		p.a.refuse(t)
		p.callers.Wait()
	})
}

// A caller in line whose context is cancelled leaves soon, the others stay.
func TestCancelledCallerLeavesTheLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		var timer wire.Timer
		within := func(ctx context.Context) context.Context {
			ctx, cancel := timer.Within(ctx, time.Minute)
			t.Cleanup(cancel)
			return ctx
		}
		own, cancel := context.WithCancel(t.Context())
		p.call(within(t.Context()), 1, nil)
		p.call(within(t.Context()), 1, nil)
		p.call(within(own), 3, context.Canceled)
		p.call(within(t.Context()), 4, nil)
		time.Sleep(15 * time.Millisecond)
		if got := p.done.Load(); got != 0 {
			t.Errorf("before: got %d callers that have left, want none", got)
		}
		cancel()
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		if got := p.done.Load(); got != 3 {
			t.Errorf("10 ms later: got %d callers that have left, want 3", got)
		}
		p.a.steps(t)
		p.a.refuse(t)
		if got := p.a.steps(t); got != 4 {
			t.Errorf("the line: got a command of %d steps, want 4", got)
		}
		p.a.refuse(t)
		p.b.steps(t)
		p.b.refuse(t)
		p.callers.Wait()
	})
}

// A caller whose time is over when it joins the line leaves, too, also if others with the
// same end have left before.
func TestLateCallerLeavesTheLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		var timer wire.Timer
		long, stop := timer.Within(t.Context(), time.Minute)
		defer stop()
		short, end := timer.Within(context.Background(), 10*time.Millisecond)
		defer end()
		p.call(long, 1, nil)
		p.call(long, 1, nil)
		p.call(short, 1, context.DeadlineExceeded)
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		p.call(short, 1, context.DeadlineExceeded)
		if got := p.done.Load(); got != 2 {
			t.Errorf("got %d callers that have left, want 2", got)
		}
		p.a.steps(t)
		p.a.refuse(t)
		p.b.steps(t)
		p.b.refuse(t)
		p.callers.Wait()
	})
}

// The caller that was woken last runs first. So the one before it runs last of all.
func TestLastTurn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		landed []bool
		want   int
	}{
		{nil, -1},
		{[]bool{false, false}, -1},
		{[]bool{false, true, false}, 1},
		{[]bool{true, true}, 0},
		{[]bool{true, false, true, true, false, true, false}, 3},
	} {
		if got := wire.LastTurn(c.landed...); got != c.want {
			t.Errorf("%v: got %d, want %d", c.landed, got, c.want)
		}
	}
}

// The quickest round trip stays for a second at least and two at most. Longer ones,
// of which there are more when callers wait, do not displace it.
func TestQuickest(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	var q wire.Quickest
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
		q.Learn(step.trip, step.now)
		if got := q.Get(); got != step.want {
			t.Errorf("at %v, after a trip of %v: got %v, want %v", step.now, step.trip, got, step.want)
		}
	}
}

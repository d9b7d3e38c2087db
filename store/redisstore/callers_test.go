package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// owner calls for its own key, which has counted a number by which its answers are
// known.
type owner struct {
	op   store.Op
	last int64 // hits used, by the last answer

	// least is how many hits the key has at least, and most how many it may have: a call
	// that ended with an error may be counted later, up to its deadline.
	least, most int64
}

// call takes a hit of the own key. It returns what is wrong with the answer.
func (o *owner) call(ctx context.Context, s store.Store) error {
	ops := []store.Op{o.op}
	err := store.Do(ctx, s, store.Take, ops)
	var out *store.OutageError
	o.most++
	switch used := ops[0].Result.Used; {
	case err == nil:
		o.least++
		if used < o.least || used > o.most || used <= o.last {
			return fmt.Errorf("key %s: got %d used, want one of %d to %d, above %d", o.op.Key, used, o.least, o.most, o.last)
		}
		o.last = used
	case errors.As(err, &out), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, store.ErrClosed):
	default:
		return err
	}
	return nil
}

// Callers with deadlines of their own, who are cancelled, and whose connections break,
// stand still or lose the scripts meanwhile get their own answers or none. A key that they
// share counts each answered hit once.
func TestAnswersFindTheirCallers(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	p := redistest.Through(t, n)
	s := openURL(t, at(p.Addr()))
	calm := openURL(t, "redis://"+n.Addr()+"?timeout=20s")
	kinds := []window.Window{window.Sliding(time.Hour), window.Fixed(time.Hour), window.Cells(time.Hour, 6), window.Ever()}
	owners := make([]*owner, 200)
	record := make([]store.Call, len(owners))
	for i := range owners {
		w := kinds[i%len(kinds)]
		limit := window.MustCompile(window.Limit{Quota: 1 << 40, Window: w, Measure: window.Sum})
		op := store.Op{Space: store.NewSpace("", w.ID(), "rule", 0), Limit: limit, Key: fmt.Append(nil, i), N: int64(i) * 1_000_000}
		record[i] = store.Call{Verb: store.Record, Ops: []store.Op{op}}
		op.N = 1
		owners[i] = &owner{op: op, least: record[i].Ops[0].N, most: record[i].Ops[0].N}
	}
	if do(t, calm, record) > 0 {
		t.Fatal("got outages of a server without troubles")
	}
	shared := hourly(quota, "shared", "all")
	var answered sync.Map // shared hits, by how many were used
	var hits, met atomic.Int64
	ctx, cancel := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	for i, o := range owners {
		callers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			for ctx.Err() == nil {
				own, done := context.WithTimeout(context.Background(), time.Duration(r.IntN(100))*time.Millisecond)
				if r.IntN(4) == 0 {
					time.AfterFunc(time.Duration(r.IntN(10))*time.Millisecond, done)
				}
				if r.IntN(4) > 0 {
					if err := o.call(own, s); err != nil {
						t.Error(err)
					}
				} else if ops := []store.Op{shared}; store.Do(own, s, store.Take, ops) != nil {
					met.Add(1)
				} else if _, twice := answered.LoadOrStore(ops[0].Result.Used, true); twice {
					t.Errorf("the shared key: two callers got %d used", ops[0].Result.Used)
				} else {
					hits.Add(1)
				}
				done()
				time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
			}
		})
	}
	for range 2 {
		for _, trouble := range []func(){
			func() { p.Tear(0.1) }, p.Reset, p.Hold, func() { killClients(n) },
			func() { p.Delay(20 * time.Millisecond) }, func() { n.Must("SCRIPT", "FLUSH") }, n.Stop,
		} {
			before := hits.Load()
			redistest.Eventually(t, "calls are answered", func() bool { return hits.Load() > before+10 })
			trouble()
			time.Sleep(30 * time.Millisecond)
			n.Continue()
			p.Heal()
		}
	}
	if err := s.Close(); err != nil { // during calls
		t.Error(err)
	}
	cancel()
	callers.Wait()
	for _, o := range owners {
		if got := used(t, calm, o.op); got < o.least || got > o.most {
			t.Errorf("key %s: got %d used, want %d to %d", o.op.Key, got, o.least, o.most)
		}
	}
	if got := used(t, calm, shared); got < hits.Load() || got > hits.Load()+met.Load() {
		t.Errorf("the shared key: got %d used, want the %d answered and at most %d without an answer", got, hits.Load(), met.Load())
	}
}

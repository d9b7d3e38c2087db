package redisstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/conn"
	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/store/remote"
)

// maxSlice is the most calls of a batch that are sent together.
const maxSlice = 128

// Do implements [store.Store]. It sends the calls of a batch in slices of at most 128, one slice after the other. A
// slice is one round trip to each node that has keys of its calls, with a time-out of its own, because a batch can
// have any number of slices. The first slice that ends with its time-out, and has no call that was decided, ends the
// batch: the later ones return outage errors at once. The slices of a namespace have at most a quarter of the calls
// that in_flight of the URL allows, and a new slice takes at most half of what is free of this quarter. So slices get
// smaller when there are many batches, and a server can answer them in time.
//
// Calls that share a key are decided in their order, unless one of them has to be sent again: because its slot has
// moved, the server had lost the script, the call came too late, its calendar periods were not the server's, or a key
// has holds or a ban that its rule does not know any more. After calls with large states the server leaves the others
// for later. They are sent again, each time with another time-out, for [laterTimeout] at most, and by one caller of
// each namespace at a time.
//
// On a cluster the keys of a call can be in several slots. Such a call is not sent
// with the others, and is not atomic: each slot decides its own keys, all slots at
// the same time. If one of them denies a take, the store gives back what the
// others have counted. Until then those hits can make other calls be denied. So a
// cluster never admits too much, and at times too little.
func (s *Store) Do(ctx context.Context, calls []store.Call) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	if len(calls) == 1 {
		c := &calls[0]
		if c.Err = script.Fits(c.Ops); c.Err != nil || len(c.Ops) == 0 {
			return nil
		}
		within, cancel := s.Within(ctx) // returns ctx as it is if the engine has set the end
		defer cancel()
		var err error
		call := s.callOf(c)
		if slot, one := s.slot(c.Ops); one {
			_, err = s.servers.Run(within, slot, call)
		} else {
			err = s.spread(within, call)
		}
		c.Err = s.failed(ctx, err)
		return nil
	}
	b := batchOfCalls{Store: s, ended: func() {}, sliced: s.slicedOf(calls)}
	defer func() { b.ended() }()
	for len(calls) > 0 {
		n := b.nextSlice(len(calls))
		for _, wave := range s.waves(calls[:n]) {
			ctx = b.together(ctx, wave)
		}
		b.sliced.Add(-int64(n))
		calls = calls[n:]
	}
	return nil
}

// callOf returns c as a program decides it.
func (s *Store) callOf(c *store.Call) script.Call {
	call := script.Call{Verb: c.Verb, Ops: c.Ops, Once: c.Once}
	if s.clock != nil {
		call.Now = s.clock()
	}
	if call.Once != nil && s.servers.Sharded() {
		call.Beside = &call.Ops[0]
	}
	return call
}

// slicedOf returns the number of calls in slices that are under way, of the namespace that has the first op of calls.
func (s *Store) slicedOf(calls []store.Call) *atomic.Int64 {
	namespace := ""
	if len(calls) > 0 && len(calls[0].Ops) > 0 {
		namespace = calls[0].Ops[0].Space.Namespace()
	}
	sliced, known := s.sliced.Load(namespace)
	if !known {
		sliced, _ = s.sliced.LoadOrStore(namespace, new(atomic.Int64))
	}
	return sliced.(*atomic.Int64)
}

// laterTimeout is the time that one Do has for what servers left for later, waiting for others included. A slice then
// has up to maxSlice round trips.
const laterTimeout = 2 * time.Second

// batchOfCalls is the memory of one Do with several calls.
type batchOfCalls struct {
	*Store
	sent  []conn.Pending
	of    []*store.Call   // of each of them
	later context.Context // ends after laterTimeout; nil: nothing was left for later
	ended context.CancelFunc

	sliced *atomic.Int64 // calls in slices of the namespace
}

// nextSlice returns how many calls the next slice may have, of most that are left,
// and counts them in b.sliced.
func (b *batchOfCalls) nextSlice(most int) int {
	inFlight := int64(cmp.Or(b.config.rest.InFlight, defaultInFlight))
	for {
		sliced := b.sliced.Load()
		n := min(max((inFlight/4-sliced)/2, 1), maxSlice, int64(most))
		if b.sliced.CompareAndSwap(sliced, sliced+n) {
			return int(n)
		}
	}
}

// together decides calls at the same time: those with all keys in one slot in as
// few round trips as possible, in their order, and each of the others by itself.
// When the time-out is over and no call was decided, it returns a context that has
// ended: the calls after them are not sent.
func (b *batchOfCalls) together(ctx context.Context, calls []*store.Call) context.Context {
	if err := b.ready(ctx); err != nil { // since the calls before
		for _, c := range calls {
			c.Err = err
		}
		return ctx
	}
	within, cancel := b.Within(ctx)
	defer func() { cancel() }()
	b.sent, b.of = b.sent[:0], b.of[:0]
	var spread sync.WaitGroup
	for _, c := range calls {
		if c.Err = script.Fits(c.Ops); c.Err != nil || len(c.Ops) == 0 {
			continue
		}
		call := b.callOf(c)
		if slot, one := b.slot(c.Ops); one {
			b.sent, b.of = append(b.sent, conn.Pending{Call: call, Slot: slot}), append(b.of, c)
		} else {
			spread.Go(func() { c.Err = b.failed(ctx, b.spread(within, call)) })
		}
	}
	b.run(ctx, within)
	spread.Wait()
	for len(b.sent) > 0 {
		if b.later == nil {
			b.later, b.ended = context.WithTimeout(ctx, laterTimeout)
		}
		waiting := int64(len(b.sent)) // others may have larger slices meanwhile
		b.sliced.Add(-waiting)
		end, err := remote.Turn(b.later, &b.turns, "later of "+b.of[0].Ops[0].Space.Namespace()) // mostly that of all
		b.sliced.Add(waiting)
		if err != nil {
			for _, c := range b.of {
				c.Err = b.failed(ctx, remote.ErrBusy)
			}
			break
		}
		cancel()
		within, cancel = b.Within(ctx)
		b.run(ctx, within)
		end()
	}
	if remote.TimedOut(within) && !slices.ContainsFunc(calls, func(c *store.Call) bool { return c.Err == nil }) {
		return within
	}
	return ctx
}

// run decides the calls of b.sent, and leaves those in it that a server left for later.
func (b *batchOfCalls) run(ctx, within context.Context) {
	b.servers.RunAll(within, b.sent)
	later := 0
	for i, c := range b.of {
		if errors.Is(b.sent[i].Err, script.ErrLater) {
			b.sent[later], b.of[later] = b.sent[i], c
			later++
		} else {
			c.Err = b.failed(ctx, b.sent[i].Err)
		}
	}
	b.sent, b.of = b.sent[:later], b.of[:later]
}

// waves returns calls in groups that can be decided together, one group after
// the other. A call with keys in several slots is in a later group than the calls
// before it that share a key with it, and in an earlier one than those after it.
func (s *Store) waves(calls []store.Call) [][]*store.Call {
	type last struct {
		wave   int
		spread bool
	}
	if !s.servers.Sharded() {
		all := make([]*store.Call, len(calls))
		for i := range calls {
			all[i] = &calls[i]
		}
		return [][]*store.Call{all}
	}
	lasts := make(map[string]last, len(calls))
	var waves [][]*store.Call
	var key []byte
	for i := range calls {
		c := &calls[i]
		_, one := s.slot(c.Ops)
		wave := 0
		for i := range c.Ops {
			key = s.codec.Names().Append(key[:0], &c.Ops[i])
			if before, ok := lasts[string(key)]; ok && (before.spread || !one) {
				wave = max(wave, before.wave+1)
			} else if ok {
				wave = max(wave, before.wave)
			}
		}
		for i := range c.Ops {
			key = s.codec.Names().Append(key[:0], &c.Ops[i])
			lasts[string(key)] = last{wave, !one}
		}
		for len(waves) <= wave {
			waves = append(waves, nil)
		}
		waves[wave] = append(waves[wave], c)
	}
	return waves
}

package memstore

import (
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore/internal/table"
	"github.com/weirhq/weir/window"
)

// A hot key is one that takes most of the calls to its part of a shard. While its
// window is exactly full, the answer to a take of one hit stays the same but for the
// waits. The hot key has that answer, and calls get it without the shard's lock.
// Whoever changes the state drops the answer first.
//
// A hot key is made for one key under one limit, and is never used for another: a
// goroutine that still holds it after it was replaced finds that it has no answer.
type hot struct {
	key   table.Hash
	limit *window.Limit
	most  int64 // its capacity

	// used is set by takes, and cleared when another key asks for the slot.
	used atomic.Bool

	// seq is odd while there is no answer, and changes whenever there is
	// another one. It is changed under the lock of the shard, and so are the
	// others, while it is odd: the instants from which on the answer holds, at which
	// the hit fits and at which the key expires.
	seq               atomic.Uint64
	from, fits, reset atomic.Int64

	// It takes 64 bytes, so that two hot keys never share a cache line.
}

// hotKeys are the hot keys of a shard: at most one for each value of some bits of
// the hash. They take 776 bytes, so only a shard with a key that is called often
// gets them.
type hotKeys struct {
	// hot are set under the lock of the shard. Takes without a lock read them, so the
	// votes, which calls that lock the shard write, are on other cache lines.
	hot   [hotSlots]atomic.Pointer[hot]
	votes [hotSlots]votes // guarded by the lock of the shard

	// needed is how many more calls for one key than for others make it hot.
	needed int
}

const (
	hotSlots     = 32
	promoteVotes = 16

	// leastDenial is the shortest wait that is worth keeping.
	leastDenial = 20 * time.Microsecond
)

// votes is the key for which most calls to a slot come that are not decided there:
// candidate, when n is not 0. This is the majority vote of Boyer and Moore.
type votes struct {
	candidate table.Hash
	n         int
}

// hotSlotOf returns the slot for h. It uses other bits of h than the choice of the
// shard and the slot in its table, and than that of the segment unless there are a
// million.
func hotSlotOf(h table.Hash) int { return int((h >> 32) % hotSlots) }

// hotKey returns the hot key for h, or nil.
func (sh *shard) hotKey(h table.Hash) *hot {
	if keys := sh.hot.Load(); keys != nil {
		if e := keys.hot[hotSlotOf(h)].Load(); e != nil && e.key == h {
			return e
		}
	}
	return nil
}

// takeHot decides a take or a check of one hit of the hot key e, which read the clock as m,
// without a lock, if e has the answer. It reports whether it did.
func (s *Store) takeHot(e *hot, p *opSlot, op *store.Op, m moment) bool {
	if e.limit != op.Limit.Limit || !p.isSingleHit(op) {
		return false
	}
	if !e.used.Load() {
		e.used.Store(true)
	}
	p.read = s.clock.floored(m)
	if !e.denied(p.read.of(p.keyspace.onWall), &op.Result) {
		return false
	}
	if p.read.steady-window.Instant(p.shard.lastSweep.Load()) >= sweepAfter {
		s.sweepHot(p)
	}
	return true
}

// isSingleHit reports whether op takes one hit and is neither about holds nor counted where
// it is denied.
func (p *opSlot) isSingleHit(op *store.Op) bool {
	return p.hits.N == 1 && op.Hold == nil && op.Role <= store.Shadow && !op.CountDenied
}

// denied answers an op at the instant at from the last denial, if that holds then.
func (e *hot) denied(at window.Instant, r *window.Result) bool {
	seq := e.seq.Load()
	if seq&1 != 0 {
		return false
	}
	from, fits, reset := window.Instant(e.from.Load()), window.Instant(e.fits.Load()), window.Instant(e.reset.Load())
	if at < from || at >= fits || e.seq.Load() != seq {
		return false
	}
	*r = window.Result{Quota: e.most, Used: e.most, Before: e.most, RetryAfter: fits.Sub(at), ResetAfter: reset.Sub(at)}
	return true
}

// sweepHot sweeps after a call that a hot key has answered, unless the shard is locked.
func (s *Store) sweepHot(p *opSlot) {
	st := p.shard.stripe
	if !st.mu.TryLock() {
		return
	}
	p.read = s.clock.read()
	due := p.shard.mayBeDue(p.read.steady) && p.sweepIfDue(s)
	st.mu.Unlock()
	if due {
		s.sweepNext()
	}
}

// drop drops the answer of e, if it has one.
func (e *hot) drop() {
	if e.seq.Load()&1 == 0 {
		e.seq.Add(1)
	}
}

// dropAnswer drops the answer that the hot key of h has, if any, before the state of h
// changes.
func (sh *shard) dropAnswer(h table.Hash) {
	if e := sh.hotKey(h); e != nil {
		e.drop()
	}
}

// sampleHot gives the shard of p, which is locked and got [sweepEvery] calls in less than
// [sweepAfter], its hot keys if the last sample was of the same key. Only a key that has many of
// the calls is sampled twice in a row.
func (p *opSlot) sampleHot() {
	sh := p.shard
	if sh.hot.Load() != nil {
		return
	}
	if sh.sampled == p.key {
		sh.hot.Store(&hotKeys{needed: promoteVotes})
	}
	sh.sampled = p.key
}

// promote records the denial of a take of one op, under the lock. If the answer stays, it makes
// the key hot when it is time to, and gives the answer to a hot key.
func (p *opSlot) promote(op *store.Op) {
	keys, r := p.shard.hot.Load(), &op.Result
	if keys == nil || r.RetryAfter < leastDenial || !p.isSingleHit(op) || !stays(op.Limit.Limit, r) {
		return
	}
	slot := &keys.hot[hotSlotOf(p.key)]
	e := slot.Load()
	if e == nil || e.key != p.key || e.limit != op.Limit.Limit {
		if !keys.votes[hotSlotOf(p.key)].vote(p.key, keys.needed) {
			return
		}
		if e != nil {
			if e.key != p.key && e.used.Swap(false) {
				return
			}
			e.drop()
		}
		e = &hot{key: p.key, limit: op.Limit.Limit, most: op.Limit.Capacity()}
		e.seq.Store(1)
		slot.Store(e)
	}
	e.drop()
	e.from.Store(int64(p.now))
	e.fits.Store(int64(p.now.Add(r.RetryAfter)))
	e.reset.Store(int64(p.now.Add(r.ResetAfter)))
	e.seq.Add(1)
}

// stays reports whether r, the denial of one hit, stays the same until the hit fits, but for
// the waits, which grow shorter. It does when the window is exactly full and hits alone
// decide: as soon as something leaves, the hit fits. Members, the number of holds and bans
// decide, too.
func stays(l *window.Limit, r *window.Result) bool {
	return r.Used == r.Quota && r.ResetAfter > 0 && l.Measure != window.Distinct && l.HoldLength() == 0 && l.Ban.For == 0
}

// vote votes for h, and reports whether it is elected.
func (v *votes) vote(h table.Hash, needed int) bool {
	switch {
	case v.n == 0:
		v.candidate, v.n = h, 1
	case v.candidate == h:
		v.n++
	default:
		v.n--
	}
	if v.n < needed {
		return false
	}
	v.n = 0
	return true
}

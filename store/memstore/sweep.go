package memstore

import (
	"time"

	"github.com/weirhq/weir/store/memstore/internal/table"
	"github.com/weirhq/weir/window"
)

const (
	// Each sweepEvery-th call to a stripe, and the first one to a shard in each sweepAfter,
	// sweeps in its shard and in another one. So light traffic reclaims keys as fast
	// as heavy traffic where many have expired.
	sweepEvery = 64
	sweepAfter = window.Instant(time.Millisecond / time.Microsecond)

	// aFew is how many slots such a call looks at, and manySlots how many where
	// many of them have expired. While ten million keys expire, 9,999 of 10,000
	// calls take less than 40 microseconds; see benchmarks/RESULTS.md.
	aFew      = 32
	manySlots = 1024

	// atOnce is how many slots [Store.Sweep] looks at under one lock.
	atOnce = 512
)

// Sweep looks at no more than n slots, in all spaces in turn, and reclaims the
// expired keys among them. It returns the number of keys that it reclaimed. It
// goes on where the last sweep stopped, and ends after one cycle. Calls reclaim
// keys, too; Sweep is for a store that gets few calls. It locks one shard at a
// time, for at most a thousand slots.
func (s *Store) Sweep(n int) (reclaimed int) {
	m := s.clock.read()
	defer s.forgetDropped()
	for steps := s.keyspaces.cycle(); n > 0 && steps > 0; steps-- {
		ks, sh := s.keyspaces.next(m.steady)
		if sh == nil {
			continue
		}
		e := s.clock.expiry(m, ks)
		passed, entries := 0, 1
		for n > 0 && passed <= entries {
			sh.stripe.mu.Lock()
			w := ks.sweep(sh, table.Budget{N: min(n, atOnce), Most: min(n, atOnce)}, e)
			passed, entries = passed+w.Passed, sh.table.Entries()
			sh.account(&s.memory)
			sh.stripe.mu.Unlock()
			n -= w.Looked
			reclaimed += w.Reclaimed
			if w.Looked == 0 { // the shard is empty
				break
			}
		}
	}
	return reclaimed
}

// sweep sweeps sh, which is locked.
func (ks *keyspace) sweep(sh *shard, b table.Budget, e expiry) table.Walk {
	w := sh.table.Sweep(b, e.Expiry)
	if sh.names != nil {
		sh.names.Sweep(b, sh.named(e.Expiry))
	}
	ks.countReclaimed(w.Reclaimed, e)
	return w
}

// countReclaimed counts n keys that were reclaimed in a shard, which is locked.
func (ks *keyspace) countReclaimed(n int, e expiry) {
	if n > 0 {
		e.raise()
		ks.keys.Add(int64(-n))
	}
}

// mayBeDue reports whether it may be time to sweep sh. It is inlined, and saves most calls of sweepIfDue.
func (sh *shard) mayBeDue(now window.Instant) bool {
	return sh.stripe.calls%sweepEvery == 0 || now-window.Instant(sh.lastSweep.Load()) >= sweepAfter
}

// sweepIfDue sweeps the shard of a call when it is time to, and reports whether it is
// time to sweep somewhere else too. It is called if mayBeDue reports true.
func (p *opSlot) sweepIfDue(s *Store) (due bool) {
	sh := p.shard
	// On a clock that the caller gives, each call of a replay may come seconds after the
	// one before it. To sweep at each of them took 8 % of a replay.
	soon := s.clock.custom || p.read.steady-window.Instant(sh.lastSweep.Load()) < sweepAfter
	if sh.stripe.calls%sweepEvery != 0 && soon {
		return false
	}
	if soon && !s.clock.custom {
		p.sampleHot()
	}
	sh.lastSweep.Store(int64(p.read.steady))
	p.keyspace.sweep(sh, table.Budget{N: aFew, Most: manySlots}, s.clock.expiry(p.read, p.keyspace))
	sh.account(&s.memory)
	return true
}

// sweepNext sweeps the shard whose turn it is, unless that is locked.
func (s *Store) sweepNext() {
	m := s.clock.read()
	ks, sh := s.keyspaces.next(m.steady)
	s.forgetDropped()
	if sh == nil || !sh.stripe.mu.TryLock() {
		return
	}
	defer sh.stripe.mu.Unlock()
	ks.sweep(sh, table.Budget{N: aFew, Most: manySlots}, s.clock.expiry(m, ks))
	sh.account(&s.memory)
}

// reclaim looks for expired keys in a full keyspace: in the segment of p, whose
// shard is locked, and at a few slots elsewhere. It reports whether it found
// any. others are as in reserve.
func (p *opSlot) reclaim(e expiry, others numbers) bool {
	n := p.shard.table.Reclaim(p.at, p.key, e.Expiry)
	p.keyspace.countReclaimed(n, e)
	return n+p.keyspace.sweepAround(2*aFew, e, others) > 0
}

// sweepAround sweeps the shards of ks that are not locked, and those that the caller has
// locked and not found a key in, in turn, n slots in all.
func (ks *keyspace) sweepAround(n int, e expiry, locked numbers) (reclaimed int) {
	for range ks.shards {
		number := int(ks.nextSweep.Add(1)) & (len(ks.shards) - 1)
		sh, held := ks.shards[number].Load(), locked.has(number)
		if sh == nil || !held && !sh.stripe.mu.TryLock() {
			continue
		}
		w := ks.sweep(sh, table.Budget{N: n, Most: n}, e)
		if !held {
			sh.stripe.mu.Unlock()
		}
		reclaimed += w.Reclaimed
		if n -= w.Looked; n <= 0 {
			break
		}
	}
	return reclaimed
}

package memstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/weirhq/weir/internal/transition"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore/internal/table"
)

// stackOps is the most ops of a call whose slots are on the stack.
const stackOps = 4

// Do implements [store.Store].
func (s *Store) Do(ctx context.Context, calls []store.Call) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	for i := range calls {
		c := &calls[i]
		if (c.Once != nil || c.Verb == store.Reserve) && len(c.Ops) > 0 {
			c.Err = s.decideCopies(ctx, c)
		} else {
			c.Err = s.Decide(ctx, c.Verb, c.Ops)
		}
	}
	return nil
}

// Decide decides ops as [Store.Do] does for one call, which is no reserve. The error is the one that Do would
// return or would set as the call's Err. Decide does not retain what ops point to, so that
// they and their keys can be on the caller's stack. With one op it takes the steps of
// decideMany without their loops.
func (s *Store) Decide(ctx context.Context, v store.Verb, ops []store.Op) error {
	if err := s.ready(ctx); err != nil || len(ops) == 0 {
		return err
	}
	if len(ops) > 1 {
		return s.decideMany(v, ops)
	}
	var slots [1]opSlot
	p, op := &slots[0], &ops[0]
	for {
		ks := s.keyspaces.findOrMake(op.Space, op.Limit)
		if ks == nil {
			return store.ErrClosed
		}
		m := s.clock.now(ks.onWall)
		p.key, p.hits = s.hash(op.Key), s.hitsOf(op)
		p.keyspace, p.shard = ks, ks.shard(s.numberOf(p.key))
		if e := p.shard.hotKey(p.key); e != nil && v <= store.Take && s.takeHot(e, p, op, m) { // a check or a take
			return nil
		}
		st := p.shard.stripe
		st.lock()
		if err := s.refused(); err != nil {
			st.mu.Unlock()
			return err
		}
		var full []int
		isNew := p.dateAndFind(v, op, s.clock.floored(st.date(&s.clock, m, ks.onWall)))
		if adds(v) && (isNew || s.memory.admits() != admitsAll) {
			full = s.reserveKeys(v, ops, slots[:])
			if p.keyspace.dead.Load() {
				p.release()
				st.mu.Unlock()
				continue
			}
		}
		switch {
		case full != nil:
		case v == store.Take:
			if op.UpTo {
				lower(ops, slots[:])
			}
			if s.takeAlone(p, op); !op.Result.Allowed {
				p.promote(op)
			}
		default:
			s.applyEach(v, ops, slots[:])
		}
		p.release()
		due := p.shard.mayBeDue(p.read.steady) && p.sweepIfDue(s)
		st.mu.Unlock()
		if due {
			s.sweepNext()
		}
		if full != nil {
			return s.outage(slots[:], full)
		}
		return nil
	}
}

// adds reports whether v can add a key that has no counter.
func adds(v store.Verb) bool { return v <= store.Record || v == store.Set || v == store.Reserve }

// decideMany decides several ops in one step. The package comment describes the steps.
func (s *Store) decideMany(v store.Verb, ops []store.Op) error {
	var few [stackOps]opSlot
	slots := few[:min(len(ops), stackOps)]
	if len(ops) > stackOps {
		pooled, ok := s.slots.Get().(*[]opSlot)
		if !ok || cap(*pooled) < len(ops) {
			many := make([]opSlot, len(ops))
			pooled = &many
		}
		slots = (*pooled)[:len(ops)]
		defer func() {
			clear(slots)
			s.slots.Put(pooled)
		}()
	}
	for {
		reserves, err := s.lockAndFind(v, ops, slots)
		if err != nil {
			return err
		}
		var full []int
		if reserves && adds(v) {
			full = s.reserveKeys(v, ops, slots)
			if dead(slots) {
				release(slots)
				unlockAll(slots)
				continue
			}
		}
		switch {
		case full != nil:
		case v == store.Take:
			s.take(ops, slots)
		default:
			s.applyEach(v, ops, slots)
		}
		if s.sweepAndUnlock(slots) {
			s.sweepNext()
		}
		if full != nil {
			return s.outage(slots, full)
		}
		return nil
	}
}

// lockAndFind locks the stripes of ops, and finds their keys. It reports whether keys may have to be reserved.
// After an error nothing is locked.
func (s *Store) lockAndFind(v store.Verb, ops []store.Op, slots []opSlot) (reserves bool, err error) {
	onWall := false
	for i := range slots {
		p, op := &slots[i], &ops[i]
		ks := s.keyspaces.findOrMake(op.Space, op.Limit)
		if ks == nil {
			return false, store.ErrClosed
		}
		if i > 0 && isSame(op.Key, ops[i-1].Key) {
			p.key = slots[i-1].key
		} else {
			p.key = s.hash(op.Key)
		}
		p.index, p.hits = i, s.hitsOf(op)
		p.keyspace, p.shard = ks, ks.shard(s.numberOf(p.key))
		onWall = onWall || ks.onWall
	}
	if sortByShard(slots) && markShared(slots) {
		return false, store.ErrRepeated
	}
	m := s.clock.now(onWall)
	if latest := s.lockAll(slots); m.steady < latest {
		// A later call was decided in one of the stripes.
		m = s.clock.again(m, onWall)
	}
	if err := s.refused(); err != nil {
		unlockAll(slots)
		return false, err
	}
	read, reserves := s.clock.floored(m), s.memory.admits() != admitsAll
	for i := range slots {
		p := &slots[i]
		p.shard.stripe.latest = m.steady
		if p.dateAndFind(v, &ops[p.index], read) || p.shared {
			reserves = true
		}
	}
	return reserves, nil
}

// isSame reports whether two slices are the same memory. The ops of several rules
// often share their key, which then is hashed once.
func isSame(a, b []byte) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

// sortByShard puts slots into the order of their keyspaces and, in one, of their hashes, so
// that those that share a shard are neighbours. It reports whether some may share one.
// Few slots are most often in order already, because keyspaces are made in the order of
// the rules.
func sortByShard(slots []opSlot) (shared bool) {
	for i := 1; i < len(slots); i++ {
		if slots[i-1].keyspace.number >= slots[i].keyspace.number {
			sortSlots(slots)
			return true
		}
	}
	return false
}

// sortKey is what slots are sorted by, and where one comes from. An opSlot takes longer
// to move, so each is moved once.
type sortKey struct {
	keyspace uint64 // its number
	key      table.Hash
	from     int
}

func (a sortKey) compare(b sortKey) int {
	return cmp.Or(cmp.Compare(a.keyspace, b.keyspace), cmp.Compare(a.key, b.key))
}

// sortSlots sorts slots.
func sortSlots(slots []opSlot) {
	var room [16]sortKey
	keys := room[:0]
	for i := range slots {
		p := &slots[i]
		keys = append(keys, sortKey{p.keyspace.number, p.key, i})
	}
	slices.SortFunc(keys, sortKey.compare)
	for i := range keys {
		if keys[i].from == i {
			continue
		}
		first, at := slots[i], i // of a circle of slots, each of which goes where the next one was
		for keys[at].from != i {
			from := keys[at].from
			slots[at], keys[at].from = slots[from], at
			at = from
		}
		slots[at], keys[at].from = first, at
	}
}

// markShared marks the ordered slots that share a shard, and reports whether two of them
// are the same.
func markShared(slots []opSlot) (repeated bool) {
	for i := 1; i < len(slots); i++ {
		if p, q := &slots[i-1], &slots[i]; p.shard == q.shard {
			p.shared, q.shared = true, true
			repeated = repeated || p.key == q.key
		}
	}
	return repeated
}

// dead reports whether a keyspace was dropped before its slots were locked.
func dead(slots []opSlot) bool {
	for i := range slots {
		if slots[i].keyspace.dead.Load() {
			return true
		}
	}
	return false
}

// reserveKeys reserves a key for each op that may add one. It returns the indexes of those
// that the store is too full for; nil if there are none.
func (s *Store) reserveKeys(v store.Verb, ops []store.Op, slots []opSlot) (full []int) {
	do := transition.Take
	switch v {
	case store.Record:
		do = transition.Record
	case store.Reserve:
		do = transition.Reserve
	}
	locked := s.numbersOf(slots)
	var others numbers // of locked, in which the call has no op for the keyspace
	for i := range slots {
		p := &slots[i]
		if i == 0 || p.keyspace != slots[i-1].keyspace {
			others = locked
			for j := i; j < len(slots) && slots[j].keyspace == p.keyspace; j++ {
				others.remove(s.numberOf(slots[j].key))
			}
		}
		p.findAgain()
		if !p.reserve(s, do, &ops[p.index], others) {
			full = append(full, p.index)
		}
	}
	if full != nil {
		release(slots)
	}
	return full
}

// release gives back what was reserved and not used.
func release(slots []opSlot) {
	for i := range slots {
		slots[i].release()
	}
}

// sweepAndUnlock ends a call: it gives back what was reserved and not used, sweeps the shards
// when it is time to, and unlocks them. It reports whether it is time to sweep somewhere
// else too.
func (s *Store) sweepAndUnlock(slots []opSlot) (due bool) {
	for i := len(slots) - 1; i >= 0; i-- { // the first slot of each stripe has locked it
		p := &slots[i]
		p.release()
		if p.shard.mayBeDue(p.read.steady) && (i == 0 || p.shard != slots[i-1].shard) && p.sweepIfDue(s) {
			due = true
		}
		if p.locks {
			p.locks = false
			p.shard.stripe.mu.Unlock()
		}
	}
	return due
}

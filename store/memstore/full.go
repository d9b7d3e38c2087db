package memstore

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// errKeys is the cause when a space has as many keys as it may, and errMemory when all spaces take as much memory as
// they may.
var (
	errKeys   = fmt.Errorf("max_keys reached: %w", store.ErrFull)
	errMemory = fmt.Errorf("memory limit reached: %w", store.ErrFull)
)

// outage returns the error of a call for whose ops with the numbers in full there
// is no space left. The shards of the slots are unlocked.
func (s *Store) outage(slots []opSlot, full []int) *store.OutageError {
	slices.Sort(full)
	out := &store.OutageError{Ops: full, Reason: "full", Err: errKeys, Uncounted: true}
	if slices.ContainsFunc(slots, func(p opSlot) bool { return slices.Contains(full, p.index) && !s.memory.admitsNew(p.keyspace.chosen) }) {
		out.Err = errMemory
		for _, ks := range s.keyspaces.all() {
			out.RetryAfter = sooner(out.RetryAfter, s.untilFree(ks))
		}
		return out
	}
	for i := range slots {
		if p := &slots[i]; slices.Contains(full, p.index) {
			out.RetryAfter = max(out.RetryAfter, s.untilFree(p.keyspace))
		}
	}
	return out
}

// sooner returns the shorter one of two waits, of which 0 is not known.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// lookEvery is how long the earliest expiry of a full keyspace is kept: finding it
// locks every shard once.
const lookEvery = window.Instant(100 * time.Millisecond / time.Microsecond)

// untilFree returns the time until the first key of ks may expire, at least a
// microsecond; 0 if no key does.
func (s *Store) untilFree(ks *keyspace) time.Duration {
	now := s.clock.read()
	if looked := window.Instant(ks.looked.Load()); now.steady < looked || now.steady-looked >= lookEvery || looked == 0 {
		ks.looked.Store(int64(now.steady))
		earliest := int64(0)
		for i := range ks.shards {
			sh := ks.shards[i].Load()
			if sh == nil {
				continue
			}
			sh.stripe.mu.Lock()
			at, ok := sh.table.Earliest()
			sh.stripe.mu.Unlock()
			if ok && (earliest == 0 || at < earliest) {
				earliest = at
			}
		}
		ks.earliest.Store(earliest)
	}
	earliest := window.Instant(ks.earliest.Load())
	if earliest == 0 {
		return 0
	}
	return max(earliest.Sub(now.of(ks.onWall)), time.Microsecond)
}

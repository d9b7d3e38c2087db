package memstore

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// table holds the keys of one space, shared among shards by hash. Shards are
// made when they are first needed.
type table struct {
	space  store.Space // a copy: spaces come and go with rule sets
	onWall bool        // the space's limits need the time of day
	number uint64      // tables are locked in the order of their numbers
	shards []atomic.Pointer[shard]

	// limit is a copy of one that the space's keys are under. Any will do to
	// tell when states expire.
	limit atomic.Pointer[window.Compiled]

	keys atomic.Int64  // those in shards, and those that calls have reserved
	full atomic.Int64  // ops that were refused for want of room
	turn atomic.Uint32 // the shard that a full table sweeps next

	// A table that stays empty and unused is dropped; calls that meet a dead
	// one look their space up again.
	used atomic.Bool
	dead atomic.Bool

	// Guarded by tables.mu.
	idleSince window.Instant
	hand      int // the shard to sweep next
}

// shard is the shard number i, made if need be.
func (t *table) shard(i int) *shard {
	if sh := t.shards[i].Load(); sh != nil {
		return sh
	}
	t.shards[i].CompareAndSwap(nil, new(shard))
	return t.shards[i].Load()
}

// reserve counts one key more, unless there are most already.
func (t *table) reserve(most int64) bool {
	if t.keys.Add(1) > most {
		t.keys.Add(-1)
		return false
	}
	return true
}

// tables finds the table of a space.
type tables struct {
	index index

	mu     sync.Mutex
	closed bool     // guarded by mu
	order  []*table // guarded by mu; those in the index that are not dead
	hand   int      // guarded by mu; the table to sweep next
	made   uint64   // guarded by mu; tables ever made
}

// of is the table of space, or nil when the store is closed. The space's keys
// are under limits of l's kind.
func (ts *tables) of(space *store.Space, l *window.Compiled, shards int) *table {
	t := ts.index.of(space)
	if t == nil || t.dead.Load() {
		if t = ts.lookup(space, l, shards); t == nil {
			return nil
		}
	}
	if !t.used.Load() {
		t.used.Store(true)
	}
	return t
}

func (ts *tables) lookup(space *store.Space, l *window.Compiled, shards int) *table {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.closed {
		return nil
	}
	t := ts.index.of(space)
	if t == nil || t.dead.Load() {
		ts.made++
		t = &table{
			space: *space, number: ts.made,
			onWall: l.OnCalendar(), shards: make([]atomic.Pointer[shard], shards),
		}
		ts.order = append(ts.order, t)
		ts.index.put(t, ts.order)
	}
	if known := t.limit.Load(); known == nil || known.Limit() != l.Limit() {
		limit := *l
		t.limit.Store(&limit)
	}
	return t
}

// existing returns the table of space, or nil.
func (ts *tables) existing(space *store.Space) *table {
	if t := ts.index.of(space); t != nil && !t.dead.Load() {
		return t
	}
	return nil
}

// round is how many calls of next come round to the same shard, at most.
func (ts *tables) round() (n int) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, t := range ts.order {
		n += len(t.shards) + 1
	}
	return n
}

// next is the table and the shard to sweep next; the shard is nil where there
// is none. A table that is not needed any more is dropped instead.
func (ts *tables) next(now window.Instant) (*table, *shard) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.hand >= len(ts.order) {
		ts.hand = 0
	}
	if len(ts.order) == 0 {
		return nil, nil
	}
	t := ts.order[ts.hand]
	if t.hand == 0 && ts.idle(t, now) && ts.drop(ts.hand) {
		return nil, nil
	}
	for t.hand < len(t.shards) {
		sh := t.shards[t.hand].Load()
		if t.hand++; sh != nil {
			return t, sh
		}
	}
	t.hand = 0
	ts.hand++
	return t, nil
}

// idle says whether t has been empty and unused for idleTime.
func (ts *tables) idle(t *table, now window.Instant) bool {
	if t.keys.Load() > 0 || t.used.Load() {
		t.used.Store(false)
		t.idleSince = now
		return false
	}
	return now.Sub(t.idleSince) >= idleTime
}

// idleTime is how long a table stays empty and unused before it is dropped.
const idleTime = time.Minute

// drop takes the table order[i] away, unless a call has reserved a key in it by
// now: calls reserve first and then ask whether the table is dead.
func (ts *tables) drop(i int) bool {
	t := ts.order[i]
	t.dead.Store(true)
	if t.keys.Load() > 0 {
		t.dead.Store(false)
		return false
	}
	last := len(ts.order) - 1
	ts.order[i], ts.order[last] = ts.order[last], nil
	ts.order = ts.order[:last]
	return true
}

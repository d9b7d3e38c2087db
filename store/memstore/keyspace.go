package memstore

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/once"
	"github.com/weirhq/weir/internal/stated"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// keyspace holds the keys of one space, shared among shards by hash.
type keyspace struct {
	space  store.Space // a copy, so that old rule sets can be freed
	onWall bool        // the space's limits need the time of day
	number uint64      // keyspaces are locked in the order of their numbers

	records bool // its keys are records of calls; see changeReader
	chosen  bool // callers choose its keys without being over any limit; see memory.admitsNew

	// shards are made when they are first needed, and nil until then and after
	// [Store.Close].
	shards  []atomic.Pointer[shard]
	stripes stripes // one for each shard

	// limit is a copy of one that the space's keys are under, which says when states
	// expire. It is one under which they last longest; see follow.
	limit atomic.Pointer[window.Compiled]

	// A keyspace that stays empty and unused is dropped. Calls set used before
	// they use it. They ask for dead after they have locked their shards and
	// reserved their keys, and look the space up again when it is set.
	used atomic.Bool
	dead atomic.Bool

	// In a store with a journal marked is set after a key was marked as changed.
	journal *marks
	marked  atomic.Bool

	// What calls write has cache lines of its own: every call reads the fields above.
	_ [64]byte

	// keys is the number of keys in the shards, and of those that calls have
	// reserved. Invariant: a call reserves a new key before it adds it, and a
	// key is dropped before it is subtracted, so keys is never less than what
	// the shards hold. Only a call that is about to be refused brings it above
	// the most that the space may have.
	keys      atomic.Int64
	nextSweep atomic.Uint32 // the shard that a full keyspace sweeps next

	// When a key of a full keyspace expires at the earliest, and when that was
	// last looked for; both are instants, or 0.
	earliest, looked atomic.Int64

	idleSince window.Instant // guarded by keyspaces.mu
	hand      int            // guarded by keyspaces.mu; the shard to sweep next

	_ [64]byte
}

// follow prepares ks for keys that are counted under l. Quotas, holds and bans are not
// part of a space's identity: the quota can depend on the key, and rules that are
// loaded later can change all of them.
func (ks *keyspace) follow(l *window.Compiled) {
	if known := ks.limit.Load(); known.Limit != l.Limit && outlasts(l.Limit, known.Limit) {
		ks.keep(l)
	}
}

// keep sets the limit to a copy of l, because ops that could be kept from would have to
// be on the heap.
func (ks *keyspace) keep(l *window.Compiled) {
	limit := *l
	ks.limit.Store(&limit)
}

// outlasts reports whether states may expire later under a than under b, which has the
// same identity but for its quota, its holds, its bans and Export. Bans and strikes may be
// remembered for longer, and a hold that is kept drains more slowly from a bucket with a
// smaller quota.
func outlasts(a, b *window.Limit) bool {
	if a.Export && !b.Export {
		return true
	}
	slower := a.Quota > 0 && (b.Quota == 0 || a.Quota < b.Quota)
	return slower || a.Ban.For > 0 && a.Ban != b.Ban
}

// shard returns the shard number i. It makes it if need be.
func (ks *keyspace) shard(i int) (sh *shard) {
	if sh = ks.shards[i].Load(); sh == nil {
		return ks.makeShard(i)
	}
	return
}

func (ks *keyspace) makeShard(i int) *shard {
	sh := &shard{stripe: ks.stripes.of(i), dirty: ks.journal.dirty(ks)}
	if !ks.shards[i].CompareAndSwap(nil, sh) {
		if made := ks.shards[i].Load(); made != nil {
			return made
		}
	}
	return sh
}

// addKey counts one key more. It reports false when there are most already.
func (ks *keyspace) addKey(most int64) bool {
	if ks.keys.Add(1) > most {
		ks.keys.Add(-1)
		return false
	}
	return true
}

// bytes returns how much memory the keys take.
func (ks *keyspace) bytes() (n int64) {
	for i := range ks.shards {
		if sh := ks.shards[i].Load(); sh != nil {
			sh.stripe.mu.Lock()
			n += sh.bytes()
			sh.stripe.mu.Unlock()
		}
	}
	return n
}

// keyspaces are the keyspaces of a store.
type keyspaces struct {
	index index // of those in order, and of dead ones

	journal *marks // of the store; nil: none
	stripes stripes

	_ [64]byte // every call reads index, and sweeps lock mu

	mu     sync.Mutex
	closed bool        // guarded by mu
	order  []*keyspace // guarded by mu; those that are not dead
	hand   int         // guarded by mu; the keyspace to sweep next

	dropped    []*keyspace // guarded by mu; those whose memory still counts
	anyDropped atomic.Bool // there are some
	made       uint64      // guarded by mu; how many keyspaces were ever made
}

// findOrMake returns the keyspace of space, or nil when the store is closed. It makes
// the keyspace if need be. l is a limit of the space's keys.
func (kss *keyspaces) findOrMake(space *store.Space, l *window.Compiled) *keyspace {
	ks := kss.index.find(space)
	if ks == nil || ks.dead.Load() {
		if ks = kss.findOrMakeSlow(space, l); ks == nil {
			return nil
		}
	}
	if !ks.used.Load() {
		ks.used.Store(true)
	}
	return ks
}

// findOrMakeSlow is findOrMake for a keyspace that the index does not have, or that is dead.
// It takes the lock, and looks again under it.
func (kss *keyspaces) findOrMakeSlow(space *store.Space, l *window.Compiled) *keyspace {
	kss.mu.Lock()
	defer kss.mu.Unlock()
	if kss.closed {
		return nil
	}
	ks := kss.index.find(space)
	if ks == nil || ks.dead.Load() {
		kss.made++
		ks = &keyspace{
			space: *space, number: kss.made,
			onWall: l.OnCalendar(), stripes: kss.stripes, journal: kss.journal, records: space.ID() == once.Space,
			chosen: space.ID() == once.Space || stated.Named(space.Name()),
			shards: make([]atomic.Pointer[shard], len(kss.stripes)),
		}
		ks.keep(l) // before calls can find ks
		kss.order = append(kss.order, ks)
		kss.index.put(ks, kss.order)
	}
	if known := ks.limit.Load(); known == nil || *known.Limit != *l.Limit {
		ks.keep(l)
	}
	return ks
}

// existing returns the keyspace of space, or nil.
func (kss *keyspaces) existing(space *store.Space) *keyspace {
	if ks := kss.index.find(space); ks != nil && !ks.dead.Load() {
		return ks
	}
	return nil
}

// all returns the keyspaces that are not dead.
func (kss *keyspaces) all() []*keyspace {
	kss.mu.Lock()
	defer kss.mu.Unlock()
	return append([]*keyspace(nil), kss.order...)
}

// cycle returns after how many calls at most next has returned every shard.
func (kss *keyspaces) cycle() (n int) {
	kss.mu.Lock()
	defer kss.mu.Unlock()
	for _, ks := range kss.order {
		n += len(ks.shards) + 1
	}
	return n
}

// next returns the shard to sweep next and its keyspace. The shard is nil when
// the hand has come to the end of a keyspace, or has dropped one.
func (kss *keyspaces) next(now window.Instant) (*keyspace, *shard) {
	kss.mu.Lock()
	defer kss.mu.Unlock()
	if kss.hand >= len(kss.order) {
		kss.hand = 0
	}
	if len(kss.order) == 0 {
		return nil, nil
	}
	ks := kss.order[kss.hand]
	if ks.hand == 0 && ks.idle(now) && kss.drop(kss.hand) {
		return nil, nil
	}
	for ks.hand < len(ks.shards) {
		sh := ks.shards[ks.hand].Load()
		if ks.hand++; sh != nil {
			return ks, sh
		}
	}
	ks.hand = 0
	kss.hand++
	return ks, nil
}

// idleTime is how long a keyspace stays empty and unused before it is dropped.
const idleTime = time.Minute

// idle reports whether ks has been empty and unused for idleTime, and the journal knows which
// keys were dropped. It needs keyspaces.mu.
func (ks *keyspace) idle(now window.Instant) bool {
	if ks.keys.Load() > 0 || ks.used.Load() || ks.marked.Load() {
		ks.used.Store(false)
		ks.idleSince = now
		return false
	}
	return now.Sub(ks.idleSince) >= idleTime
}

// drop drops the keyspace order[i], and reports false when a call has reserved
// a key there. Calls reserve first and then ask whether the keyspace is dead;
// drop sets dead first and then asks for keys: at least one of the two notices
// the other. It needs keyspaces.mu.
func (kss *keyspaces) drop(i int) bool {
	ks := kss.order[i]
	ks.dead.Store(true)
	if ks.keys.Load() > 0 {
		ks.dead.Store(false)
		return false
	}
	kss.dropped = append(kss.dropped, ks)
	kss.anyDropped.Store(true)
	last := len(kss.order) - 1
	kss.order[i], kss.order[last] = kss.order[last], nil
	kss.order = kss.order[:last]
	return true
}

// takeDropped returns the keyspaces that were dropped since it was last called.
func (kss *keyspaces) takeDropped() []*keyspace {
	if !kss.anyDropped.Load() {
		return nil
	}
	kss.mu.Lock()
	defer kss.mu.Unlock()
	dropped := kss.dropped
	kss.dropped = nil
	kss.anyDropped.Store(false)
	return dropped
}

// close drops all keyspaces for good.
func (kss *keyspaces) close() {
	kss.mu.Lock()
	defer kss.mu.Unlock()
	for _, ks := range kss.order {
		ks.dead.Store(true)
		for i := range ks.shards { // calls may still hold the keyspace
			ks.shards[i].Store(nil)
		}
	}
	kss.closed, kss.order = true, nil
	kss.index.reset()
}

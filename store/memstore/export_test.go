package memstore

import (
	"fmt"
	"unsafe"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Keyspace is a keyspace, for tests.
type Keyspace = keyspace

// KeyspaceOf returns the keyspace of space in s.
func KeyspaceOf(s *Store, space *store.Space) *Keyspace { return s.keyspaces.existing(space) }

// ShardsOf returns how many shards ks has.
func ShardsOf(ks *Keyspace) (n int) {
	for i := range ks.shards {
		if ks.shards[i].Load() != nil {
			n++
		}
	}
	return n
}

// LockLargeReads makes reads of large states wait until unlock is called.
func LockLargeReads(s *Store) (unlock func()) {
	s.largeRead.Lock()
	return s.largeRead.Unlock
}

// NumberOf returns the number of the stripe of key.
func NumberOf(s *Store, key string) int { return s.numberOf(s.hash([]byte(key))) }

// LocksOf returns how often calls have locked each stripe of s.
func LocksOf(s *Store) (locks []uint64) {
	for i := range s.keyspaces.stripes {
		locks = append(locks, LocksOfOne(s, i))
	}
	return locks
}

// Hold locks the stripe with the given number until release is called.
func Hold(s *Store, number int) (release func()) {
	st := s.keyspaces.stripes.of(number)
	st.mu.Lock()
	return st.mu.Unlock
}

// LocksOfOne returns how often calls have locked the stripe with the given number.
func LocksOfOne(s *Store, number int) uint64 {
	defer Hold(s, number)()
	return s.keyspaces.stripes.of(number).calls
}

// WithMachine replaces the machine's clocks: the steady one, which never goes
// back, and the one on the wall.
func WithMachine(tell func() (steady, wall window.Instant)) Option {
	return func(s *Store) {
		s.clock.source = func() moment {
			steady, wall := tell()
			return moment{steady, wall}
		}
	}
}

// PromoteAll makes every key that is taken hot at once, in the shards that ks has.
func PromoteAll(ks *Keyspace) {
	for i := range ks.shards {
		if sh := ks.shards[i].Load(); sh != nil && sh.hot.Load() == nil {
			sh.hot.Store(&hotKeys{needed: 1})
		}
	}
}

// HotOf returns how many keys of ks are hot and have an answer.
func HotOf(ks *Keyspace) (answers int) {
	for i := range ks.shards {
		sh := ks.shards[i].Load()
		if sh == nil || sh.hot.Load() == nil {
			continue
		}
		keys := sh.hot.Load()
		for j := range keys.hot {
			if e := keys.hot[j].Load(); e != nil && e.seq.Load()&1 == 0 {
				answers++
			}
		}
	}
	return answers
}

// LineFaults returns where what calls write shares cache lines with what other calls
// read or write. It knows the layout of processors of 64 bits.
func LineFaults(ks *Keyspace) (faults []string) {
	const line = 64
	if unsafe.Sizeof(uintptr(0)) != 8 {
		return nil
	}
	want := func(what string, got, want uintptr) {
		if got != want {
			faults = append(faults, fmt.Sprintf("%s: got %d, want %d", what, got, want))
		}
	}
	var st stripe
	want("bytes of a stripe", unsafe.Sizeof(st)%line, 0)
	want("where what only some calls write begins", unsafe.Offsetof(st.scratch), line)
	for i := range ks.stripes {
		want("where a stripe is in its line", uintptr(unsafe.Pointer(ks.stripes.of(i)))%line, 0)
	}
	var sh shard
	want("bytes of a shard", unsafe.Sizeof(sh)%line, 0)
	want("where what calls seldom write ends", unsafe.Offsetof(sh.table)+32, line)
	want("bytes of a hot key", unsafe.Sizeof(hot{})%line, 0)
	var keys hotKeys
	want("bytes of the hot keys before the votes", unsafe.Offsetof(keys.votes)%line, 0)
	for i := range ks.shards {
		if sh := ks.shards[i].Load(); sh != nil {
			want("where a shard is in its line", uintptr(unsafe.Pointer(sh))%line, 0)
		}
	}
	if d := unsafe.Offsetof(ks.keys) - unsafe.Offsetof(ks.marked); d <= line {
		faults = append(faults, fmt.Sprintf("the number of keys is %d bytes behind what calls read", d))
	}
	return faults
}

// Tally is what [Store.Tally] returns.
type Tally struct{ Holds, Banned int64 }

// TallyOf returns the tally of space.
func TallyOf(s *Store, space *store.Space) (t Tally) {
	t.Holds, t.Banned = s.Tally(space)
	return t
}

// KeysOf returns the number of keys of space.
func KeysOf(s *Store, space *store.Space) (n int64) {
	for _, st := range s.Stats(space) {
		n += st.Keys
	}
	return n
}

// BytesOf returns the memory that all keys take.
func BytesOf(s *Store) int64 {
	bytes, _, _ := s.Totals()
	return bytes
}

// FullOf returns the number of ops that were refused because the store was full.
func FullOf(s *Store) int64 {
	_, _, full := s.Totals()
	return full
}

// ErrMemory is the cause when the memory that the store may take is the reason.
var ErrMemory = errMemory

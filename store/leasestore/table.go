package leasestore

import (
	"bytes"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/weirhq/weir/internal/lease"
	"github.com/weirhq/weir/store"
)

const (
	// bucketsOf and slotsOf bound the number of leased keys to their product. A key whose bucket is full
	// is not leased.
	buckets = 512
	slots   = 8

	// counters is how many hits of keys that are not leased are told apart. Keys that share a counter look
	// hotter than they are.
	counters = 4096

	// hot is how many takes in the length of a lease make a key hot.
	hot = 8
)

// seed is the random seed of this process's hashes. It is never changed.
var seed = maphash.MakeSeed()

// table has the leased keys. Finding one takes no lock.
type table struct {
	buckets [buckets][slots]atomic.Pointer[entry]

	mu sync.Mutex // of whoever adds or removes an entry

	// takes has for some hashes a number of takes, in the low 8 bits, and the time slice in which they were.
	takes [counters]atomic.Uint64
}

func hashOf(op *store.Op) uint64 { return op.Space.Hash() ^ maphash.Bytes(seed, op.Key) }

// find returns the entry of the key of op, or nil.
func (t *table) find(op *store.Op) *entry { return t.findHash(op, hashOf(op)) }

func (t *table) findHash(op *store.Op, hash uint64) *entry {
	b := &t.buckets[hash%buckets]
	for i := range b {
		if e := b[i].Load(); e != nil && e.hash == hash && e.op.Space.Same(op.Space) && bytes.Equal(e.op.Key, op.Key) {
			return e
		}
	}
	return nil
}

// heat counts a take of a key that is not leased, and reports whether the key is hot: whether there were
// enough in the same slice of time of this length.
func (t *table) heat(hash uint64, now, length lease.Time) bool {
	at := &t.takes[hash/buckets%counters]
	slice := uint64(now/length)<<8 | 1
	old := at.Load()
	if old>>8 != slice>>8 {
		at.Store(slice)
		return false
	}
	return at.Add(1)&0xff >= hot
}

// add adds e, unless its bucket is full or the key is there. It returns what is there.
func (t *table) add(e *entry) *entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	if there := t.findHash(&e.op, e.hash); there != nil {
		return there
	}
	b := &t.buckets[e.hash%buckets]
	for i := range b {
		if b[i].Load() == nil {
			b[i].Store(e)
			return e
		}
	}
	return nil
}

func (t *table) remove(e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := &t.buckets[e.hash%buckets]
	for i := range b {
		b[i].CompareAndSwap(e, nil)
	}
}

// all calls do with each entry.
func (t *table) all(do func(*entry)) {
	for i := range t.buckets {
		for j := range t.buckets[i] {
			if e := t.buckets[i][j].Load(); e != nil {
				do(e)
			}
		}
	}
}

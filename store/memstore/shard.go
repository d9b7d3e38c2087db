package memstore

import (
	"sync"
	"sync/atomic"

	"github.com/weirhq/weir/store/memstore/internal/table"
	"github.com/weirhq/weir/window"
)

// shard is a part of a keyspace under one lock.
// Its parts are in the order of who writes them, and it has a whole number of cache
// lines, so that a core that decides a call takes only one line away from the others.
// TestLines holds the layout to that.
type shard struct {
	// What takes of hot keys read is in the first cache line. Calls that lock the
	// shard seldom write it.

	// hot are the shard's hot keys, nil until a key there is called often.
	hot atomic.Pointer[hotKeys]

	// tended is when a call last swept. It is set under the lock.
	tended atomic.Int64

	_ [48]byte

	// What every call that locks the shard writes or reads is in the second one.

	mu sync.Mutex

	// All below is guarded by mu.

	// latest is the latest reading of the steady clock by which a call here
	// was dated, or unknown. Invariant on the machine's clock: no hit here is
	// dated after both it and the clock's floor, but for those of states that
	// are lent.
	latest window.Instant

	calls uint8  // under the lock, since the last call that swept
	words uint32 // of 8 bytes, in the table, as the store's memory has counted them

	table table.Table // its first 40 bytes are what a find and account read

	// The rest is written by some calls.

	sampled table.Hash // the key of a call that swept; see tend

	// dirty is where the keys are noted that have changed, or nil; see journal.go.
	dirty *dirty

	scratch [8]uint64 // to work on small states where their block is too small

	_ [8]byte
}

// unknown is later than every reading: the next call reads the clock again.
const unknown = window.Instant(1<<63 - 1)

// date returns the reading of the clock that a call is dated with: m, which it
// read before it locked sh, or a new one when a call with a later reading has
// been decided here since.
func (sh *shard) date(c *clock, m moment, onWall bool) moment {
	if m.steady < sh.latest {
		m = c.again(m, onWall)
	}
	sh.latest = m.steady
	return m
}

// account adds to m what the table of sh, which is locked, has grown or shrunk by.
func (sh *shard) account(m *memory) {
	if n := uint32(sh.table.Bytes() / 8); n != sh.words {
		m.now.Add(8 * (int64(n) - int64(sh.words)))
		sh.words = n
	}
}

// numberOf returns which of n shards the key h belongs to. n is a power of two
// up to 256.
func numberOf(h table.Hash, n int) int { return int(uint64(h>>56) * uint64(n) >> 8) }

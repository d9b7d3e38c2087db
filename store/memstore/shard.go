package memstore

import (
	"sync/atomic"

	"github.com/weirhq/weir/store/memstore/internal/table"
)

// shard is a part of a keyspace, guarded by the lock of its stripe.
//
// It has two cache lines. Calls read the first one, and seldom write it: what they write
// is in the stripe and in the key's slot. TestLines holds the layout to that.
type shard struct {
	// hot are the shard's hot keys, nil until a key there is called often. Takes of hot
	// keys read it without the lock.
	hot atomic.Pointer[hotKeys]

	// lastSweep is when a call last swept. It is set under the lock.
	lastSweep atomic.Int64

	stripe *stripe

	// All below is guarded by stripe.mu.

	// dirty is where the keys are tracked that have changed, or nil; see journal.go.
	dirty *dirty

	table table.Table // its first 32 bytes are what a find reads

	words   uint32     // of 8 bytes, in the table, as the store's memory has counted them
	sampled table.Hash // the key of a call that swept; see sampleHot

	names *names // of the keys whose limit has Export, or nil
}

// account adds to m what the table of sh, which is locked, has grown or shrunk by.
func (sh *shard) account(m *memory) {
	if n := uint32(sh.bytes() / 8); n != sh.words {
		m.taken.Add(8 * (int64(n) - int64(sh.words)))
		sh.words = n
	}
}

package memstore

import (
	"sync"

	"github.com/weirhq/weir/store/memstore/internal/table"
	"github.com/weirhq/weir/window"
)

// shard is a part of a keyspace under one lock.
type shard struct {
	mu sync.Mutex

	// All below is guarded by mu.

	table table.Table

	calls  uint8          // since the last call that swept
	tended window.Instant // when that was

	scratch [8]uint64 // to work on small states where their block is too small
}

// numberOf returns which of n shards the key h belongs to. n is a power of two
// up to 256.
func numberOf(h table.Hash, n int) int { return int(uint64(h>>56) * uint64(n) >> 8) }

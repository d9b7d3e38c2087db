package memstore

import (
	"sync/atomic"

	"github.com/weirhq/weir/store/memstore/internal/table"
)

// memory counts the bytes that all tables take. Its zero value has no bound.
type memory struct {
	most atomic.Int64 // 0 means no bound

	// Every call reads the fields around taken, so that it has a cache line of its own.
	_     [64]byte
	taken atomic.Int64 // bytes, as of the last call in each shard
	_     [56]byte
}

// What is taken of the memory that there is. Known keys have a tenth of it to
// themselves, so that their states can grow during a flood of new keys.
const (
	admitsAll   = iota
	admitsKnown // nine tenths are taken: new keys are refused
	admitsNone  // larger states are refused, too
)

// admits returns what may grow.
func (m *memory) admits() int {
	bound := m.most.Load()
	if bound == 0 {
		return admitsAll
	}
	switch taken := m.taken.Load(); {
	case taken >= bound:
		return admitsNone
	case taken >= bound-bound/10:
		return admitsKnown
	}
	return admitsAll
}

// admitsNew reports whether there may be a new key. If it is the record of a call, or of a limit that callers state,
// a part of the memory is for other keys: callers choose these keys, so that they could take all of it without being
// over any limit.
func (m *memory) admitsNew(chosen bool) bool {
	if bound := m.most.Load(); chosen && bound > 0 && m.taken.Load() >= bound-bound/4 {
		return false
	}
	return m.admits() == admitsAll
}

// forgetDropped frees the tables of keyspaces that were dropped, which have no
// keys but may have slots. No shard may be locked.
func (s *Store) forgetDropped() {
	for _, ks := range s.keyspaces.takeDropped() {
		for i := range ks.shards {
			if sh := ks.shards[i].Load(); sh != nil {
				sh.stripe.mu.Lock()
				sh.table, sh.names = table.Table{}, nil
				sh.account(&s.memory)
				sh.stripe.mu.Unlock()
			}
		}
	}
}

package memstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore/internal/table"
	"github.com/weirhq/weir/window"
)

// names are the keys of a shard whose limit has Export, by their hashes: a table beside
// that of the states, which keeps hashes only. A name lives as long as its key, and
// takes a slot of 32 bytes, about 44 with what is free: a key of up to 15 bytes takes no more,
// and a longer one about one and a half times its length besides. TestNamesCost measures it.
//
// An entry has the hash, whose highest bit is set when a journal has the name, and the
// bytes of the key. The last byte is the number of bytes that are not the key's.
type names struct {
	table.Table
	keys *table.Table
	of   table.Lives // of keys
}

const inJournal = 1 << 63

// appendName appends the entry of a key.
func appendName(words []uint64, h table.Hash, key []byte) []uint64 {
	words = append(words, uint64(h)&^inJournal)
	for ; len(key) >= 8; key = key[8:] {
		words = append(words, binary.LittleEndian.Uint64(key))
	}
	var last [8]byte
	copy(last[:], key)
	last[7] = byte(8 - len(key))
	return append(words, binary.LittleEndian.Uint64(last[:]))
}

// keyOf appends the key of an entry to b.
func keyOf(b []byte, words []uint64) []byte {
	for _, w := range words[1:] {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	if len(b) > 0 {
		b = b[:max(len(b)-int(b[len(b)-1]), 0)]
	}
	return b
}

// Expires implements [table.Lives].
func (n *names) Expires(name []uint64) int64 {
	if at := n.keys.Find(table.Hash(name[0])); at.Known() {
		return n.of.Expires(at.State())
	}
	return math.MinInt64
}

// named returns how the names of sh are reclaimed.
func (sh *shard) named(e table.Expiry) table.Expiry {
	sh.names.of = e.Lives
	return table.Expiry{Lives: sh.names, Horizon: e.Horizon}
}

// name keeps the name of p's key, which op has and which counts now. isNew reports whether the
// key was not in the table before.
func (p *opSlot) name(s *Store, op *store.Op, isNew bool, expires int64) {
	sh := p.shard
	if sh.names == nil {
		sh.names = &names{keys: &sh.table}
	}
	at := sh.names.Find(p.key)
	if at.Known() && !isNew || s.memory.admits() != admitsAll {
		return
	}
	e := s.clock.expiry(p.read, p.keyspace)
	var room [16]uint64
	sh.names.Put(at, p.key, appendName(room[:0], p.key, op.Key), expires, sh.named(e.Expiry))
	sh.account(&s.memory)
}

// forget drops the name of h.
func (n *names) forget(h table.Hash) {
	if n == nil {
		return
	}
	if at := n.Find(h); at.Known() {
		n.Remove(at, h)
	}
}

// bytes returns what the table and the names of sh take.
func (sh *shard) bytes() int64 {
	if sh.names == nil {
		return sh.table.Bytes()
	}
	return sh.table.Bytes() + sh.names.Bytes()
}

// Keys calls found for some of the keys in the space of op, with their states under its
// limit at one instant each. It begins behind the position after, nil at first, and
// returns the position to go on from, nil at the end: keys that are there all the time
// are found once. A position of other hashes, or of another number of shards, gets
// [store.ErrMoved]. key is nil for a key that is not known, because it was not counted
// since its limit has [window.Limit.Export]. found must not keep its arguments. It is
// called without a lock, and Keys locks one shard at a time, for at most 416 keys.
func (s *Store) Keys(ctx context.Context, op *store.Op, after []byte, found func(key []byte, state window.State, now window.Instant)) (next []byte, err error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	// A position is a mark of the hashes and the number of shards, then the shard and the position in it.
	mark := binary.BigEndian.AppendUint32(nil, uint32(s.hash([]byte{byte(len(s.keyspaces.stripes) - 1)})))
	i, position := 0, 0
	if after != nil {
		if len(after) != 9 || !bytes.HasPrefix(after, mark) {
			return nil, store.ErrMoved
		}
		i, position = int(after[4]), int(binary.BigEndian.Uint32(after[5:]))
	}
	ks := s.keyspaces.existing(op.Space)
	if ks == nil {
		return nil, nil
	}
	for ; i < len(ks.shards); i, position = i+1, 0 {
		sh := ks.shards[i].Load()
		if sh == nil || position >= table.End {
			continue
		}
		position = s.keysOf(ks, sh, position, found)
		return binary.BigEndian.AppendUint32(append(mark, byte(i)), uint32(position)), nil
	}
	return nil, nil
}

// keysOf calls found for the keys of one segment of sh.
func (s *Store) keysOf(ks *keyspace, sh *shard, position int, found func([]byte, window.State, window.Instant)) (next int) {
	type item struct{ key, state, end int } // where they begin and end; key < 0: not known
	var items []item
	var keys []byte
	var states window.State
	m := s.clock.read()
	sh.stripe.mu.Lock()
	m = sh.stripe.date(&s.clock, m, ks.onWall)
	e := s.clock.expiry(m, ks)
	next = sh.table.Walk(position, func(h table.Hash, state []uint64) {
		if positionOf(h) < position || e.Over(state) { // before: it was in a segment that has been joined with this one
			return
		}
		key := -1
		if sh.names != nil {
			if at := sh.names.Find(h); at.Known() {
				key = len(keys)
				keys = keyOf(keys, at.State())
			}
		}
		items = append(items, item{key, len(states), len(keys)})
		states = append(states, state...)
	})
	sh.stripe.mu.Unlock()
	now := m.of(ks.onWall)
	for n, it := range items {
		end := len(states)
		if n+1 < len(items) {
			end = items[n+1].state
		}
		var key []byte
		if it.key >= 0 {
			key = keys[it.key:it.end:it.end]
		}
		found(key, states[it.state:end:end], now)
	}
	return next
}

// positionOf returns the position of a walk at which the key h is.
func positionOf(h table.Hash) int {
	return int(h << 8 >> (64 - bits.Len(table.End-1)))
}

package memstore

import (
	"hash/maphash"

	"github.com/weirhq/weir/store/memstore/internal/keyed"
	"github.com/weirhq/weir/store/memstore/internal/table"
)

// hash returns what stands for key.
func (s *Store) hash(key []byte) table.Hash {
	if j := s.keyspaces.journal; j != nil {
		return table.Hash(keyed.Sum(j.key, key))
	}
	return table.Hash(maphash.Bytes(s.seeds.key, key))
}

// member returns what stands for a member.
func (s *Store) member(member []byte) uint64 {
	if j := s.keyspaces.journal; j != nil {
		return keyed.Sum(j.member, member)
	}
	return maphash.Bytes(s.seeds.member, member)
}

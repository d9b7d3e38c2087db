package memstore

import (
	"hash/maphash"

	"github.com/weirhq/weir/store/memstore/internal/keyed"
	"github.com/weirhq/weir/store/memstore/internal/table"
)

// Secret is the key of the hashes of keys and members in a store with a journal.
// Two stores with the same Secret have the same fingerprints. It must be random, and
// nobody who chooses keys may learn it; see the package comment. The zero Secret is
// valid and not secret.
type Secret [32]byte

// keys returns the keys of the two hashes.
func (s Secret) keys() (key, member keyed.Key) {
	return keyed.KeyOf([16]byte(s[:16])), keyed.KeyOf([16]byte(s[16:]))
}

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

package store

import (
	"encoding/binary"
	"hash/maphash"
)

// defaultMaxKeys is the most keys that a store in memory keeps for a space that
// was made without another number.
const defaultMaxKeys = 10_000_000

// Space identifies the set of keys of one rule or limiter. Two Spaces with equal
// namespaces and IDs are the same space. Make one with [NewSpace]; the zero Space
// is not usable. A Space is immutable and safe for concurrent use. Stores are
// faster if all calls pass the same pointer.
type Space struct {
	*identity
	name    string
	maxKeys int64
}

// identity is what makes two spaces the same. Equal pointers make comparing
// cheap, but are not needed.
type identity struct {
	namespace, id string
	hash          uint64 // of both
}

// NewSpace returns the space with the given namespace and ID. The namespace keeps
// the counters of one tenant apart from those of others; "" is the default one.
// The name is for people: that of the rule or limiter. A shared store may use it
// in the names of keys, so spaces that are the same must have the same name.
// maxKeys is the most keys that a store in memory keeps for the space; 0 or less
// means 10,000,000.
func NewSpace(namespace, id, name string, maxKeys int64) *Space {
	if maxKeys <= 0 {
		maxKeys = defaultMaxKeys
	}
	hash := maphash.Comparable(seed, [2]string{namespace, id})
	return &Space{&identity{namespace, id, hash}, name, maxKeys}
}

// seed is the random seed of this process's hashes. It is never changed.
var seed = maphash.MakeSeed()

// Namespace returns the tenant, "" for the default one.
func (s *Space) Namespace() string { return s.namespace }

// ID returns the identity of the space within its namespace. It is bytes, not
// readable text.
func (s *Space) ID() string { return s.id }

// Name returns the name for people.
func (s *Space) Name() string { return s.name }

// MaxKeys returns the most keys that a store in memory keeps for the space.
func (s *Space) MaxKeys() int64 { return s.maxKeys }

// Hash returns a hash of the namespace and the ID. It differs from one process to
// the next.
func (s *Space) Hash() uint64 { return s.hash }

// Same reports whether s and t are the same space.
func (s *Space) Same(t *Space) bool { return s.identity == t.identity || s.identity.equal(t.identity) }

// equal compares the hashes first: different spaces that meet in a table of spaces
// differ there.
func (i *identity) equal(j *identity) bool { return i.hash == j.hash && *i == *j }

// CutKey returns the first part of a key that a rule has made of the values of attributes, and
// what follows it, for texts that people read. It returns false if key has no such part, as
// that of a limiter. A part follows its length, as an unsigned varint.
func CutKey[T ~string | ~[]byte](key T) (part, rest T, ok bool) {
	var head [binary.MaxVarintLen64]byte
	size, n := binary.Uvarint(head[:copy(head[:], key)])
	if n <= 0 || size > uint64(len(key)-n) {
		return part, rest, false
	}
	end := n + int(size)
	return key[n:end], key[end:], true
}

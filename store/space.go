package store

import (
	"hash/maphash"
)

// DefaultMaxKeys is the most keys that a space holds, unless it is made with
// another number.
const DefaultMaxKeys = 10_000_000

// Space is where the keys of one rule live. Two spaces with equal namespaces
// and IDs are the same space. Make one with [NewSpace]. A Space is immutable
// and safe for concurrent use; making it once and passing the same pointer is
// faster than making it for each call.
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

// NewSpace returns the space with the given identity. The namespace keeps the
// counters of one tenant apart from those of others; "" is the default one. The
// name is for people. A shared store may use it in the names of keys, so spaces
// that are the same must have the same name. maxKeys bounds the keys that a
// store in memory keeps; 0 or less means [DefaultMaxKeys].
func NewSpace(namespace, id, name string, maxKeys int64) *Space {
	if maxKeys <= 0 {
		maxKeys = DefaultMaxKeys
	}
	hash := maphash.Comparable(seed, [2]string{namespace, id})
	return &Space{&identity{namespace, id, hash}, name, maxKeys}
}

// seed is the random seed of this process's hashes. It is never changed.
var seed = maphash.MakeSeed()

// Namespace returns the tenant, "" for the default one.
func (s *Space) Namespace() string { return s.namespace }

// ID returns the identity of the counters within their namespace. Counters are
// kept as long as it stays the same. It is bytes, not text for people.
func (s *Space) ID() string { return s.id }

// Name returns the rule's name.
func (s *Space) Name() string { return s.name }

// MaxKeys returns the most keys that a store in memory keeps for the space.
func (s *Space) MaxKeys() int64 { return s.maxKeys }

// Hash returns a hash of the space's identity: equal for spaces that are the
// same, and valid as long as this process runs.
func (s *Space) Hash() uint64 { return s.hash }

// Same reports whether s and t are the same space.
func (s *Space) Same(t *Space) bool { return s.identity == t.identity || s.identity.equal(t.identity) }

func (i *identity) equal(j *identity) bool { return *i == *j }

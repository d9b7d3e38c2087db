package access

import (
	"sync/atomic"
)

// Holder is a caller that has shown a token or a certificate. A Holder is
// immutable but for the addresses from which it came, and safe for concurrent
// use.
type Holder struct {
	// Name is the name in the tokens file, or the source of the token.
	Name string

	// Scopes are the rights of the holder.
	Scopes Scope

	// Namespace is the only namespace that the holder may use. Empty: it may use
	// all.
	Namespace string

	// known holds hashes of addresses from which the token was shown before.
	// Each address has one place, which a later address may take over.
	known [64]atomic.Uint64
}

// knownFrom reports whether the token was shown from an address before, by the
// hash of the address.
func (h *Holder) knownFrom(hash uint64) bool {
	return h.known[hash%uint64(len(h.known))].Load() == hash
}

// know remembers the hash of an address.
func (h *Holder) know(hash uint64) { h.known[hash%uint64(len(h.known))].Store(hash) }

package weir

import (
	"crypto/rand"

	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/internal/plan"
	"github.com/weirhq/weir/internal/seal"
)

// seals seals the receipts of an engine, and tells which receipts are valid. The
// secret is that of the store, so that all engines on the same counters accept
// them. While the store has none, the engine uses a secret of its own.
type seals struct {
	store hook.Keyed // nil: the store has no secret
	own   seal.Key
}

func newSeals(s hook.Keyed) (out seals) {
	out.store = s
	_, _ = rand.Read(out.own[:]) // which never fails
	return out
}

// ready makes the store read its secret before it is needed.
func (s *seals) ready() {
	if s.store != nil {
		s.store.Secrets()
	}
}

// prepare gives a take the key for its receipt. In a request about a take it finds
// the key of the receipt, and drops a receipt that nobody could have sealed: it
// names no take then, so that nothing is found.
func (s *seals) prepare(r *plan.Request) {
	var shared [][16]byte
	if s.store != nil {
		shared = s.store.Secrets()
	}
	if !r.Verb.Ends() {
		if r.Key = s.own; len(shared) > 0 {
			r.Key = shared[0]
		}
		return
	}
	for _, key := range shared {
		if r.Key = key; r.Key.Sealed(&r.Receipt) {
			return
		}
	}
	if r.Key = s.own; !r.Key.Sealed(&r.Receipt) {
		r.Receipt = seal.Take{}
	}
}

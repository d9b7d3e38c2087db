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
	own   seal.Secret
}

func newSeals(s hook.Keyed) (out seals) {
	out.store = s
	_, _ = rand.Read(out.own[:]) // which never fails
	return out
}

// ready makes the store read its secret before it is needed.
func (s *seals) ready() {
	if s.store != nil {
		s.store.Secrets(false)
	}
}

// prepare gives a take the key for its receipt. In a request about a take it finds
// the key of the receipt, and drops a receipt that nobody could have sealed: it
// names no take then, so that nothing is found.
func (s *seals) prepare(r *plan.Request) {
	var shared []seal.Secret
	if s.store != nil {
		shared = s.store.Secrets(false)
	}
	if !r.Verb.Ends() {
		if len(shared) > 0 {
			r.Key.Use(shared[0])
		} else {
			r.Key.Use(s.own)
		}
		return
	}
	if sealed(r, shared...) || sealed(r, s.own) {
		return
	}
	// Another instance may have rotated the secret.
	if s.store == nil || r.Receipt.Seal == (seal.Take{}).Seal || !sealed(r, s.store.Secrets(true)...) {
		r.Receipt = seal.Take{}
	}
}

// sealed makes the key of r use the secret under which its receipt is sealed. It reports
// whether that is one of secrets.
func sealed(r *plan.Request, secrets ...seal.Secret) bool {
	for _, secret := range secrets {
		if r.Key.Use(secret); r.Key.Sealed(&r.Receipt) {
			return true
		}
	}
	return false
}

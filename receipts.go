package weir

import (
	"crypto/rand"
	"slices"
	"sync/atomic"

	"github.com/weirhq/weir/internal/drive"
	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/internal/plan"
	"github.com/weirhq/weir/internal/seal"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// hold writes into d the receipt of a take that was admitted, and the length of its
// shortest hold, if the take holds anything.
func (d *Decision) hold(p *plan.Plan, t *drive.Task) {
	if !slices.ContainsFunc(t.Ops, func(op store.Op) bool { return op.Result.Held }) {
		return
	}
	r := seal.Take{ID: p.Request.ID}
	if t.Local {
		r.Place = seal.Local
	}
	p.Receipt(&r, t.Ops)
	d.Receipt = Receipt{Take: p.Request.Sealer.Seal(r)}
	for n, i := range t.Of {
		if !t.Ops[n].Result.Held {
			continue
		}
		r := p.Rules.Rule(i)
		length := r.Hold
		if r.Window.Kind == window.KindHeld {
			length = r.Window.Length
		}
		if d.Hold == 0 || length < d.Hold {
			d.Hold = length
		}
	}
}

// ids returns random ids. It reads many at once, because each read of random
// bytes costs as much as a take. Its zero value is ready for use.
type ids struct {
	bytes [32 * len(window.Hold{}.ID)]byte
	left  int // bytes that are not used
}

func (s *ids) next() (id [12]byte) {
	if s.left == 0 {
		_, _ = rand.Read(s.bytes[:]) // which never fails
		s.left = len(s.bytes)
	}
	used := s.bytes[s.left-len(id) : s.left]
	s.left -= copy(id[:], used)
	clear(used)
	return id
}

// seals seals the receipts of an engine, and reports which receipts are valid. The
// secret is that of the store, so that all engines on the same counters accept
// them. While it is not known, the engine uses the one that the last process knew. Without that it uses its own secret, which is
// that of the local store or a random one, and the store makes it known to other engines later.
type seals struct {
	store hook.Keyed // nil: the store has no secret
	own   []seal.Secret

	local hook.Adopter                 // nil: it keeps no secret
	kept  []seal.Secret                // the store's, as the last process knew it; used until that of the store is known
	last  *atomic.Pointer[seal.Secret] // that local has adopted
}

func newSeals(s hook.Keyed, local store.Store) (out seals) {
	hooks := hook.Of(local)
	out.store, out.local, out.last = s, hooks.Adopter, new(atomic.Pointer[seal.Secret])
	out.own = make([]seal.Secret, 1)
	_, _ = rand.Read(out.own[0][:]) // which never fails
	if hooks.Keyed != nil {
		if secrets := slices.Clone(hooks.Keyed.Secrets(false)); len(secrets) > 0 {
			out.own, out.kept = secrets[:1], secrets[1:]
		}
	}
	return out
}

// adopt makes the local store keep the secret of the store for the next process, which may start in an outage.
func (s *seals) adopt(shared []seal.Secret) {
	if s.local == nil || len(shared) == 0 || shared[0] == s.own[0] {
		return
	}
	if last := s.last.Load(); last == nil || *last != shared[0] {
		secret := shared[0]
		s.local.AdoptSecret(secret)
		s.last.Store(&secret)
	}
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
		own := s.own
		if r.Verb.NeedsReceipt() || len(s.kept) > 0 {
			own = nil
		}
		shared = s.store.Secrets(false, own...)
		s.adopt(shared)
	}
	if !r.Verb.NeedsReceipt() {
		switch {
		case len(shared) > 0:
			r.Sealer.Use(shared[0])
		case s.store != nil && len(s.kept) > 0: // other instances know it, too
			r.Sealer.Use(s.kept[0])
		default:
			r.Sealer.Use(s.own[0])
		}
		return
	}
	if sealed(r, shared...) || len(shared) == 0 && (sealed(r, s.own...) || sealed(r, s.kept...)) {
		return
	}
	// Another instance may have rotated the secret, or added its own.
	if s.store == nil || r.Receipt.Seal == (seal.Take{}).Seal || !sealed(r, s.store.Secrets(true)...) {
		r.Receipt = seal.Take{}
	}
}

// sealed makes the key of r use the secret under which its receipt is sealed. It reports
// whether that is one of secrets.
func sealed(r *plan.Request, secrets ...seal.Secret) bool {
	for _, secret := range secrets {
		if r.Sealer.Use(secret); r.Sealer.Sealed(&r.Receipt) {
			return true
		}
	}
	return false
}

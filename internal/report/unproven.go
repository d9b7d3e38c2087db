package report

import (
	"slices"
	"time"

	"github.com/weirhq/weir/internal/seal"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

// A receipt can be sealed under a secret that another instance has used while it did not reach the store. That instance makes it
// known when the store is back. Until then the end of the hold is pending with the receipt, which is the member of its entry.

// ProofTime is how long after an outage other instances may not have made their secrets known yet. They do so within a second
// after they reach the store.
const ProofTime = 10 * time.Second

// EndUnproven keeps the end of the hold of op, whose receipt could not be judged, as EndLater does with one that is valid. It is
// sent if the receipt turns out to be valid.
func (r *Reporter) EndUnproven(op *store.Op, n int64, receipt string) {
	if r == nil || r.keyed == nil || op.Limit.HoldLength() == 0 {
		return
	}
	of, _ := seal.Parse(receipt)
	i := idOf(op)
	i.member = receipt
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.table.of(i) != nil || r.table.inFlight[i] != nil {
		return
	}
	at := r.now()
	end := held{there: true, over: true, final: n, elsewhere: of.Place == seal.Local, unproven: true}
	end.Hold = window.Hold{ID: of.ID, At: at, End: at.Add(op.Limit.HoldLength())}
	r.started(r.table.hold(r.table.entry(i, op, op.Limit), op.Limit, end), 0)
}

// unproven reports whether e is the end of a hold whose receipt could not be judged.
func (e *entry) unproven() bool { return len(e.holds) > 0 && e.holds[0].unproven }

// prove judges the receipts of entries in flight. It drops entries whose receipts are not valid, but not while other instances
// may still make their secrets known. It returns those to send, those that wait, and whether it has dropped any.
func (r *Reporter) prove(batch []*entry) (send, wait []*entry, dropped bool) {
	r.mu.Lock()
	asks := slices.ContainsFunc(batch, (*entry).unproven)
	r.mu.Unlock()
	if !asks {
		return batch, nil, false
	}
	var secrets []seal.Secret
	if r.keyed != nil {
		secrets = r.keyed.Secrets(true)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var key seal.Key
	for _, e := range batch {
		receipt, _ := seal.Parse(e.id.member)
		valid := !e.unproven() || slices.ContainsFunc(secrets, func(s seal.Secret) bool {
			key.Use(s)
			return key.Sealed(&receipt)
		})
		now := r.now()
		if e.judged == 0 {
			e.judged = now
		}
		switch {
		case valid:
			if send = append(send, e); e.unproven() {
				e.holds[0].unproven = false
			}
		case now < e.judged.Add(ProofTime):
			e.why = remote.Unknown
			wait = append(wait, e)
		default:
			delete(r.table.inFlight, e.id)
			r.table.drop(e)
			dropped = true
		}
	}
	return send, wait, dropped
}

package plan

import (
	"github.com/weirhq/weir/internal/seal"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// costs reports whether a settle says what the request really cost under rule i:
// by the attribute that the rule sums, or by hits that the caller gave.
func (p *Plan) costs(i int) bool {
	if p.Rules.Rule(i).Measure == window.Sum && p.Rules.Member(i, p.Request.Values) != "" {
		return true
	}
	return p.Request.Exact
}

// hold gives ops their part in holds: those of a take that holds, those about the
// holds of an earlier take, and those under limits that ban.
func (p *Plan) hold() {
	r := &p.Request
	id, ends := r.ID, r.Verb.Ends()
	if ends {
		id = r.Receipt.ID
	} else if r.Verb != store.Take || !p.holdsAny() {
		id = [12]byte{}
	}
	// Ops point into the slice, so it must not move.
	p.holds = p.holds[:0]
	if most := len(p.Now.List) + len(p.Later.List); cap(p.holds) < most {
		p.holds = make([]store.Hold, 0, most)
	}
	for _, ops := range []*Ops{&p.Now, &p.Later} {
		for n := range ops.List {
			op := &ops.List[n]
			if (id == [12]byte{}) && op.Limit.Ban.For == 0 {
				continue
			}
			p.holds = append(p.holds, store.Hold{Hold: window.Hold{ID: id}})
			op.Hold = &p.holds[len(p.holds)-1]
			switch {
			case r.Verb == store.Cancel:
				p.giveBack(op)
			case ends:
				op.Hold.At = p.at(op, &r.Receipt)
			}
		}
	}
}

// holdsAny reports whether the take holds under one of its limits.
func (p *Plan) holdsAny() bool {
	for _, ops := range []*Ops{&p.Now, &p.Later} {
		for n := range ops.List {
			if op := &ops.List[n]; op.N > 0 && op.Limit.HoldLength() > 0 {
				return true
			}
		}
	}
	return false
}

// at returns the instant of the take of r, by the clock of op.
func (p *Plan) at(op *store.Op, r *seal.Take) window.Instant {
	if op.Limit.OnCalendar() {
		return r.Wall
	}
	return r.At
}

// giveBack leaves op, of a cancel, its hits only if the take has counted them without a
// hold, and sets the instant at which it did.
func (p *Plan) giveBack(op *store.Op) {
	r := &p.Request.Receipt
	op.Hold.At = p.at(op, r)
	switch {
	case op.N <= 0 || op.Limit.HoldLength() > 0:
	case r.Has(p.digest(op, op.Hold.At)):
		return
	case r.Later > 0 && r.Has(p.digest(op, op.Hold.At+r.Later)):
		op.Hold.At += r.Later
		return
	}
	op.N = 0
}

// Receipt fills in r, the receipt of the request, which was admitted, after ops were
// decided: the instants, and a digest for each op that was counted without a hold.
func (p *Plan) Receipt(r *seal.Take, ops []store.Op) {
	for i := range ops {
		if op := &ops[i]; op.Hold != nil {
			first := &r.At
			if op.Limit.OnCalendar() {
				first = &r.Wall
			}
			if *first == 0 {
				*first = op.Hold.Decided
			}
			if r.Later == 0 {
				r.Later = max(0, op.Hold.Decided-*first)
			}
		}
	}
	if r.Wall == 0 {
		r.Wall = r.At
	} else if r.At == 0 {
		r.At = r.Wall
	}
	n := 0
	for i := range ops {
		op := &ops[i]
		if op.Hold == nil || n == seal.MostCounted || !counted(op) {
			continue
		}
		if at := p.at(op, r); op.Hold.Decided == at || op.Hold.Decided == at+r.Later {
			r.Counted[n] = p.digest(op, op.Hold.Decided)
			n++
		}
	}
}

// counted reports whether an admitted take has counted op, without a hold.
func counted(op *store.Op) bool {
	if op.N <= 0 || op.Limit.HoldLength() > 0 || op.Result.Banned {
		return false
	}
	return op.Role != store.Shadow || op.Result.Allowed || op.CountDenied
}

// digest returns the digest, under the request's key, of what the request counts for op at
// an instant.
func (p *Plan) digest(op *store.Op, at window.Instant) uint32 {
	h := p.Request.Key.Digest()
	h.Bytes(op.Hold.ID[:])
	h.Text(op.Space.Namespace())
	h.Text(op.Space.ID())
	h.Bytes(op.Key)
	h.Bytes(op.Member)
	h.Number(uint64(op.N))
	h.Number(uint64(at))
	if op.Limit.Window.Kind == window.KindBucket {
		h.Number(uint64(op.Limit.Quota)) // under another one the hits drain in another time
	}
	return h.Sum()
}

package plan

import (
	"github.com/weirhq/weir/rule"
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
			if ends {
				op.Hold.At = p.at(op)
			}
		}
	}
	if r.Verb == store.Cancel {
		p.giveBack()
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

// at returns the instant of the take of the receipt, by the clock of op.
func (p *Plan) at(op *store.Op) window.Instant {
	if op.Limit.OnCalendar() {
		return p.Request.Receipt.Wall
	}
	return p.Request.Receipt.At
}

// giveBack leaves the hits to give back to those ops of a cancel that the take
// counted without a hold, and none to the others.
func (p *Plan) giveBack() {
	same := p.Digest(p.Now.List, p.Now.Of, func(*store.Op) bool { return true }) == p.Request.Receipt.Digest
	for n := range p.Now.List {
		if op := &p.Now.List[n]; !same || !p.digests(op, p.Now.Of[n]) {
			op.N = 0
		}
	}
}

// digests reports whether the digest of a receipt covers op, of rule i: it is
// counted in every admitted take, at once, and without a hold.
func (p *Plan) digests(op *store.Op, i int) bool {
	return op.N > 0 && op.Limit.HoldLength() == 0 && p.Rules.Rule(i).Mode != rule.Shadow && (p.Verdict < 0 || i < p.Verdict)
}

// Digest returns the digest, under the request's key, of what a take counts without
// a hold, and 0 when that is nothing. It is also 0 when sound reports false for one of those ops, so that
// no cancel gives them back.
func (p *Plan) Digest(ops []store.Op, of []int, sound func(*store.Op) bool) uint64 {
	h, found := p.Request.Key.Digest(), false
	for n := range ops {
		op := &ops[n]
		if !p.digests(op, of[n]) {
			continue
		}
		if !sound(op) {
			return 0
		}
		found = true
		h.Text(op.Space.Namespace())
		h.Text(op.Space.ID())
		h.Bytes(op.Key)
		h.Bytes(op.Member)
		h.Number(uint64(op.N))
	}
	if !found {
		return 0
	}
	return h.Sum()
}

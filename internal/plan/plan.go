// Package plan turns a request, and the rules that it matches, into ops of a store: one for each
// rule that counts. It comes before internal/drive and the verdict in package weir.
// It is pure: no clock, no lock, no IO.
//
// A rule has five forms:
//
//   - the text of a rules file, which package rulefile reads
//   - [rule.Rule], what users write in Go
//   - [ruleset.Rule], the parts that matching and keys need, compiled into a [ruleset.Compiled]
//   - [Prepared], what the ops of the rule share, and what decisions say of it
//   - [store.Op], the rule and one key in one call
package plan

import (
	"slices"

	"github.com/weirhq/weir/internal/ruleset"
	"github.com/weirhq/weir/internal/seal"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Request is one action, with its attributes where the rules look for them.
type Request struct {
	Verb store.Verb
	Hits int64 // at least 1

	// Feedback, in a refund, selects the hits that each rule gives back.
	// Empty: Hits.
	Feedback string

	// Values are the attributes, indexed as [ruleset.Compiled] describes.
	Values []string

	// ID is the id of the holds of a take. Zero: the take holds nothing, and does
	// not match rules whose windows are held.
	ID [12]byte

	// Receipt names the take that a settle, a cancel or a renewal is about, and is zero in
	// other requests. Exact reports whether Hits is what a settle costs, and not a default.
	Receipt seal.Take
	Exact   bool

	// Sealer is the key of the receipt that the take gets, or has. It is kept between
	// requests.
	Sealer seal.Key
}

// Plan is what one request asks of a store. A Plan can be used again; it then reuses its memory.
type Plan struct {
	// Rules, Request, Matched, First and Second are set before Make. Matched are the indexes of the rules
	// that match the request, ascending.
	Rules   *Rules
	Request Request
	Matched []int

	// First has the ops to be decided in one step, and Second those that wait for
	// the outcome of that step: rules after a verdict that allows, where a
	// limit before it may deny. Both belong to the caller, are empty before Make, and are filled by it.
	First, Second *Step

	// VerdictRule is the first verdict among Matched that is enforced, or -1. It is set to -1
	// before Make.
	VerdictRule int

	// Overridden are the rules, ascending, whose limits are overrides.
	Overridden []int

	keys  []byte       // keys and members of ops, one behind the other; they stay where they are when keys grows
	holds []store.Hold // of the ops

	limits ruleset.Limits
}

// Make sets VerdictRule and fills First and Second. The error is a [*fault.Fault].
func (p *Plan) Make() error {
	takes, prepared := p.Request.Verb == store.Take, p.Rules.prepared
	for _, i := range p.Matched {
		common := &prepared[i]
		if common.Kind == rule.KindVerdict {
			if !common.Shadow && p.VerdictRule < 0 {
				p.setVerdictRule(i)
			}
			continue
		}
		if common.Held && takes && (p.Request.ID == [12]byte{}) {
			continue // without a receipt the hits in flight could not be released
		}
		ops := p.First
		if p.VerdictRule >= 0 && p.isDeferred() {
			ops = p.Second
		}
		op := ops.add(i)
		if n := len(ops.Of) - 2; common.SameKey && n >= 0 && ops.Of[n] == i-1 {
			op.Key = ops.Ops[n].Key // the same memory, which a store hashes once
		} else {
			from := len(p.keys)
			p.keys = p.Rules.AppendKey(p.keys, i, p.Request.Values)
			op.Key = p.keys[from:len(p.keys):len(p.keys)]
		}
		op.Space, op.Limit, op.N = common.Space, common.Limit, p.Request.Hits
		op.Role, op.CountDenied, op.UpTo = common.Role, common.CountDenied, false
		op.Together, op.Member, op.Hold = nil, nil, nil
		if op.Limit == nil || p.Request.Verb > store.Record { // few ops
			if err := p.measure(op, i); err != nil {
				return err
			}
		}
		if p.VerdictRule >= 0 { // after the verdict no rule decides; it counts a record, and a take that the verdict allows
			op.Role, op.CountDenied = store.Always, false
			if takes && !p.Rules.Allows(p.VerdictRule) {
				op.N = 0
			}
		}
	}
	if p.Rules.holds || p.Rules.bans || p.Request.Verb.NeedsReceipt() {
		p.hold()
	}
	return nil
}

// setVerdictRule makes rule i the verdict. If it denies a take, the limits before it are evaluated and not
// charged.
func (p *Plan) setVerdictRule(i int) {
	p.VerdictRule = i
	if p.Request.Verb != store.Take || p.Rules.Allows(i) {
		return
	}
	for n := range p.First.Ops {
		if op := &p.First.Ops[n]; op.Role == store.Enforce {
			op.Role = store.Look
		}
	}
}

// isDeferred reports whether the next op, after a verdict, has to wait until the limits before the
// verdict have been decided: they may deny a take that the verdict allows.
func (p *Plan) isDeferred() bool {
	return p.Request.Verb == store.Take && p.Rules.Allows(p.VerdictRule) &&
		slices.ContainsFunc(p.First.Ops, func(op store.Op) bool { return op.Role == store.Enforce && (op.N > 0 || op.Limit.Ban.For > 0) })
}

// measure sets the limit of op, of rule i, what it counts and its group of keys.
func (p *Plan) measure(op *store.Op, i int) error {
	verb, values := p.Request.Verb, p.Request.Values
	r := p.Rules.Rule(i)
	overridden := false
	if o := p.Rules.prepared[i].overrides; o != nil {
		op.Limit, p.keys = o.limit(p.Rules.Compiled, i, op.Key, values, p.keys)
		overridden = op.Limit != nil
	}
	if overridden {
		p.Overridden = append(p.Overridden, i)
	} else {
		limit, err := p.Rules.LimitOf(i, values, &p.limits)
		if err != nil {
			return p.Rules.invalid(i, r.Quota.Of, err)
		}
		op.Limit = limit
	}
	amount := "" // that the rule sums, for the end of a hold
	if verb.NeedsReceipt() && r.Measure == window.Sum {
		amount = p.Rules.Member(i, values)
	}
	switch {
	case verb == store.Settle && amount == "":
		if !p.Request.Exact {
			op.N = -1 // what the hold has
		}
	case verb.NeedsReceipt() && r.Measure == window.Sum && amount == "":
		op.N = 0 // what is held is known
	case p.Request.Feedback != "":
		op.N = r.Feedback[p.Request.Feedback]
	case r.Measure == window.Sum:
		n, err := p.Rules.Sum(i, values)
		if err != nil {
			return p.Rules.invalid(i, r.Of, err)
		}
		op.N = n
	}
	if r.Together != "" {
		op.Together = p.keep(p.Rules.Together(i, values))
	}
	if r.Measure == window.Distinct {
		op.Member = p.keep(p.Rules.Member(i, values))
	}
	return nil
}

// keep appends a copy of text to the keys.
func (p *Plan) keep(text string) []byte {
	from := len(p.keys)
	p.keys = append(p.keys, text...)
	return p.keys[from:len(p.keys):len(p.keys)]
}

// Refused reports whether a verdict denies the request, which is a check or a take.
func (p *Plan) Refused() bool {
	return p.Request.Verb <= store.Take && p.VerdictRule >= 0 && !p.Rules.Allows(p.VerdictRule)
}

// hold gives ops their part in holds: those of a take that holds, those about the
// holds of an earlier take, and those under limits that ban.
func (p *Plan) hold() {
	r := &p.Request
	id, ends := r.ID, r.Verb.NeedsReceipt()
	if ends {
		id = r.Receipt.ID
	} else if r.Verb != store.Take || !p.holdsAny() {
		id = [12]byte{}
	}
	// Ops point into the slice, so it must not move.
	p.holds = p.holds[:0]
	if most := len(p.First.Ops) + len(p.Second.Ops); cap(p.holds) < most {
		p.holds = make([]store.Hold, 0, most)
	}
	for _, ops := range []*Step{p.First, p.Second} {
		for n := range ops.Ops {
			op := &ops.Ops[n]
			if (id == [12]byte{}) && op.Limit.Ban.For == 0 {
				continue
			}
			p.holds = append(p.holds, store.Hold{Hold: window.Hold{ID: id}})
			op.Hold = &p.holds[len(p.holds)-1]
			switch {
			case r.Verb == store.Cancel:
				p.giveBack(op)
			case ends:
				op.Hold.At = instantOf(&r.Receipt, op)
			}
		}
	}
}

// holdsAny reports whether the take holds under one of its limits.
func (p *Plan) holdsAny() bool {
	for _, ops := range []*Step{p.First, p.Second} {
		for n := range ops.Ops {
			if op := &ops.Ops[n]; op.N > 0 && op.Limit.HoldLength() > 0 {
				return true
			}
		}
	}
	return false
}

// instantOf returns the instant of the take t, by the clock of op.
func instantOf(t *seal.Take, op *store.Op) window.Instant {
	if op.Limit.OnCalendar() {
		return t.Wall
	}
	return t.At
}

// giveBack leaves op, of a cancel, its hits only if the take has counted them without a
// hold, and sets the instant at which it did.
func (p *Plan) giveBack(op *store.Op) {
	r := &p.Request.Receipt
	op.Hold.At = instantOf(r, op)
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
		if at := instantOf(r, op); op.Hold.Decided == at || op.Hold.Decided == at+r.Later {
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
	h := p.Request.Sealer.Digest()
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

// Reset drops what p refers to and keeps its memory.
func (p *Plan) Reset() {
	values := p.Request.Values
	for i := range values {
		value := &values[i] // clear takes longer for a few
		*value = ""
	}
	if p.Request.Verb.NeedsReceipt() {
		p.Request.Receipt = seal.Take{}
	}
	p.Request.Feedback, p.Request.ID = "", [12]byte{}
	p.First.reset()
	p.Second.reset()
	p.Rules, p.keys, p.Overridden = nil, p.keys[:0], p.Overridden[:0]
}

// Step has ops that a store decides in one step.
type Step struct {
	// Ops are the ops, and Of what each of them belongs to, ascending: in a [Plan] the indexes of its rules.
	Ops []store.Op
	Of  []int
}

// add adds an op of rule i, which is as an earlier request left it.
func (s *Step) add(i int) *store.Op {
	n := len(s.Ops)
	s.Of = append(s.Of, i)
	if n < cap(s.Ops) {
		s.Ops = s.Ops[:n+1]
	} else {
		s.Ops = append(s.Ops, store.Op{})
	}
	return &s.Ops[n]
}

// reset empties s and keeps its memory, which refers to nothing of the request.
func (s *Step) reset() { s.Ops, s.Of = s.Ops[:0], s.Of[:0] }

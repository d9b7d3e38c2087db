// Package plan turns a request into calls of a store: it finds the rules that match, and makes one
// op for each of them that counts. It is the first of the three
// parts of the engine, before internal/drive and the verdict in package weir.
// It is pure: no clock, no lock, no IO.
package plan

import (
	"slices"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Make fills in p from its Rules and its Request. The error is a [*fault.Fault].
func (p *Plan) Make() error {
	p.Verdict = -1
	p.Matched = p.Rules.Match(p.Request.Values, p.Matched[:0], p.Request.Verb.Ends())
	for _, i := range p.Matched {
		common := &p.Rules.prepared[i]
		if common.Kind == rule.KindVerdict {
			if p.Rules.Rule(i).Mode != rule.Shadow && p.Verdict < 0 {
				p.setVerdict(i)
			}
			continue
		}
		if common.Held && p.Request.Verb == store.Take && (p.Request.ID == [12]byte{}) {
			continue // without a receipt the hits in flight could not be released
		}
		ops := &p.Now
		if p.waits() {
			ops = &p.Later
		}
		op := ops.add(i)
		if common.Limit != nil && p.Request.Verb <= store.Record {
			p.fillHits(op, i)
		} else if err := p.fill(op, i); err != nil {
			return err
		}
		if p.Verdict >= 0 {
			p.follow(op)
		}
	}
	if p.Rules.holds || p.Rules.bans || p.Request.Verb.Ends() {
		p.hold()
	}
	return nil
}

// setVerdict makes rule i the verdict. If it denies a take, the limits before it are evaluated and not
// charged.
func (p *Plan) setVerdict(i int) {
	p.Verdict = i
	if p.Request.Verb != store.Take || p.Rules.Allows(i) {
		return
	}
	for n := range p.Now.List {
		if op := &p.Now.List[n]; op.Role == store.Enforce {
			op.Role = store.Look
		}
	}
}

// waits reports whether the next op has to wait until the limits before the
// verdict have been decided: they may deny a take that the verdict allows.
func (p *Plan) waits() bool {
	return p.Verdict >= 0 && p.Request.Verb == store.Take && p.Rules.Allows(p.Verdict) &&
		slices.ContainsFunc(p.Now.List, func(op store.Op) bool { return op.Role == store.Enforce && (op.N > 0 || op.Limit.Ban.For > 0) })
}

// follow makes op, of a rule after the verdict, one that never decides. It counts in a record, and in a
// take that the verdict allows.
func (p *Plan) follow(op *store.Op) {
	op.Role, op.CountDenied = store.Always, false
	if p.Request.Verb == store.Take && !p.Rules.Allows(p.Verdict) {
		op.N = 0
	}
}

// fillHits fills op, as fill does, for a check, a take or a record under a prepared limit. Most ops are
// of this kind, and it takes half the time of fill.
func (p *Plan) fillHits(op *store.Op, i int) {
	common := &p.Rules.prepared[i]
	op.Space, op.Limit, op.N = common.Space, common.Limit, p.Request.Hits
	op.Role, op.CountDenied = common.Role, p.Rules.Rule(i).CountDenied
	p.fillKey(op, i)
}

// fillKey sets the key of op. A slice of keys stays valid when keys itself moves on
// to grow.
func (p *Plan) fillKey(op *store.Op, i int) {
	from := len(p.keys)
	p.keys = p.Rules.AppendKey(p.keys, i, p.Request.Values)
	op.Key = p.keys[from:len(p.keys):len(p.keys)]
}

// fill makes op, which is empty, the op of rule i.
func (p *Plan) fill(op *store.Op, i int) error {
	r, values := p.Rules.Rule(i), p.Request.Values
	op.Space, op.Limit, op.N = p.Rules.spaces[i], p.Rules.LimitOf(i, values), p.Request.Hits
	op.Role, op.CountDenied = p.Rules.prepared[i].Role, r.CountDenied
	switch {
	case p.Request.Verb == store.Settle && !p.costs(i):
		op.N = -1 // what the hold has
	case (p.Request.Verb == store.Cancel || p.Request.Verb == store.Renew) && r.Measure == window.Sum && p.Rules.Member(i, values) == "":
		op.N = 0 // what is held is known
	case p.Request.Verb == store.Settle && r.Measure == window.Sum && p.Request.Exact && p.Rules.Member(i, values) == "":
		// the hits of the request are the cost
	case p.Request.Feedback != "":
		op.N = r.Feedback[p.Request.Feedback]
	case r.Measure == window.Sum:
		n, err := p.Rules.Sum(i, values)
		if err != nil {
			return &fault.Fault{Path: "attributes." + r.Of, Problem: "rule " + r.Name + ": " + err.Error()}
		}
		op.N = n
	}
	p.fillKey(op, i)
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

// Decides reports whether the request asks for an outcome: a take and a check
// do, a record and a refund only count.
func (p *Plan) Decides() bool {
	return p.Request.Verb == store.Take || p.Request.Verb == store.Check
}

// Refused reports whether a verdict denies the request.
func (p *Plan) Refused() bool {
	return p.Decides() && p.Verdict >= 0 && !p.Rules.Allows(p.Verdict)
}

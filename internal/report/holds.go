package report

import (
	"slices"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// A hold of local memory is pending as a hold, with its id and its end, so that its receipt
// also ends it in the store. A hold that ends before it was reported becomes hits, or
// nothing.

// held is a hold that is pending.
type held struct {
	window.Hold
	n int64

	renewed bool  // while its entry was in flight; see missed
	over    bool  // it has ended while its entry was in flight; see settle and missed
	final   int64 // how many hits are final if it is over
}

// heldWords is the size of a hold, in words.
const heldWords = 5

// Hold adds a hold of n hits that local memory made for op's key, as the hold of the op.
// limit is the limit of the store.
func (r *Reporter) Hold(op *store.Op, limit *window.Compiled, n int64) {
	if r == nil || n <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	hold := window.Hold{ID: op.Hold.ID, At: op.Hold.Decided, End: op.Hold.Decided.Add(limit.HoldLength())}
	r.started(!r.closed && r.table.hold(op, limit, hold, n), n)
}

// End ends the hold of op, as local memory has done. n hits of it are final, or all of them for
// a negative n. End reports whether the hold was pending: otherwise only the store can end it.
func (r *Reporter) End(op *store.Op, n int64) (pending bool) {
	if r == nil {
		return false
	}
	r.each(func(t *table, now window.Instant) { pending = t.end(op, n, now) || pending })
	return pending
}

// Renew renews the hold of op, as local memory has done. It reports whether the hold was pending.
func (r *Reporter) Renew(op *store.Op) (pending bool) {
	if r == nil {
		return false
	}
	r.each(func(t *table, _ window.Instant) { pending = t.renew(op) || pending })
	return pending
}

// hold adds a hold of n hits. It returns false if the table is full.
func (t *table) hold(op *store.Op, limit *window.Compiled, h window.Hold, n int64) bool {
	e := t.entry(op, limit)
	if e == nil {
		return false
	}
	e.holds = append(e.holds, held{Hold: h, n: n})
	t.words += heldWords
	return true
}

// find returns the index of the hold of op in e, which can be nil, or -1.
func (e *entry) find(op *store.Op) int {
	if e == nil {
		return -1
	}
	return slices.IndexFunc(e.holds, func(h held) bool { return h.ID == op.Hold.ID && !h.over })
}

// renew renews the hold of op, if it is pending.
func (t *table) renew(op *store.Op) (pending bool) {
	for _, e := range t.pair(idOf(op)) {
		if i := e.find(op); i >= 0 {
			e.holds[i].End = op.Hold.Decided.Add(e.limit.HoldLength())
			e.holds[i].renewed = t.inFlight[e.id] == e
			t.saver.touch(e)
			pending = true
		}
	}
	return pending
}

// end makes n hits of the hold of op final, if it is pending. If its entry is in flight, they
// become final when the entry is pending again, or are settled in the store after the record.
func (t *table) end(op *store.Op, n int64, now window.Instant) (pending bool) {
	for _, e := range t.pair(idOf(op)) {
		i := e.find(op)
		if i < 0 {
			continue
		}
		pending = true
		h := &e.holds[i]
		if h.over, h.final = true, n; n < 0 {
			h.final = h.n
		}
		if t.entries[e.id] == e {
			t.words += e.settle(now)
			t.changed(e, now)
		}
	}
	return pending
}

// missed returns the call that ends or renews the hold which op has recorded, if that was done meanwhile: the caller's own
// call may have reached the store before the record. A hold that the store has ended already stays as it is.
func (e *entry) missed(op *store.Op) []store.Call {
	i := slices.IndexFunc(e.holds, func(h held) bool { return holds(op) && h.ID == op.Hold.ID })
	if i < 0 || !e.holds[i].over && !e.holds[i].renewed {
		return nil
	}
	call := store.Call{Verb: store.Renew, Ops: []store.Op{e.op(e.holds[i].n)}}
	if e.holds[i].over {
		call = store.Call{Verb: store.Settle, Ops: []store.Op{e.op(e.holds[i].final)}}
	}
	call.Ops[0].Hold = &store.Hold{Hold: e.holds[i].Hold}
	return []store.Call{call}
}

// settle makes the hits of holds that are over final. It returns by how many words e grows.
func (e *entry) settle(now window.Instant) (words int) {
	e.holds = slices.DeleteFunc(e.holds, func(h held) bool {
		if !h.over {
			return false
		}
		if words -= heldWords; h.final > 0 && e.limit.Hold > 0 {
			words += e.add(h.final, now)
		}
		return true
	})
	return words
}

// mature makes the holds that have ended at now final. It returns by how many words e grows.
func (e *entry) mature(now window.Instant) (words int) {
	limit := e.limit.Limit
	e.holds = slices.DeleteFunc(e.holds, func(h held) bool {
		if h.End > now {
			return false
		}
		words -= heldWords
		if limit.Hold > 0 && !limit.Release {
			words += e.add(h.n, now)
		}
		return true
	})
	return words
}

// ops returns the ops that record e at now: its hits, if there are any, and then
// its holds.
func (e *entry) ops(now window.Instant) (ops []store.Op) {
	if n := e.amount(now); n > 0 {
		op := e.op(n)
		if e.limit.Ban.For > 0 {
			op.Hold = &store.Hold{NoStrike: true} // this process has banned already
		}
		ops = append(ops, op)
	}
	for i := range e.holds {
		h := &e.holds[i]
		h.renewed = false
		op := e.op(h.n)
		op.Hold = &store.Hold{Hold: h.Hold, NoStrike: true}
		if w := &e.limit.Window; w.Kind == window.KindFixed && h.At.Add(w.Length) > now {
			// The store's window may begin with the report. What the hold costs would count in no window
			// if it was taken before that. The store dates it at its own now, which is earlier.
			op.Hold.At = h.End
		}
		ops = append(ops, op)
	}
	return ops
}

// reported drops what op, which ops returned, has reported or lost.
func (e *entry) reported(op *store.Op) {
	if !holds(op) {
		e.hits, e.state = 0, nil
		return
	}
	e.holds = slices.DeleteFunc(e.holds, func(h held) bool { return h.ID == op.Hold.ID })
}

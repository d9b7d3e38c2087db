package report

import (
	"slices"
	"time"

	"github.com/weirhq/weir/internal/once"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// A hold of local memory is pending as a hold, with its id and its end, so that its receipt also ends it in the store. If it
// ends before its report, what it cost is pending as hits. But if the store may have the hold, because the answer to its take
// was lost, the report records the hold and then ends it there.
//
// The end of a hold of the store is pending if the store has not answered the call that ends it. It is sent until the store
// answers, because the store ends each hold once.
//
// Another instance can end a hold before it is reported. That instance then leaves a mark in the store, which says what the
// hold has cost. A report that meets the mark counts that, and records no hold.

// held is a hold that is pending.
type held struct {
	window.Hold
	n int64 // 0: only its end is pending

	there   bool  // the store may have it, because the answer to its take was lost
	renewed bool  // while its entry was in flight, or where the store may have it; see missed
	over    bool  // it has ended while its entry was in flight, or where the store may have it; see settle and reported
	final   int64 // how many hits are final if it is over; negative: all, for the store to say

	elsewhere bool // if only its end is pending: another instance may still have to report it
	closed    bool // it is hits of a closed period; see turn
	unproven  bool // only its end is pending, and the receipt was not judged; see EndUnproven
}

// Hold adds a hold of n hits that local memory made for op's key, as the hold of the op.
// limit is the limit of the store, which may have the hold, too, if there is true.
func (r *Reporter) Hold(op *store.Op, limit *window.Compiled, n int64, there bool) {
	if r == nil || n <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	hold := held{n: n, there: there}
	hold.Hold = window.Hold{ID: op.Hold.ID, At: op.Hold.Decided, End: op.Hold.Decided.Add(limit.HoldLength())}
	r.started(!r.closed && r.table.hold(r.table.entry(idOf(op), op, limit), limit, hold), n)
}

// End ends the hold of op, as local memory has done. n hits of it are final, or all of them for
// a negative n. End reports whether the hold was pending: otherwise only the store can end it.
func (r *Reporter) End(op *store.Op, n int64) (pending bool) {
	if r == nil {
		return false
	}
	r.lock()
	defer r.mu.Unlock()
	return r.table.end(op, n, r.now())
}

// Ended tells r that the store has answered a call that ends the hold of op, after End. found reports whether the store
// had the hold.
func (r *Reporter) Ended(op *store.Op, found bool) {
	if r == nil {
		return
	}
	r.lock()
	defer r.mu.Unlock()
	r.table.ended(op, found, r.now())
}

// EndLater keeps the end of the hold of op, which the store may have, and has not answered about, for as long as the hold can
// live. n is as in End. elsewhere is true if another instance may still have to report the hold. The first end of a hold stays.
func (r *Reporter) EndLater(op *store.Op, n int64, elsewhere bool) {
	if r == nil || op.Limit.HoldLength() == 0 || !holds(op) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.table.pair(idOf(op)) {
		if e.find(op, true) != nil {
			return
		}
	}
	at := r.now()
	end := held{there: true, over: true, final: n, elsewhere: elsewhere}
	end.Hold = window.Hold{ID: op.Hold.ID, At: at, End: at.Add(op.Limit.HoldLength())}
	r.started(!r.closed && r.table.hold(r.table.entry(idOf(op), op, op.Limit), op.Limit, end), 0)
}

// Renew renews the hold of op, as local memory has done. It reports whether the hold was pending.
func (r *Reporter) Renew(op *store.Op) (pending bool) {
	if r == nil {
		return false
	}
	r.lock()
	defer r.mu.Unlock()
	return r.table.renew(op)
}

// markedFor is how long the mark of an end is kept. A report is due within a second after its instance reaches the store.
const markedFor = 10 * time.Minute

// MarkEnd returns a call that marks the end of the hold of op, after a call of the store that ends it. If that has not found
// the hold, n hits of it are final, as in End. It ends the hold that a report may have made since.
func MarkEnd(op *store.Op, n int64) store.Call {
	if op.Result.Held {
		n = 0 // what it cost has counted
	}
	end := store.Op{Space: op.Space, Limit: op.Limit, Key: op.Key, Together: op.Together, N: n}
	end.Hold = &store.Hold{Hold: window.Hold{ID: op.Hold.ID}}
	return store.Call{Verb: store.Settle, Ops: []store.Op{end}, Once: mark(op, markedFor)}
}

// mark returns the op of the mark of the end of op's hold: the record of a call, with which a record of the hold counts
// nothing. For the record of the hold itself keep is 0.
func mark(op *store.Op, keep time.Duration) *store.Op {
	key := append([]byte{0, 0}, op.Hold.ID[:]...) // no idempotency key begins like that
	key = append(append(key, op.Space.ID()...), op.Key...)
	return &store.Op{
		Space: store.NewSpace(op.Space.Namespace(), once.Space, once.Space, 0), Limit: once.NewLimit(), Key: key,
		Member: make([]byte, 16), N: max(keep.Microseconds(), 1),
	}
}

// hold adds a hold to e. It returns false if the table is full, and e is nil.
func (t *table) hold(e *entry, limit *window.Compiled, h held) bool {
	if e == nil {
		return false
	}
	e.holding = limit
	e.holds = append(e.holds, h)
	e.resize()
	return true
}

// find returns the hold of op in e, which can be nil: one that is over, or one that is not. Nil: there is none.
func (e *entry) find(op *store.Op, over bool) *held {
	if e == nil {
		return nil
	}
	i := slices.IndexFunc(e.holds, func(h held) bool { return h.ID == op.Hold.ID && h.over == over })
	if i < 0 {
		return nil
	}
	return &e.holds[i]
}

// renew renews the hold of op, if it is pending.
func (t *table) renew(op *store.Op) (pending bool) {
	for _, e := range t.pair(idOf(op)) {
		if h := e.find(op, false); h != nil {
			h.End = op.Hold.Decided.Add(e.holding.HoldLength())
			h.renewed = h.there || t.inFlight[e.id] == e
			t.saver.touch(e)
			pending = true
		}
	}
	return pending
}

// end makes n hits of the hold of op final, if it is pending. If its entry is in flight, they
// become final when the entry is pending again, or are settled in the store after the record. So they are if the store may
// have the hold.
func (t *table) end(op *store.Op, n int64, now window.Instant) (pending bool) {
	for _, e := range t.pair(idOf(op)) {
		h := e.find(op, false)
		if h == nil {
			continue
		}
		pending = true
		if h.over, h.final = true, n; n < 0 {
			h.final = h.n
		}
		t.settle(e, now)
	}
	return pending
}

// ended leaves nothing to do for a hold that is over if the store has found it. Otherwise the store does not have it, unless
// it was recorded since.
func (t *table) ended(op *store.Op, found bool, now window.Instant) {
	for _, e := range t.pair(idOf(op)) {
		if h := e.find(op, true); h != nil && (found || h.n > 0) {
			if h.there = false; found {
				h.final = 0
			}
			t.settle(e, now)
		}
	}
}

// settle makes the hits of holds of e that are over final, unless e is in flight.
func (t *table) settle(e *entry, now window.Instant) {
	if t.of(e.id) == e {
		e.settle(now)
		t.changed(e, now)
	}
}

// missed returns the call that renews the hold which op has recorded, if that was done meanwhile, or where the store may have
// had the hold before: the caller's own call may have reached the store before the record, or not at all. A hold that the
// store has ended already stays as it is.
func (e *entry) missed(op *store.Op) []store.Call {
	if !holds(op) {
		return nil
	}
	h := e.find(op, false)
	if h == nil || !h.renewed {
		return nil
	}
	return []store.Call{{Verb: store.Renew, Ops: []store.Op{e.hold(h, h.n)}}}
}

// hold returns an op about a hold of e.
func (e *entry) hold(h *held, n int64) store.Op {
	op := e.op(n)
	op.Limit, op.Hold = e.holding, &store.Hold{Hold: h.Hold, NoStrike: true}
	if h.closed {
		op.Limit = closedLimit(e.limit)
	}
	return op
}

// settle makes the hits of holds that are over final, unless the store may have the hold.
func (e *entry) settle(now window.Instant) {
	e.finish(now, func(h *held) (int64, bool) { return h.final, h.over && !h.there })
}

// mature makes the holds that have ended at now final.
func (e *entry) mature(now window.Instant) {
	e.finish(now, func(h *held) (n int64, ended bool) {
		switch ended = h.End <= now; {
		case h.n == 0: // it was the store's
			return 0, ended
		case !h.over && !e.holding.Release:
			return h.n, ended
		}
		return h.final, ended
	})
}

// finish drops the holds that end, and makes as many hits of each final as it costs.
func (e *entry) finish(now window.Instant, cost func(h *held) (n int64, ends bool)) {
	all := e.holds
	e.holds = all[:0]
	for _, h := range all {
		if n, ends := cost(&h); ends {
			e.release(&h, n, now)
		} else {
			e.holds = append(e.holds, h)
		}
	}
	e.resize()
}

// release makes n hits of a hold of e final, which the caller drops. In a window of places that counts nothing.
func (e *entry) release(h *held, n int64, now window.Instant) {
	last, _, kept := e.limit.Exported(nil, now, true)
	switch {
	case n <= 0 || e.limit.Window.Kind == window.KindHeld || h.closed:
	case !kept || h.At >= last.Start.Add(last.Length):
		e.add(n, now)
	case h.At >= last.Start:
		e.close(h.At, n, now)
	}
}

// calls returns the calls that record e at now: its hits, if there are any, and then
// its holds.
func (e *entry) calls(now window.Instant) (calls []store.Call) {
	if n := e.amount(now); n > 0 {
		op := e.op(n)
		if e.limit.Ban.For > 0 {
			op.Hold = &store.Hold{NoStrike: true} // this process has banned already
		}
		calls = append(calls, store.Call{Verb: store.Record, Ops: []store.Op{op}})
	}
	for i := range e.holds {
		h := &e.holds[i]
		if h.n == 0 {
			op := e.hold(h, h.final)
			end := store.Call{Verb: store.Settle, Ops: []store.Op{op}}
			if h.elsewhere {
				end.Once = mark(&op, markedFor)
			}
			calls = append(calls, end)
			continue
		}
		h.renewed = h.renewed && h.there
		op := e.hold(h, h.n)
		switch w := &e.limit.Window; {
		case h.closed:
			op.Hold.End = now.Add(closedFor)
		case w.Kind == window.KindFixed && h.At.Add(w.Length) > now:
			// The store's window may begin with the report. What the hold costs would count in no window
			// if it was taken before that. The store dates it at its own now, which is earlier.
			op.Hold.At = h.End
		}
		calls = append(calls, store.Call{Verb: store.Record, Ops: []store.Op{op}, Once: mark(&op, 0)})
	}
	return calls
}

// met drops a hold whose record has met the mark of its end. op has the hits and the result of the end: if that has not found
// the hold, its hits count nowhere yet.
func (e *entry) met(op *store.Op, now window.Instant) {
	e.finish(now, func(h *held) (n int64, found bool) {
		switch found = h.ID == op.Hold.ID; {
		case op.Result.Held:
			return 0, found
		case op.N < 0:
			return h.n, found
		}
		return op.N, found
	})
}

// reported drops what op, which a call of calls has, has reported or lost. Of a hold that is over by now its end stays.
func (e *entry) reported(op *store.Op) {
	if !holds(op) {
		e.hits, e.state = 0, nil
		return
	}
	e.holds = slices.DeleteFunc(e.holds, func(h held) bool { return h.ID == op.Hold.ID && (h.n == 0 || !h.over) })
	if h := e.find(op, true); h != nil {
		h.n, h.there = 0, true
	}
}

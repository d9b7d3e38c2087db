package report

import (
	"slices"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// What local memory holds is pending as a hold, with its id and its end, so that
// its receipt ends it in the store, too. A hold that ends before it was reported
// becomes hits, or nothing.

// held is a hold that is pending.
type held struct {
	window.Hold
	n int64
}

// heldWords is what a hold takes of the table's room.
const heldWords = 5

// Hold notes that local memory holds n hits for op's key, as the hold of the op.
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

// End notes that local memory has ended the hold of op, of which n hits are final:
// all of them for [window.AsHeld].
func (r *Reporter) End(op *store.Op, n int64) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.table.end(op, n, now())
}

// Renew notes that local memory has renewed the hold of op.
func (r *Reporter) Renew(op *store.Op) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, i := r.table.find(op); i >= 0 {
		e.holds[i].End = op.Hold.Decided.Add(e.limit.HoldLength())
		r.table.book.touch(e)
	}
}

// hold adds a hold of n hits. It returns false when there is no room.
func (t *table) hold(op *store.Op, limit *window.Compiled, h window.Hold, n int64) bool {
	e := t.entry(op, limit)
	if e == nil {
		return false
	}
	e.holds = append(e.holds, held{h, n})
	t.words += heldWords
	return true
}

// find returns the entry of op's key and the index of its hold there, or -1.
func (t *table) find(op *store.Op) (*entry, int) {
	e := t.entries[idOf(op)]
	if e == nil {
		return nil, -1
	}
	return e, slices.IndexFunc(e.holds, func(h held) bool { return h.ID == op.Hold.ID })
}

// end makes n hits of the hold of op final, if it is pending.
func (t *table) end(op *store.Op, n int64, now window.Instant) {
	e, i := t.find(op)
	if i < 0 {
		return
	}
	if n == window.AsHeld {
		n = e.holds[i].n
	}
	e.holds = slices.Delete(e.holds, i, i+1)
	t.book.touch(e)
	if t.words -= heldWords; n > 0 && e.limit.Limit().Hold > 0 {
		t.words += e.add(n, now)
	}
	if e.amount(now) == 0 && len(e.holds) == 0 {
		t.drop(e)
	}
}

// mature makes the holds final that have ended at now, and returns by how many
// words e grows.
func (e *entry) mature(now window.Instant) (words int) {
	limit := e.limit.Limit()
	e.holds = slices.DeleteFunc(e.holds, func(h held) bool {
		if h.End > now {
			return false
		}
		words -= heldWords
		if limit.Hold > 0 && limit.Unsettled == window.Keep {
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
		if e.limit.Bans() {
			op.Hold = &store.Hold{Quiet: true} // this process has banned already
		}
		ops = append(ops, op)
	}
	for _, h := range e.holds {
		op := e.op(h.n)
		op.Hold = &store.Hold{Hold: h.Hold, Quiet: true}
		ops = append(ops, op)
	}
	return ops
}

// reported drops what op, which ops returned, has reported, or what is lost.
func (e *entry) reported(op *store.Op) {
	if op.Hold == nil || op.Hold.ID.IsZero() {
		e.hits, e.state = 0, nil
		return
	}
	e.holds = slices.DeleteFunc(e.holds, func(h held) bool { return h.ID == op.Hold.ID })
}

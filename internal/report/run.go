package report

import (
	"context"
	"errors"
	"time"

	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

const (
	// batchSize is how many records are sent in one batch. A batch that is late is lost.
	batchSize = 128
	// batchBytes is how many bytes their keys have at most, unless a batch is one record.
	batchBytes = 64 << 10
	// partSize is how many records of one entry are sent in a batch that has no room for all, and how many entries are a sample
	// for each reason: a process that is killed meanwhile loses no more.
	partSize = 16
)

// run reports until nothing is pending. After Close it reports once more.
func (r *Reporter) run() {
	poll := firstPoll
	listen := true // Answered ends the wait early
	for open := true; open; {
		var woken bool
		open, woken = r.wait(poll, listen)
		reached, unsent := r.flush()
		listen = unsent == 0 && (reached || !woken) // else entries wait for another node than the one that answered
		if poll = min(2*poll, lastPoll); reached {
			poll = firstPoll
		}
		if r.rest(!open) {
			return
		}
	}
}

// rest reports whether the goroutine ends, because nothing is pending or r is closed. At the
// end it drops what is pending, unless that is in a side store.
func (r *Reporter) rest(end bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if end {
		if at := r.now(); r.table.saver == nil {
			for w := range r.table.waiting() {
				for e := range w.all() {
					r.dropped.Add(e.all(at))
				}
			}
		}
		return true
	}
	r.running = r.table.whole.keys > 0
	return !r.running
}

// wait waits until the store has answered a call, so that r is woken, or poll has passed. open is false if r is closed.
func (r *Reporter) wait(poll time.Duration, listen bool) (open, woken bool) {
	select {
	case <-r.answered: // from an earlier wait
	default:
	}
	r.waiting.Store(listen)
	defer r.waiting.Store(false)
	timer := time.NewTimer(poll)
	defer timer.Stop()
	select {
	case <-r.stop:
		return false, false
	case <-timer.C:
		return true, false
	case <-r.answered:
	}
	timer.Reset(pause)
	select {
	case <-r.stop:
		return false, true
	case <-timer.C:
		return true, true
	}
}

// flush reports what is pending, each entry once, as long as the store answers and for at most a second and a batch. It ends
// when a sample of what was tried before is refused. It returns whether the store was reached and did not refuse everything, and
// how many entries stay pending because they were not sent.
func (r *Reporter) flush() (reached bool, unsent int) {
	end := time.Now().Add(patience)
	var keep []*entry
	took, answers := false, r.probe()
	for goOn := answers; goOn && time.Now().Before(end); {
		var back []*entry
		var some bool
		back, some, goOn = r.report()
		keep, took = append(keep, back...), took || some
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range keep {
		r.table.back(e, r.table.triedFor(e.why), r.now())
	}
	return answers && (took || len(keep) == 0), len(keep)
}

// report reports a batch. Its results are those of [Reporter.send].
func (r *Reporter) report() (keep []*entry, some, goOn bool) {
	// Entries stay in the table until the store answers, so that their hits can still be
	// given back.
	r.mu.Lock()
	batch, again := r.table.take(batchSize, batchBytes, r.now())
	r.mu.Unlock()
	if len(batch) == 0 {
		return nil, false, false
	}
	batch, keep, some = r.prove(batch)
	batch, unsure := r.dropBlobs(batch)
	keep = append(keep, unsure...)
	if goOn = true; len(batch) > 0 {
		var back []*entry
		var sent bool
		back, sent, goOn = r.send(batch)
		keep, some = append(keep, back...), some || sent
	}
	if again && some {
		r.mu.Lock()
		r.table.retry()
		r.mu.Unlock()
	}
	return keep, some, goOn && (some || !again)
}

// op returns the op that records e.
func (e *entry) op(n int64) store.Op {
	op := store.Op{Space: e.space, Limit: e.limit, Key: []byte(e.id.key), Together: []byte(e.together), N: n}
	if e.limit.Measure == window.Distinct {
		op.Member = []byte(e.id.member)
	}
	return op
}

// probe reports whether something is pending and the store answers a read of one of some keys. Reads of a node that is away
// end at once. One that is late ends the probe, because what is sent to a node that hangs may be lost.
func (r *Reporter) probe() bool {
	r.mu.Lock()
	var pending []*entry
	for w := range r.table.waiting() {
		pending = append(pending, r.table.live(w, batchSize, r.now())...)
	}
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, e := range pending {
		r.mu.Lock()
		op := e.op(0)
		r.mu.Unlock()
		_, err := r.store.Read(ctx, &op)
		if out, _ := errors.AsType[*store.OutageError](err); out == nil || out.Reason == remote.Late {
			return err == nil
		}
	}
	return false
}

// fit fits the records of calls, made at an instant of r's clock, to what the store has: it widens limits, and dates holds
// by the store's clock.
func (r *Reporter) fit(ctx context.Context, calls []store.Call, at window.Instant) {
	var checks []store.Call
	var of []*store.Op
	for i := range calls {
		op := &calls[i].Ops[0]
		if calls[i].Verb == store.Settle || op.Limit.Window.Kind != window.KindSliding && op.Limit.Measure != window.Distinct && !holds(op) {
			continue
		}
		check := *op
		if check.N, check.Hold = 0, nil; holds(op) {
			check.Hold = &store.Hold{} // for Decided
		}
		checks, of = append(checks, store.Call{Verb: store.Check, Ops: []store.Op{check}}), append(of, op)
	}
	if len(checks) == 0 || r.store.Do(ctx, checks) != nil {
		return
	}
	for i, op := range of {
		if checks[i].Err != nil {
			continue
		}
		check := &checks[i].Ops[0]
		widen(op, check.Result.Used+op.N)
		if holds(op) {
			ahead := check.Hold.Decided.Sub(at)
			op.Hold.At, op.Hold.End = op.Hold.At.Add(ahead), op.Hold.End.Add(ahead)
		}
	}
}

// holds reports whether op records a hold.
func holds(op *store.Op) bool { return op.Hold != nil && op.Hold.ID != [12]byte{} }

// widen lets a record of op, after which hits count, forget nothing that the store has. A record under a limit drops what
// does not fit into its largest quota, but another process, or this one after a reload, may have counted more in the
// store by now, under a larger quota.
func widen(op *store.Op, hits int64) {
	l := *op.Limit.Limit
	if hits <= max(l.Quota, l.Highest) || l.Window.Kind != window.KindSliding && l.Measure != window.Distinct {
		return
	}
	l.Highest = min(2*hits, window.MaxHits) // others go on counting
	if l.Measure == window.Distinct {
		l.Highest = min(l.Highest, window.MaxEntries)
	}
	if wide, err := window.Compile(l); err == nil {
		op.Limit = wide
	}
}

// send records batch. It returns the entries that were not sent, whether there were others, and whether the next batch may be
// sent: not if a call was not answered, because the next ones may be lost as well.
func (r *Reporter) send(batch []*entry) (keep []*entry, some, goOn bool) {
	at := r.now()
	var calls []store.Call
	var of []*entry
	r.mu.Lock()
	for _, e := range batch {
		e.settle(at)
		e.turn(at)
		e.limit, e.holding = e.current(e.limit), e.current(e.holding)
		for _, call := range e.calls(at) {
			calls, of = append(calls, call), append(of, e)
		}
	}
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ctx = remote.WithTimeout(ctx, patience/2) // nobody waits for these calls
	r.fit(ctx, calls, at)
	if r.store.Do(ctx, calls) != nil { // nothing was counted
		return batch, false, false
	}
	keep, missed, some, goOn := r.conclude(batch, calls, of)
	if len(missed) > 0 {
		_ = r.store.Do(ctx, missed) // in an outage the holds last as long as they did
	}
	return keep, some, goOn
}

// conclude drops what calls, which are of entries of batch, have reported or lost. It returns the entries that were not sent,
// the calls for holds that were renewed meanwhile, and the rest of the results of send. Ends of holds are sent again if they
// may be lost.
func (r *Reporter) conclude(batch []*entry, calls []store.Call, of []*entry) (keep []*entry, missed []store.Call, some, goOn bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	goOn = true
	pending := map[*entry]bool{}
	for i, e := range of {
		op, n := &calls[i].Ops[0], calls[i].Ops[0].N
		end := calls[i].Verb == store.Settle
		met := !end && calls[i].Once != nil && calls[i].Once.Result.Before > 0
		if end || met {
			n = 0
		}
		out, _ := errors.AsType[*store.OutageError](calls[i].Err)
		switch {
		case hook.HasResults(calls[i].Err):
			r.recorded.Add(n)
		case out != nil && (out.Uncounted || end && out.Reason != remote.Foreign):
			pending[e], e.why, goOn = true, out.Reason, goOn && out.Uncounted
			continue
		default:
			r.lost.Add(n)
			goOn = goOn && out != nil && out.Reason == remote.Foreign // which other keys need not have
		}
		if some = true; met {
			e.met(op, r.now())
		} else {
			missed = append(missed, e.missed(op)...)
			e.reported(op)
		}
		e.resize()
	}
	for _, e := range batch {
		switch {
		case pending[e]:
			keep = append(keep, e)
		case !e.empty(r.now()): // ends and what they cost, for the next batch
			r.table.back(e, r.table.entries, r.now())
		default:
			r.table.done(e)
		}
	}
	return keep, missed, some, goOn
}

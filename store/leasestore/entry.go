package leasestore

import (
	"bytes"
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/lease"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

const (
	millisecond = lease.Time(time.Millisecond)

	// backOff is how long nothing is asked after a request without an answer.
	backOff = 25 * millisecond

	// rounds is how often a call waits for a lease before the store decides it.
	rounds = 3

	// idleAfter is how long a lease can be unused, at most, until it is given back.
	idleAfter = 100 * millisecond

	// cold is how many hits in the length of a lease, or fewer, end the leases of a key.
	cold = 2
)

// entry is a leased key.
type entry struct {
	hash uint64
	op   store.Op // with its own copies of the keys
	key  *lease.Key

	known atomic.Pointer[known] // what the store last said
	back  atomic.Int64          // hits that were spent here, and put back because another limit denied

	mu      sync.Mutex
	asked   chan struct{} // guarded by mu; closed when the request in flight is answered
	demand  lease.Demand  // guarded by mu
	waiting int64         // guarded by mu; hits of calls that wait
	direct  int64         // guarded by mu; hits that went to the store
	trip    lease.Time    // guarded by mu; the time in which the store answers
	pause   lease.Time    // guarded by mu; until then nothing is asked
	probes  bool          // guarded by mu; the next lease is for one hit, to see how far the store is
	checked lease.Time    // guarded by mu; when it was last looked whether the key idles
	before  int64         // guarded by mu; hits by then
	timer   *time.Timer   // guarded by mu
	gone    bool          // guarded by mu; not in the table any more
}

// known is what the store has said of a key under a limit. It does not change.
type known struct {
	limit *window.Limit
	left  int64      // what nobody had used or leased
	reset lease.Time // when that was all of the quota again
}

// entry returns the entry of the key of op. If there is none, and take is set, the key is hot, and its quota
// is large enough, there is one from now on. It returns nil if the key is not leased.
func (s *leases) entry(op *store.Op, take bool) *entry {
	hash := hashOf(op)
	if e := s.keys.findHash(op, hash); e != nil || !take {
		return e
	}
	q, ok := s.quotaOf(op.Limit)
	if !ok || !s.keys.heat(hash, s.now(), q.Length(0)) || !s.begin() {
		return nil
	}
	defer s.work.Done()
	e := &entry{hash: hash, key: lease.New(max(op.Limit.Lease, 0))}
	e.op = store.Op{Space: op.Space, Limit: op.Limit, Key: bytes.Clone(op.Key), Together: bytes.Clone(op.Together)}
	e.known.Store(&known{limit: op.Limit.Limit})
	now := s.now()
	e.demand.Start(now, hot*op.N, q.Length(0))
	e.checked = now
	if e = s.keys.add(e); e != nil {
		e.renew(s, now)
	}
	return e
}

// quotaOf returns what the processes share under a limit, and whether it can be leased.
func (s *leases) quotaOf(l *window.Compiled) (lease.Quota, bool) {
	q := lease.Quota{Quota: min(l.Quota, l.Capacity()), Window: lease.Time(l.Window.Length), Nodes: max(int64(s.nodes()), 1)}
	if l.Window.Kind == window.KindCalendar {
		q.Window = lease.Time(time.Minute) // at least
	}
	return q, l.CanReserve() && q.Length(0) > 0 && q.Quota >= lease.LeastQuota(q.Nodes)
}

// follow returns what is known of e under the limit of op. If the quota was lowered, it recalls what is leased under the
// old one first. It returns nil if op is for the store, because e is leased under another limit, or has another credit.
func (e *entry) follow(ctx context.Context, s *leases, op *store.Op) *known {
	k := e.known.Load()
	if k.limit == op.Limit.Limit {
		return k
	}
	e.mu.Lock()
	k = e.known.Load()
	old, settles := e.op, []lease.Settle(nil)
	if op.Limit.Quota < k.limit.Quota {
		settles = e.recallLocked()
	}
	_, open := e.key.Next()
	_, leasable := s.quotaOf(op.Limit)
	if *k.limit == *op.Limit.Limit || !open && leasable && op.Limit.Lease == k.limit.Lease {
		k = &known{op.Limit.Limit, min(k.left, op.Limit.Quota), k.reset}
		e.op.Limit = op.Limit
		e.known.Store(k)
	} else {
		k = nil
	}
	e.mu.Unlock()
	s.settle(ctx, old, settles)
	return k
}

// hits returns how many hits were asked for. e.mu is locked.
func (e *entry) hits() int64 { return e.key.Spent() + e.back.Load() + e.waiting + e.direct }

// unserved counts hits that the store decides.
func (e *entry) unserved(s *leases, n int64) {
	e.mu.Lock()
	e.direct += n
	e.mu.Unlock()
	e.renew(s, s.now())
}

// renew asks for a lease, unless that was done since.
func (e *entry) renew(s *leases, now lease.Time) {
	if e.key.View().Asked() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ask(s, now)
}

// ask asks for a lease, and reports whether a request is in flight. e.mu is locked.
func (e *entry) ask(s *leases, now lease.Time) bool {
	if e.asked != nil {
		return true
	}
	if e.gone || now < e.pause {
		return false
	}
	q, ok := s.quotaOf(e.op.Limit)
	if !ok {
		return false
	}
	e.demand.Sample(now, e.hits())
	if e.probes {
		e.trip = q.FarthestTrip()
	}
	terms, ok := e.demand.Terms(q, e.key.View(), now, e.trip, e.waiting)
	if !ok {
		// The store is too far away, or was slow only once: a lease of one hit will tell.
		e.pause, e.probes = now+q.Window, true
		return false
	}
	if e.probes {
		terms.Want, terms.Min, e.probes = 1, 1, false
	}
	if !s.begin() {
		return false
	}
	var id lease.ID
	_, _ = rand.Read(id[:])
	a := e.key.Ask(s.now(), id, terms)
	if a == nil {
		s.work.Done()
		return false
	}
	settles := e.key.End(now)
	e.asked = make(chan struct{})
	s.asked.Add(1)
	go e.reserve(s, a, e.op, settles, e.asked)
	return true
}

// reserve has the store answer a. op is that of e when it was asked.
func (e *entry) reserve(s *leases, a *lease.Ask, op store.Op, settles []lease.Settle, done chan struct{}) {
	defer s.work.Done()
	answer := s.reserve(&op, a, settles)
	e.mu.Lock()
	now := s.now()
	if took := now - a.Sent; e.trip == 0 {
		e.trip = took
	} else {
		e.trip += (min(took, 2*e.trip) - e.trip) / 4 // one slow answer does not make the store far away
	}
	over := settles
	settles = e.key.End(now)
	if answer.err == nil && answer.used < e.key.Open() { // the store has lost what is leased
		dropped := e.key.Recall()
		s.dropped.Add(int64(len(dropped)))
		settles = append(settles, dropped...)
	}
	switch {
	case answer.err != nil:
		s.lost.Add(1)
		e.pause = now + backOff
		if lost := e.key.Lost(a); !answer.uncounted {
			settles = append(settles, lost...)
		}
	case answer.n > 0 && answer.spent == a.Report && !answer.unconfirmed:
		s.granted.Add(answer.n)
		settles = append(settles, e.key.Granted(a, now, answer.n, answer.length)...)
		if _, open := e.key.Next(); !open { // the answer was late, or the period of the window is about to end
			e.pause = now + a.Length/8
		}
	default:
		s.refused.Add(1)
		if answer.n > 0 { // which may not be spent
			settles = append(settles, lease.Settle{ID: a.ID})
		}
		e.key.Refused(a, now, answer.spent, answer.retry)
		e.demand.Skip(now+min(answer.retry, a.Length), e.hits())
		if answer.unconfirmed {
			e.pause = now + a.Length
		}
	}
	if k := e.known.Load(); answer.err == nil && k.limit == op.Limit.Limit {
		e.known.Store(&known{k.limit, answer.left, now + answer.reset})
	}
	if e.asked == done {
		e.asked = nil
	}
	if !e.gone {
		e.arm(s, now)
	}
	e.mu.Unlock()
	close(done)
	if answer.err != nil {
		s.send(context.Background(), settling(op, over))
	}
	s.settle(context.Background(), op, settles)
}

// arm sets the timer to the next end of a lease, or to when it is looked whether the key idles. e.mu is locked.
func (e *entry) arm(s *leases, now lease.Time) {
	next := now + idleAfter
	if q, ok := s.quotaOf(e.op.Limit); ok && q.Length(e.trip) > 0 {
		next = now + min(max(q.Length(e.trip)/2, millisecond), idleAfter)
	}
	if end, ok := e.key.Next(); ok {
		next = min(next, end)
	}
	wait := time.Duration(max(next-now, 1))
	if e.timer == nil {
		e.timer = time.AfterFunc(wait, func() { e.wake(s) })
	} else {
		e.timer.Reset(wait)
	}
}

// wake ends leases that are over or idle, and lets go of a key that is not hot any more.
func (e *entry) wake(s *leases) {
	if !s.begin() {
		return
	}
	defer s.work.Done()
	e.mu.Lock()
	if e.gone {
		e.mu.Unlock()
		return
	}
	now := s.now()
	settles := e.key.End(now)
	if took := now - e.checked; took >= e.checks(s) {
		hits := e.hits()
		recent := hits - e.before
		e.checked, e.before = now, hits
		if left := e.key.View().Left(now); left > 0 && e.asked == nil {
			if end, ok := e.key.Next(); ok && float64(recent)*float64(end-now) < float64(left)*float64(took)/6 {
				settles = append(settles, e.key.Recall()...)
			}
		}
		if e.key.Unrecorded() > 0 && !e.key.View().Refuses(now) {
			e.ask(s, now)
		}
		if recent <= cold && now >= e.pause && e.key.Retire(now) {
			e.gone = true
			s.keys.remove(e)
		}
	}
	if !e.gone {
		e.arm(s, now)
	}
	op := e.op
	e.mu.Unlock()
	s.settle(context.Background(), op, settles)
}

// checks returns how long it takes until it is looked again whether the key idles. e.mu is locked.
func (e *entry) checks(s *leases) lease.Time {
	q, _ := s.quotaOf(e.op.Limit)
	if n := q.Length(e.trip); n > 0 {
		return min(idleAfter, n/4)
	}
	return q.Window / 4 // the store is far away, and all calls may wait for it meanwhile
}

// far reports whether the store decides what no lease covers, without waiting for the next one. e.mu is locked.
func (e *entry) far(s *leases) bool {
	q, _ := s.quotaOf(e.op.Limit)
	return q.Far(e.trip)
}

// outlasts reports whether what is spent of v at now can be put back after a call of the store, before the lease ends. Otherwise the
// store should decide e with the other limits of a call.
func (e *entry) outlasts(v *lease.View, now lease.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return v.Lasts(now + 2*e.trip)
}

// await waits until n hits can be decided here, unless the store has to decide them.
func (e *entry) await(ctx context.Context, s *leases, n int64) {
	for i := range rounds {
		if e.key.View().Has(s.now(), n) || n > 1 && i > 0 {
			return
		}
		e.mu.Lock()
		if now := s.now(); e.key.View().Has(now, n) || !e.ask(s, now) || e.far(s) {
			e.mu.Unlock()
			return
		}
		asked := e.asked
		e.waiting += n
		e.mu.Unlock()
		select {
		case <-asked:
		case <-ctx.Done():
		}
		e.mu.Lock()
		e.waiting -= n
		e.mu.Unlock()
		if ctx.Err() != nil {
			return
		}
	}
}

// recall gives back what is leased. It does not wait for a request in flight, whose grant is then not used.
func (e *entry) recall(ctx context.Context, s *leases) {
	e.mu.Lock()
	op, settles := e.op, e.recallLocked()
	e.mu.Unlock()
	s.settle(ctx, op, settles)
}

func (e *entry) recallLocked() []lease.Settle {
	e.asked = nil // calls that wait for it find nothing leased then
	return e.key.Recall()
}

// end lets go of e. It returns the calls that give back its leases, and then have the store count what was spent on credit, as far as it
// fits.
func (e *entry) end(s *leases) (calls []store.Call) {
	e.mu.Lock()
	e.gone = true
	if e.timer != nil {
		e.timer.Stop()
	}
	op, settles := e.op, e.recallLocked()
	e.mu.Unlock()
	s.keys.remove(e)
	s.close(settles)
	calls = settling(op, settles)
	if op.N = e.key.Unrecorded(); op.N > 0 {
		op.UpTo = true
		calls = append(calls, store.Call{Verb: store.Take, Ops: []store.Op{op}})
	}
	return calls
}

// answer writes the result of op, which memory has decided as d at now.
func (k *known) answer(op *store.Op, d lease.Decision, now lease.Time, counted bool) {
	quota := k.limit.Capacity()
	r := window.Result{Quota: quota, Allowed: d.Answer == lease.Admitted}
	if r.Remaining = k.left; r.Allowed {
		r.Remaining += d.Left
	} else {
		r.Remaining = min(r.Remaining, op.N-1)
		r.RetryAfter = micros(d.Wait)
	}
	r.Remaining = min(max(r.Remaining, 0), quota)
	r.ResetAfter = max(micros(k.reset-now), r.RetryAfter)
	if r.Used = quota - r.Remaining; counted {
		r.Used = max(r.Used, op.N)
		r.Remaining, r.Before = max(quota-r.Used, 0), r.Used-op.N
	} else {
		r.Before = r.Used
	}
	op.Result = r
}

// micros returns t, which is over at zero, in whole microseconds, rounded up.
func micros(t lease.Time) time.Duration {
	return (max(time.Duration(t), 1) + time.Microsecond - 1).Truncate(time.Microsecond)
}

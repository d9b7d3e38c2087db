// Package report records in a shared store what local memory counted while the store was
// unavailable, so that windows that are still open include it.
//
// # What is pending
//
// A [Reporter] merges what it is given per key and member into a window state of the key's
// limit, which has the hits since the last report. Each hold of local memory is pending
// separately, and so are ends whose receipts cannot be judged yet, and the hits of the last closed period of a
// limit that keeps it. Other hits that leave the window before the store answers are not reported. A refund
// subtracts pending hits, never below zero, including those of a report in flight that the
// store then refuses. The number and the memory of pending keys are limited, for all namespaces together; the
// hits of further keys are counted in [Stats] and dropped.
//
// # When it is reported
//
// A goroutine runs while something is pending. It waits until another call reports that the
// store answers ([Reporter.Answered]), and polls the store at most once a second. It reads some
// keys until one is answered, and then records what is pending in batches, dated
// at the report or in the closed period. A batch takes the same number of keys from each namespace, so that none waits for one with
// many. Of what the store has refused, as one that is full does, the goroutine sends a sample each time, and the rest when some
// of that is recorded. A key with many holds is sent in parts, after keys with few.
//
// # Nothing is counted twice
//
// An entry is not pending any more once it is sent. It becomes pending again only if the
// store's reason means that the call was not sent or was refused. [remote.Unconfirmed] means that it has
// counted. After any other outage it may have, so its hits are counted in [Stats] as lost and are
// not sent again. Ends of holds are: a second one finds nothing.
//
// # Restarts
//
// With a [hook.SideStore], the next process reports what is pending. An entry is
// dropped from the side store before it is sent, so two processes never send the same entry.
package report

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

const (
	// MaxKeys is the maximum number of keys and members that wait for a report if all are of one namespace. Those of all
	// namespaces together are at most a third more.
	MaxKeys = 100_000
	// maxWords bounds the words of their texts, states and holds likewise: 32 MB.
	maxWords = 40 * MaxKeys

	pause     = 10 * time.Millisecond  // after the first answer, to collect more
	firstPoll = 100 * time.Millisecond // then twice as long each time, up to:
	lastPoll  = time.Second
	patience  = time.Second // for one read, for the calls of one batch, each of which has half, and for Close
)

// Reporter reports to one store. Make one with [New]. Its methods are safe for
// concurrent use, and do nothing on a nil Reporter.
type Reporter struct {
	store store.Store
	began time.Time
	side  hook.SideStore // or nil
	keyed hook.Keyed     // the store, or nil: it has no secret of receipts

	mu      sync.Mutex
	table   table // guarded by mu
	running bool  // guarded by mu: there is a goroutine
	closed  bool  // guarded by mu

	recorded, lost, dropped atomic.Int64 // hits

	waiting  atomic.Bool   // the goroutine waits for Answered
	answered chan struct{} // wakes the goroutine
	restored chan struct{} // closed when what the last process saved is in the table
	stop     chan struct{} // closed by Close
	tasks    sync.WaitGroup
	end      func() // ends the saving
}

// Stats are the numbers of a [Reporter]. All but Pending are hits since its
// start, where a distinct member counts as one.
type Stats struct {
	Pending  int   // keys and members that wait for a report
	Recorded int64 // in the store
	Lost     int64 // in reports without an answer; they may have counted
	Dropped  int64 // of keys for which there was no room
}

// New returns a Reporter to s. It starts no goroutine until something is
// pending. side, when not nil, keeps what is pending for the next process; Close is called
// before side is closed.
func New(s store.Store, side hook.SideStore) *Reporter {
	r := &Reporter{
		store: s, began: time.Now(), side: side, keyed: hook.Of(s).Keyed,
		table:    table{entries: entries{}, tried: map[store.Reason]entries{}, inFlight: map[id]*entry{}, rooms: map[string]*room{}, saver: newSaver(side)},
		answered: make(chan struct{}, 1), restored: make(chan struct{}), stop: make(chan struct{}), end: func() {},
	}
	if side != nil {
		r.end = side.Follow(r.save)
		r.tasks.Go(r.restore)
	}
	return r
}

// Add adds n hits that local memory counted for op's key. limit is the limit
// of the store, which op may have a share of. Add does not keep op's slices.
func (r *Reporter) Add(op *store.Op, limit *window.Compiled, n int64) {
	if r == nil || n <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started(!r.closed && r.table.add(op, limit, n, r.now()), n)
}

// started starts the goroutine, if need be, after n hits were added, or counts
// them as dropped. It needs mu.
func (r *Reporter) started(added bool, n int64) {
	if !added {
		r.dropped.Add(n)
		return
	}
	r.awake()
}

// awake starts the goroutine if it is needed. It needs mu.
func (r *Reporter) awake() {
	if !r.running && !r.closed && r.table.whole.keys > 0 {
		r.running = true
		r.tasks.Go(r.run)
	}
}

// Sub subtracts n hits that local memory gave back for op's key. Hits that were reported, or
// that a report in flight records, stay counted in the store.
func (r *Reporter) Sub(op *store.Op, n int64) {
	if r == nil || n <= 0 {
		return
	}
	r.lock()
	defer r.mu.Unlock()
	r.table.sub(op, n, r.now())
}

// lock locks r when what the last process saved is there: see Restored.
func (r *Reporter) lock() {
	if r.side != nil {
		select {
		case <-r.restored:
		case <-r.stop:
		}
	}
	r.mu.Lock()
}

// Waiting returns how many hits of op's key wait for a report.
func (r *Reporter) Waiting(op *store.Op) (n int64) {
	if r == nil {
		return 0
	}
	r.lock()
	defer r.mu.Unlock()
	for _, e := range r.table.pair(idOf(op)) {
		if e != nil {
			n += e.amount(r.now())
		}
	}
	return n
}

// Forget drops what is pending for op's key.
func (r *Reporter) Forget(op *store.Op) {
	if r == nil {
		return
	}
	r.lock()
	defer r.mu.Unlock()
	r.table.forget(op)
}

// enlist counts n more engines of a namespace.
func (r *Reporter) enlist(namespace string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.table.room(namespace).engines += n
	r.table.tidy(namespace)
}

// UseBans gives r the bans of the rules that are in force in namespace, by the identity of their
// spaces. What is pending may wait under the limits of earlier rules. A report under a limit without a ban would
// end the ban of a key that another process has banned by the new rules.
func (r *Reporter) UseBans(namespace string, of map[string]window.Ban) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.table.room(namespace).bans = of
}

// current returns the limit of an entry, or of its holds, with the ban of the rule that is in force.
func (e *entry) current(limit *window.Compiled) *window.Compiled {
	ban, ok := e.room.bans[e.id.space]
	if !ok || ban == limit.Ban {
		return limit
	}
	l := *limit.Limit
	l.Ban = ban
	if banning, err := window.Compile(l); err == nil {
		return banning
	}
	return limit
}

// Answered tells r that the store has answered a call. It costs an atomic load.
func (r *Reporter) Answered() {
	if r != nil && r.waiting.Load() && r.waiting.CompareAndSwap(true, false) {
		select {
		case r.answered <- struct{}{}:
		default:
		}
	}
}

// Stats returns the numbers of r.
func (r *Reporter) Stats() Stats {
	if r == nil {
		return Stats{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return Stats{r.table.whole.keys, r.recorded.Load(), r.lost.Load(), r.dropped.Load()}
}

// Close reports what is pending, if the store answers within a second, and
// waits for the goroutine. What is pending then stays in the side store, or is dropped if there
// is none. The caller closes the store and the side store afterwards.
func (r *Reporter) Close() {
	if r == nil {
		return
	}
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.stop)
	}
	r.mu.Unlock()
	r.tasks.Wait()
	r.end()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.table.entries, r.table.tried, r.table.whole = nil, nil, amount{}
}

// now reads the clock of the memory whose hits are reported: that of the side store, or else the time at which r was made and
// what has passed since. It does not follow steps of the wall clock, with which open windows would look as if they had ended.
func (r *Reporter) now() window.Instant {
	if r.side != nil {
		return r.side.Now()
	}
	return window.At(r.began.Add(time.Since(r.began)))
}

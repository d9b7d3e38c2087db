// Package record keeps the requests of the last hour in memory, so that changed rules can be tried on them. Refunds and
// the ends of holds are among them: without these, a trial would deny what was never denied. It is fed by the engine's observer, and writes the format of logs that package logs calls weir.
//
// The memory is bounded. If it does not hold an hour of requests, a [Recorder] keeps only a share of them: a half,
// a quarter and so on. It samples by key, so that of a key it has either all requests or none: a request belongs to
// the key of the first rule that matches it and has one. Requests of that key that other rules count under other
// keys can be missing there.
package record

import (
	"context"
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Age is how long a request is kept.
const Age = time.Hour

const (
	// chunkSize is the size of the parts in which memory is allocated and freed. It is larger than any request.
	chunkSize = 256 << 10

	// lanes is the number of locks. A request takes the lane of its key.
	lanes = 8

	// MinBytes is the minimum of the memory of a [Recorder].
	MinBytes = 4 * lanes * chunkSize
)

// Recorder keeps requests. Make one with [New]. It is safe for concurrent use.
type Recorder struct {
	hide  func(value string) string // or nil
	most  int                       // chunks
	seed  maphash.Seed
	level atomic.Int32 // requests whose hash begins with so many zeros are kept
	lanes [lanes]lane

	mu      sync.Mutex // after that of a lane
	full    []*chunk   // guarded by mu; the oldest first
	chunks  int        // that are allocated; guarded by mu
	evicted int64      // the time up to which chunks were dropped, in microseconds; guarded by mu
	since   time.Time  // when the level was set; guarded by mu
	written int        // bytes since then; guarded by mu
}

// lane is the requests of some of the keys.
type lane struct {
	mu    sync.Mutex
	chunk *chunk // guarded by mu; nil at first
	_     [64]byte
}

// chunk is a part of the memory. While it is the current one of a lane it is guarded by the lane's lock, and
// afterwards immutable.
type chunk struct {
	lane   int
	shapes []*shape // of its requests
	shaped int      // the sizes of shapes
	data   []byte
	base   int64 // the time at which it was begun, in microseconds
	last   int64 // the time of the last request
	level  int32 // the highest level at which a request was added
	pinned bool  // a reader may use it; guarded by Recorder.mu
}

// shape says what the values of a request are.
type shape struct {
	namespace string
	names     []string
	hidden    []bool
	bytes     int // the memory that it takes
}

// New returns a recorder that uses so many bytes, at least [MinBytes]. hide makes the text that is kept of a value
// that is part of a key; equal values must have equal texts. nil keeps values as they are.
func New(size int64, hide func(value string) string) *Recorder {
	return &Recorder{hide: hide, most: int(max(size, MinBytes) / chunkSize), seed: maphash.MakeSeed(), since: time.Now()}
}

// Requests records the requests of one namespace. A nil Requests records nothing.
type Requests struct {
	to        *Recorder
	namespace string
	shape     atomic.Pointer[shapeOf]
}

// shapeOf is the shape of the requests that rules decide. The pointer is weak because lists of rules can be large.
type shapeOf struct {
	*shape
	rules weak.Pointer[rule.Set]
}

// Of returns what records the requests of a namespace. r can be nil.
func (r *Recorder) Of(namespace string) *Requests {
	if r == nil {
		return nil
	}
	return &Requests{to: r, namespace: namespace}
}

// Requested records a request that was decided by the rules of the namespace. An engine calls it.
func (s *Requests) Requested(verb store.Verb, q *weir.Request, d *weir.Decision, matched []int, values []string, began time.Time) {
	if s == nil || q.Rules != nil {
		return
	}
	r, rules := s.to, d.Rules
	a := asked{verb: verb, hits: q.Hits, feedback: q.Feedback, final: q.Final, hold: d.Receipt.Take.ID}
	if verb.NeedsReceipt() {
		a.hold = q.Receipt.Take.ID
	}
	var room [256]byte
	hash := r.hash(room[:0], rules, matched, values, a.hold)
	zeros := bits.LeadingZeros64(hash)
	if zeros < int(r.level.Load()) {
		return
	}
	of := s.shape.Load()
	if of == nil || of.rules.Value() != rules {
		of = s.newShape(of, rules)
		s.shape.Store(of)
	}
	size := of.size(values, &a)
	if size > chunkSize {
		return
	}
	in := int(hash % lanes)
	l := &r.lanes[in]
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.chunk
	if c == nil || c.size()+size > chunkSize {
		c = r.next(c, in, began)
		l.chunk = c
	}
	c.add(r, of.shape, &a, values, began.UnixMicro(), zeros)
	c.level = max(c.level, r.level.Load())
}

// hash returns the hash of the key by which a request is sampled: that of the end of a hold is that of its take. room is
// memory for it.
func (r *Recorder) hash(room []byte, rules *rule.Set, matched []int, values []string, hold [12]byte) uint64 {
	for _, i := range matched {
		if room = rules.Compiled().AppendKey(room[:0], i, values); len(room) > 0 {
			return maphash.Bytes(r.seed, room)
		}
	}
	if hold != [12]byte{} { // the values can differ: a settle has the real cost
		return maphash.Bytes(r.seed, hold[:])
	}
	var h maphash.Hash
	h.SetSeed(r.seed)
	for i, v := range values {
		_, _ = h.WriteString(v) // never an error
		_ = h.WriteByte(byte(i))
	}
	return h.Sum64()
}

// newShape returns the shape of requests that rules decide: that of before, which can be nil, if it is the same.
func (s *Requests) newShape(before *shapeOf, rules *rule.Set) *shapeOf {
	names := rules.Compiled().Names()
	hidden := make([]bool, len(names))
	for i := range rules.Len() {
		r := rules.Rule(i)
		for at, name := range names {
			if s.to.hide != nil && (slices.Contains(r.Per, name) || r.Measure == window.Distinct && r.Of == name) {
				hidden[at] = true
			}
		}
	}
	of := &shapeOf{rules: weak.Make(rules)}
	if before != nil && slices.Equal(before.names, names) && slices.Equal(before.hidden, hidden) {
		of.shape = before.shape
		return of
	}
	const fixed, each = 128, 32 // bytes of a shape and of a name beside its text
	of.shape = &shape{namespace: s.namespace, hidden: hidden, bytes: fixed}
	for _, name := range names {
		of.names = append(of.names, strings.Clone(name)) // not the text of the rules file
		of.bytes += each + len(name)
	}
	return of
}

// next returns an empty chunk for a lane, in the place of c, which is full, or nil.
func (r *Recorder) next(c *chunk, lane int, now time.Time) *chunk {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c != nil {
		r.full = append(r.full, c)
		r.written += c.size()
	}
	var free *chunk
	old := now.Add(-Age).UnixMicro()
	for len(r.full) > 0 && (r.full[0].last < old || r.chunks >= r.most && free == nil) {
		c := r.full[0]
		if c.last >= old { // the memory is too small for an hour
			r.thin(now)
		}
		r.evicted = max(r.evicted, c.last)
		r.full = slices.Delete(r.full, 0, 1)
		if r.chunks--; !c.pinned && free == nil {
			free = c
		}
	}
	r.chunks++
	if free == nil {
		free = &chunk{data: make([]byte, 0, chunkSize)}
	}
	clear(free.shapes)
	*free = chunk{lane: lane, shapes: free.shapes[:0], data: free.data[:0], base: now.UnixMicro(), level: r.level.Load()}
	return free
}

// settled is how long a level is kept before it is judged, unless a half of the memory was written meanwhile.
const settled = time.Minute

// Run drops what is older than [Age], at most an hour later, and adapts the share to the number of requests, until ctx
// is done.
func (r *Recorder) Run(ctx context.Context) {
	tick := time.Tick(settled)
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick:
			r.drop(now)
		}
	}
}

// drop drops what is old, and makes the share larger if that fits.
func (r *Recorder) drop(now time.Time) {
	defer r.lock()()
	old := now.Add(-Age).UnixMicro()
	written := r.written
	for i := range r.lanes {
		if c := r.lanes[i].chunk; c != nil {
			written += c.size()
			switch {
			case c.last < old:
				r.chunks--
			case c.base < old: // its first requests must not stay until it is full
				r.full = append(r.full, c)
				r.written += c.size()
			default:
				continue
			}
			r.lanes[i].chunk = nil
		}
	}
	for len(r.full) > 0 && r.full[0].last < old {
		r.evicted = max(r.evicted, r.full[0].last)
		r.full = slices.Delete(r.full, 0, 1)
		r.chunks--
	}
	took := now.Sub(r.since)
	if level := r.level.Load(); level > 0 && took > Age/6 && 2*float64(written)*float64(Age)/float64(took) < 0.7*float64(r.most*chunkSize) {
		r.level.Store(level - 1)
		r.since, r.written = now, 0
	}
}

// lock locks all lanes and r. unlock unlocks them.
func (r *Recorder) lock() (unlock func()) {
	for i := range r.lanes {
		r.lanes[i].mu.Lock()
	}
	r.mu.Lock()
	return func() {
		r.mu.Unlock()
		for i := range r.lanes {
			r.lanes[i].mu.Unlock()
		}
	}
}

// thin makes the share smaller that is kept, so that an hour fits. It needs mu.
func (r *Recorder) thin(now time.Time) {
	took, room := now.Sub(r.since), float64(r.most*chunkSize)
	hourly := float64(r.written) * float64(Age) / float64(max(took, time.Millisecond))
	switch {
	case took >= settled:
	case float64(r.written) >= room/2:
		hourly = min(hourly, 2*room) // one level, because this may be no more than a burst
	default:
		return // too little is known
	}
	for level := r.level.Load(); hourly > room && level < maxLevel; hourly /= 2 {
		level++
		r.level.Store(level)
		r.since, r.written = now, 0
	}
}

// maxLevel bounds the levels: a share of 1/65,536.
const maxLevel = 16

package memstore

import (
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore/internal/table"
	"github.com/weirhq/weir/window"
)

// A hot key is one that takes most of the calls to its part of a shard. Takes of
// a hot key are decided without the shard's lock, in one of two ways:
//
//   - The state fits in a word (window.Packed). Then the hot key has the state, and
//     a take is a compare-and-swap. The table's slot only says that the state is
//     lent. Whoever finds the key under the lock takes the state back.
//   - The key is denied, and the answer stays the same until an instant. Then the
//     hot key has the answer, and the table the state. Whoever changes the state
//     drops the answer first.
//
// See the package comment for what makes this safe. A hot key is made for one key
// under one limit, and is never used for another: a goroutine that still holds it
// after it was replaced finds that it has no state and no answer.
type hot struct {
	key   table.Hash
	limit *window.Compiled
	packs bool // the first kind: packed is set

	// used is set by takes, and cleared when another key asks for the place.
	used atomic.Bool

	// word is the state, or gone. Invariant: it is changed to and from gone
	// under the lock of the shard, and it is not gone exactly when the slot of
	// the key is lent.
	word atomic.Uint64

	// turn is odd while there is no answer, and changes whenever there is
	// another one. It is changed under the lock of the shard, and so are fits
	// and reset, while it is odd: the instants at which the hit fits and at
	// which the key expires.
	turn        atomic.Uint64
	fits, reset atomic.Int64

	// noted is the word as the journal has it, or gone. It is guarded by the
	// shard's mu.
	noted uint64

	packed window.Packed // of the first kind

	_ [32]byte // 128 bytes in all, so that two hot keys never share a cache line
}

// gone is no word of a state.
const gone = 1 << 63

// hotKeys are the hot keys of a shard: at most one for each value of some bits of
// the hash. They take 776 bytes, so only a shard with a key that is called often
// gets them.
type hotKeys struct {
	// hot are set under the lock of the shard. Takes without a lock read them, so the
	// votes, which calls that lock the shard write, are on other cache lines.
	hot   [hotPlaces]atomic.Pointer[hot]
	votes [hotPlaces]votes // guarded by the lock of the shard

	// enough is how many more calls for one key than for others make it hot.
	enough int
}

const (
	hotPlaces = 32
	enough    = 16

	// leastDenial is the shortest wait that is worth keeping.
	leastDenial = 20 * time.Microsecond
)

// votes is the key for which most calls to a place come that are not decided there:
// candidate, when n is not 0. This is the majority vote of Boyer and Moore.
type votes struct {
	candidate table.Hash
	n         int
}

// placeOf returns the place for h. It uses other bits of h than the choice of the
// shard and the slot, and than that of the segment unless there are a million.
func placeOf(h table.Hash) int { return int((h >> 32) % hotPlaces) }

// hotKey returns the hot key for h, or nil.
func (sh *shard) hotKey(h table.Hash) *hot {
	if keys := sh.hot.Load(); keys != nil {
		if e := keys.hot[placeOf(h)].Load(); e != nil && e.key == h {
			return e
		}
	}
	return nil
}

// takeHot decides a take or a check of n hits of h without a lock, if that key is hot.
// It reports whether it did. It has no place as its argument, because to clear one
// takes 2 ns.
func (s *Store) takeHot(ks *keyspace, sh *shard, h table.Hash, limit *window.Compiled, verb store.Verb, n int64, r *window.Result) (done bool) {
	e := sh.hotKey(h)
	if e == nil || e.limit != limit {
		return false
	}
	if !e.used.Load() {
		e.used.Store(true)
	}
	var now moment
	switch {
	case !e.packs:
		now, done = e.denied(&s.clock, ks.onWall, n, r)
	case verb == store.Take:
		now, done = e.take(&s.clock, ks.onWall, n, r)
	}
	if done && now.steady-window.Instant(sh.tended.Load()) >= tendAfter {
		s.tendHot(ks, sh, h)
	}
	return done
}

// take takes n hits from the word.
//
// The word is read before the clock, and compared after it. So hits that are
// denied were denied at the very instant that the clock showed, and a goroutine
// that is descheduled in between is not denied for hits that came after it had
// read the clock. Hits that an earlier reading admits, a later one admits too, so
// a take that meets another one need not read the clock again for that.
func (e *hot) take(c *clock, onWall bool, n int64, r *window.Result) (now moment, ok bool) {
	word, fresh := e.word.Load(), false
	for word != gone {
		if !fresh {
			now = c.floored(c.now(onWall))
		}
		*r = window.Result{}
		next, fits := e.packed.Take(r, word, now.of(onWall), n)
		switch {
		case !fits:
			return now, false
		case r.Allowed:
			if e.word.CompareAndSwap(word, next) {
				return now, true
			}
			word, fresh = e.word.Load(), true // but not for a denial
		case fresh:
			fresh = false
		default:
			was := word
			if word = e.word.Load(); word == was {
				return now, true
			}
		}
	}
	return now, false
}

// denied answers n hits from the last denial, if that was of as many and still
// holds.
func (e *hot) denied(c *clock, onWall bool, n int64, r *window.Result) (now moment, ok bool) {
	turn := e.turn.Load()
	if turn&1 != 0 || n != 1 {
		return now, false
	}
	fits, reset := window.Instant(e.fits.Load()), window.Instant(e.reset.Load())
	now = c.floored(c.now(onWall))
	at := now.of(onWall)
	if at >= fits || e.turn.Load() != turn {
		return now, false
	}
	most := e.limit.Capacity()
	*r = window.Result{Quota: most, Used: most, Before: most, RetryAfter: fits.Sub(at), ResetAfter: reset.Sub(at)}
	return now, true
}

// find looks h up in the table. It takes back a state that is lent, and then
// reports true: other calls may have been decided since the caller read the
// clock.
func (sh *shard) find(h table.Hash) (at table.Ref, back bool) {
	at = sh.table.Find(h)
	if at.Lent() {
		sh.takeBack(sh.hotKey(h), at)
		back = true
	}
	return at, back
}

// takeBack takes back the state of e, which is lent at at. Takes of e may have come
// since the last call locked sh, and later calls do not find the state lent. So
// the next call reads the clock again, unless this one does and is dated then.
func (sh *shard) takeBack(e *hot, at table.Ref) {
	sh.stripe.latest = unknown
	sh.mark(e.key)
	state := e.packed.Unpack(sh.stripe.scratch[:0], e.word.Swap(gone))
	sh.table.Return(at, state, int64(e.limit.Expires(state)))
}

// cool takes back what e has, if it has anything. Then it is as good as no hot
// key.
func (sh *shard) cool(e *hot) {
	if e.word.Load() != gone {
		sh.takeBack(e, sh.table.Find(e.key))
	}
	e.drop()
}

// drop drops the answer of e, if it has one.
func (e *hot) drop() {
	if e.turn.Load()&1 == 0 {
		e.turn.Add(1)
	}
}

// changes is called before the state of h is changed.
func (sh *shard) changes(h table.Hash) {
	if e := sh.hotKey(h); e != nil {
		e.drop()
	}
}

// release takes back the states of hot keys that have expired, so that sweeps
// find them.
func (sh *shard) release(x expiry) {
	keys := sh.hot.Load()
	if keys == nil {
		return
	}
	for i := range keys.hot {
		e := keys.hot[i].Load()
		if e == nil {
			continue
		}
		word := e.word.Load()
		if word == gone {
			continue
		}
		var room [3]uint64
		if x.Over(e.packed.Unpack(room[:0], word)) {
			sh.cool(e)
			keys.hot[i].Store(nil)
		}
	}
}

// warm is called after a take of one op, whose answer is r, was decided under the
// lock. It makes the key hot when it is time to, and gives a hot key its state or
// its answer.
func (p *place) warm(r *window.Result) {
	keys := p.shard.hot.Load()
	if keys == nil {
		return
	}
	packs := p.limit.Packs()
	if !packs && (p.hits.N != 1 || r.RetryAfter < leastDenial || !p.limit.Stays(p.at.Head(), r)) {
		return
	}
	place := placeOf(p.key)
	e := keys.hot[place].Load()
	if e != nil && e.key == p.key && e.limit == p.limit && p.give(e, r) {
		return
	}
	if !keys.votes[place].vote(p.key, keys.enough) {
		return
	}
	if e != nil {
		if e.key != p.key && e.used.Swap(false) {
			return
		}
		p.shard.cool(e)
	}
	if e = p.newHot(); e != nil && p.give(e, r) {
		keys.hot[place].Store(e)
	}
}

// vote votes for h, and reports whether it is elected.
func (v *votes) vote(h table.Hash, enough int) bool {
	switch {
	case v.n == 0:
		v.candidate, v.n = h, 1
	case v.candidate == h:
		v.n++
	default:
		v.n--
	}
	if v.n < enough {
		return false
	}
	v.n = 0
	return true
}

// newHot returns a hot key for the key of p, without a state or an answer, or nil
// when the key's state cannot be lent.
func (p *place) newHot() *hot {
	e := &hot{key: p.key, limit: p.limit, packs: p.limit.Packs(), noted: gone}
	e.word.Store(gone)
	e.turn.Store(1)
	if e.packs {
		state := p.shard.table.Find(p.key).State()
		if len(state) == 0 {
			return nil
		}
		var ok bool
		if e.packed, _, ok = p.limit.Pack(state); !ok {
			return nil
		}
	}
	return e
}

// give gives e, which is for the key and the limit of p, the state or the answer
// r. It reports false when the state does not fit e.
func (p *place) give(e *hot, r *window.Result) bool {
	if !e.packs {
		e.drop()
		e.fits.Store(int64(p.now.Add(r.RetryAfter)))
		e.reset.Store(int64(p.now.Add(r.ResetAfter)))
		e.turn.Add(1)
		return true
	}
	at := p.shard.table.Find(p.key)
	state := at.State()
	if len(state) == 0 {
		return true // a take of no hits, or a denied one of a new key
	}
	word, ok := e.packed.Repack(state)
	if ok = ok && at.Lend(); ok {
		e.noted = gone
		e.word.Store(word)
	}
	return ok
}

package replay

import (
	"encoding/binary"
	"slices"

	"github.com/weirhq/weir/internal/transition"
	"github.com/weirhq/weir/window"
)

// keyWindow is one key in one window.
//
// A candidate has no state for the key while it cannot deny, because it has admitted all hits,
// so its state follows from them. Once it may deny, it gets a state from the hits that are
// still counted, and decides every later hit. A run is a series of hits without a pause that
// empties all states. After such a pause all candidates start again without a state.
type keyWindow struct {
	peak   int64
	peakAt window.Instant

	latest window.Instant
	began  bool

	// The use of a sliding window: hits[first:] are inside.
	hits  []use
	first int
	level int64        // the sum of the hits inside
	all   window.State // the use of other windows

	run []use // all hits of the run, if some candidate needs them
	sum int64 // of the hits of the run

	active uint64         // candidates with a state
	denied uint64         // candidates that have denied a hit
	states []window.State // by candidate
}

// use is hits at an instant.
type use struct {
	at window.Instant
	h  window.Hits
}

// maxCandidates is the maximum number of quotas of a [Sweep].
const maxCandidates = 64

// do measures a request for hits in the window of w. A check, or a request for no hits, changes nothing.
func (k *keyWindow) do(w *sweptWindow, verb Verb, now window.Instant, h window.Hits) {
	counts := verb != Check && h.N > 0
	if counts {
		if k.began && now-k.latest >= w.usage.gap {
			k.run, k.sum, k.active = k.run[:0], 0, 0
		}
		k.began = true
		k.latest = max(k.latest, now) // the time of a key never goes back
		k.expire(&w.usage)
	}
	for i, l := range w.limits {
		bit := uint64(1) << i
		if k.active&bit == 0 {
			total := k.sum
			if w.byLevel[i] {
				total = k.level
			}
			if !w.always && total+h.N <= w.quotas[i] {
				continue
			}
			k.activate(w, i)
		}
		var allowed bool
		if k.states[i], allowed = w.decide(l, verb, k.states[i], now, h); !allowed {
			w.denied[i]++
			if k.denied&bit == 0 {
				k.denied |= bit
				w.keys[i]++
			}
		}
	}
	if !counts {
		return
	}
	k.sum += h.N
	if w.needsRun && k.sum <= w.quotas[len(w.quotas)-1] {
		k.run = append(k.run, use{now, h})
	}
	if level := k.measure(&w.usage, now, h); level > k.peak {
		k.peak, k.peakAt = level, now
	}
}

// decide decides a request under the limit of a candidate, as a store does.
func (w *sweptWindow) decide(l *window.Compiled, verb Verb, s window.State, now window.Instant, h window.Hits) (next window.State, allowed bool) {
	var r window.Result
	switch {
	case verb == Record:
		s, _ = l.Record(s, now, h)
		return s, true
	case verb == Check || h.N == 0:
		r = l.Check(s, now, h)
		return s, r.Allowed
	case !w.wrapped:
		s, r = l.Take(s, now, h)
		return s, r.Allowed
	}
	if l.HoldLength() > 0 {
		var id [12]byte
		w.holds++
		binary.BigEndian.PutUint64(id[:], w.holds)
		s = l.Do(transition.Take, &r, s, now, h, &window.Hold{ID: id})
	} else {
		s, r = l.Take(s, now, h)
	}
	if !r.Allowed && w.countDenied {
		s = l.Do(transition.RecordDenied, new(window.Result), s, now, h, nil)
	}
	return s, r.Allowed
}

// activate gives candidate i a state.
func (k *keyWindow) activate(w *sweptWindow, i int) {
	k.active |= 1 << i
	if len(k.states) == 0 {
		k.states = make([]window.State, len(w.limits))
	}
	s := k.states[i][:0]
	hits := k.run
	if w.byLevel[i] {
		hits = k.hits[k.first:]
	}
	for _, u := range hits {
		s, _ = w.limits[i].Take(s, u.at, u.h)
	}
	k.states[i] = s
}

// usageOf measures the use of keys in one window, without a limit.
type usageOf struct {
	length window.Instant   // of a sliding window; 0: limit measures
	limit  *window.Compiled // a limit that never denies
	gap    window.Instant   // after a pause of this length all states are empty
}

// longest is the greatest length of calendar periods in microseconds, with changes
// of clocks and leap years.
var longest = [...]window.Instant{
	window.Minute: 60e6, window.Hour: 2 * 3600e6, window.Day: 25 * 3600e6, window.Week: (7*24 + 1) * 3600e6,
	window.Month: (31*24 + 1) * 3600e6, window.Year: (366*24 + 1) * 3600e6,
}

// maxGap is a pause longer than any log.
const maxGap = window.Instant(1) << 60

func newUsage(measure window.Measure, of window.Window) (u usageOf, err error) {
	length := window.Instant(of.Length.Microseconds())
	quota := window.MaxHits
	switch u.gap = 2 * length; of.Kind {
	case window.KindSliding:
		u.gap = length
	case window.KindEver, window.KindBucket: // which drains for longer than its length after a burst or records
		u.gap = maxGap
	case window.KindCalendar:
		u.gap = longest[of.Period]
	}
	switch {
	case measure == window.Distinct:
		quota = window.MaxEntries
	case of.Kind == window.KindSliding || of.Kind == window.KindBucket:
		// The use of a bucket is that of a sliding window of its length.
		u.length = length
		return u, nil
	}
	u.limit, err = window.Compile(window.Limit{Quota: quota, Measure: measure, Window: of})
	return u, err
}

// expire drops the hits that have left a sliding window.
func (k *keyWindow) expire(u *usageOf) {
	for k.first < len(k.hits) && k.hits[k.first].at <= k.latest-u.length {
		k.level -= k.hits[k.first].h.N
		k.first++
	}
	if k.first == len(k.hits) {
		k.hits, k.first = k.hits[:0], 0
	} else if k.first > 64 && k.first > len(k.hits)/2 {
		k.hits = slices.Delete(k.hits, 0, k.first)
		k.first = 0
	}
}

// measure adds hits to the use of the key in the window, and returns it.
func (k *keyWindow) measure(u *usageOf, now window.Instant, h window.Hits) int64 {
	if u.limit != nil {
		var r window.Result
		k.all, r = u.limit.Take(k.all, now, h)
		return r.Used
	}
	if n := len(k.hits); n > k.first && k.hits[n-1].at == k.latest {
		k.hits[n-1].h.N += h.N
	} else {
		k.hits = append(k.hits, use{k.latest, h})
	}
	k.level += h.N
	return k.level
}

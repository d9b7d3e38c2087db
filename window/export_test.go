package window

import "github.com/weirhq/weir/internal/transition"

// What the tests of this package know of it.
const (
	DefaultCells     = defaultCells
	DefaultHolds     = defaultHolds
	DefaultPrecision = defaultPrecision
)

// Validate is the error of Compile.
func (l *Limit) Validate() error { return l.check() }

// WithoutLog returns l without the fast path of logs of dates.
func (l *Compiled) WithoutLog() *Compiled {
	slow := *l
	slow.log = nil
	return &slow
}

// Group returns the number of hits that share a date in a sliding window.
func (l *Compiled) Group() int64 { return groupOf(l.Limit) }

// do is Do that returns the answer.
func (l *Compiled) do(t transition.Transition, s State, now Instant, h Hits, hold Hold) (State, Result) {
	var r Result
	s = l.Do(t, &r, s, now, h, &hold)
	return s, r
}

// Count is the second half of Take, whose first half is a Check with the answer r.
func (l *Compiled) Count(r Result, s State, now Instant, h Hits) (State, Result) {
	s = l.Do(transition.Count, &r, s, now, h, nil)
	return s, r
}

func (l *Compiled) TakeHold(s State, now Instant, h Hits, id [12]byte) (State, Result) {
	return l.do(transition.Take, s, now, h, Hold{ID: id})
}

func (l *Compiled) RecordHold(s State, now Instant, h Hits, hold Hold) (State, Result) {
	return l.do(transition.Record, s, now, h, hold)
}

func (l *Compiled) RecordNoStrike(s State, now Instant, h Hits, hold Hold) (State, Result) {
	return l.do(transition.RecordNoStrike, s, now, h, hold)
}

func (l *Compiled) RecordDenied(s State, now Instant, h Hits) (State, Result) {
	return l.do(transition.RecordDenied, s, now, h, Hold{})
}

func (l *Compiled) Settle(s State, now Instant, id [12]byte, n int64) (State, Result) {
	return l.do(transition.Settle, s, now, Hits{N: n}, Hold{ID: id})
}

func (l *Compiled) Cancel(s State, now Instant, id [12]byte) (State, Result) {
	return l.do(transition.Settle, s, now, Hits{}, Hold{ID: id})
}

func (l *Compiled) Renew(s State, now Instant, id [12]byte) (State, Result) {
	return l.do(transition.Renew, s, now, Hits{}, Hold{ID: id})
}

func (l *Compiled) GiveBack(s State, now, at Instant, h Hits) (State, Result) {
	return l.do(transition.GiveBack, s, now, h, Hold{ID: [12]byte{11: 255}, At: at})
}

// GiveBackNow is GiveBack of hits that a store has just counted.
func (l *Compiled) GiveBackNow(s State, now, at Instant, h Hits) (State, Result) {
	return l.do(transition.GiveBack, s, now, h, Hold{At: at})
}

// Reserve returns the hold with the instants that it got.
func (l *Compiled) Reserve(s State, now Instant, h Hits, hold Hold) (State, Result, Hold) {
	var r Result
	s = l.Do(transition.Reserve, &r, s, now, h, &hold)
	return s, r, hold
}

// ReserveCheck is Reserve that changes nothing.
func (l *Compiled) ReserveCheck(s State, now Instant, h Hits, hold Hold) Result {
	var r Result
	l.Do(transition.CanReserve, &r, s, now, h, &hold)
	return r
}

func (l *Compiled) RecordWords(s State, h Hits) int { return l.WordsAfter(transition.Record, s, h) }

func (l *Compiled) TakeWords(s State, h Hits) int { return l.WordsAfter(transition.Take, s, h) }

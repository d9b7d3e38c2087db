package top

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
)

const (
	// maxRows is the capacity of a lane. A lane that fills up within a tick reads a
	// smaller sample.
	maxRows = 4096

	// maxText is the total size of the keys of a lane's rows, in bytes.
	maxText = 64 * maxRows

	// maxMask bounds the sample: one decision in a million.
	maxMask = 1<<20 - 1
)

// lane is a queue of decisions that are not counted yet.
type lane struct {
	// mask selects the decisions that are read: those for which a random number
	// has a zero in each bit of mask. It is 2^n-1, and 0 reads all of them.
	mask atomic.Uint64

	mu      sync.Mutex
	rows    []row  // guarded by mu
	text    []byte // guarded by mu; the keys of rows
	ticked  int    // guarded by mu; rows since the last tick
	dropped int64  // guarded by mu; decisions that did not fit
	spare   batch  // guarded by shared.mu
}

// row is the effect of one decision on one rule.
type row struct {
	of       *Collector
	rule     string
	from, to int   // the key in text
	counted  int64 // hits
	sample   int64 // the number of decisions that this one stands for
	override bool
	denial   bool
	what     Denial // without Rule and Key; set for a denial
}

// batch is rows with their keys.
type batch struct {
	rows []row
	text []byte
}

// read adds the rows of d, a decision for c. It reports whether the lane fills up
// and has to be emptied soon.
func (l *lane) read(c *Collector, verb store.Verb, d *weir.Decision, sample int64) (hurry bool) {
	var at time.Time
	if l.mu.Lock(); len(l.rows) >= maxRows || len(l.text) >= maxText {
		l.dropped++
		l.mu.Unlock()
		return true
	}
	defer l.mu.Unlock()
	before, ended := len(l.rows), len(l.text)
	for i := range d.Usages {
		u := &d.Usages[i]
		r := l.add(c, u.Rule, u.Key, sample)
		r.counted, r.override = counted(verb, d, u), u.Overridden
		if r.denial = !u.Allowed; !r.denial {
			continue
		}
		if at.IsZero() {
			at = c.now()
		}
		r.what = Denial{
			Time: at, Reason: reason(d.Rules, u), Outcome: d.Outcome, Shadow: u.Shadow,
			Hits: u.Hits, Used: u.Before, Quota: u.Quota, RetryAfter: u.RetryAfter, Override: u.Overridden,
		}
		if u.BannedUntil != 0 {
			r.what.BannedUntil = u.BannedUntil.Time()
		}
	}
	if !d.Allowed && d.Rule != "" && UsageOf(d, d.Rule) == nil {
		r := l.add(c, d.Rule, "", sample)
		r.counted, r.override, r.denial = 0, false, true
		r.what = Denial{Time: c.now(), Reason: ReasonVerdict, Outcome: d.Outcome, RetryAfter: d.RetryAfter}
		if ru := RuleOf(d.Rules, d.Rule); ru != nil && ru.Kind() != rule.KindVerdict {
			r.what.Reason, r.what.Cause = ReasonOutage, d.DegradedReason
		}
	}
	l.ticked += len(l.rows) - before
	const rows, text = maxRows * 3 / 4, maxText * 3 / 4
	if hurry = before < rows && rows <= len(l.rows) || ended < text && text <= len(l.text); hurry {
		l.mask.Store(min(l.mask.Load()<<1|1, maxMask))
	}
	return hurry
}

// add adds a row, which the caller fills in.
func (l *lane) add(c *Collector, rule, key string, sample int64) *row {
	from := len(l.text)
	l.text = appendKey(l.text, key)
	if len(l.rows) < cap(l.rows) {
		l.rows = l.rows[:len(l.rows)+1]
	} else {
		l.rows = append(l.rows, row{})
	}
	r := &l.rows[len(l.rows)-1]
	r.of, r.rule, r.from, r.to, r.sample = c, rule, from, len(l.text), sample
	return r
}

// take returns the rows that wait. The lane continues with the spare batch.
func (l *lane) take() (b batch, dropped int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, dropped = batch{l.rows, l.text}, l.dropped
	l.rows, l.text, l.dropped = l.spare.rows[:0], l.spare.text[:0], 0
	l.spare = batch{}
	return b, dropped
}

// relax ends a tick. It doubles the sample if the lane is empty enough for that.
func (l *lane) relax() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ticked < maxRows/4 {
		l.mask.Store(l.mask.Load() >> 1)
	}
	l.ticked = 0
}

// reason returns why the rule of u, one of rules, denied.
func reason(rules *rule.Set, u *weir.Usage) Reason {
	switch {
	case u.Banned && !u.Struck:
		return ReasonBan
	case u.Struck || u.Before+u.Hits > u.Quota || rules == nil:
		return ReasonLimit
	}
	if i, ok := rules.Find(u.Rule); ok && rules.Rule(i).Holds() {
		return ReasonHolds
	}
	return ReasonLimit
}

// counted returns the hits that a call has counted in u.
func counted(verb store.Verb, d *weir.Decision, u *weir.Usage) int64 {
	switch {
	case u.Banned || u.ResetAfter == 0: // nothing remains
		return 0
	case verb == store.Record || u.Kind != rule.KindLimit:
		return u.Hits
	case u.Shadow && u.Allowed || !u.Shadow && d.Allowed:
		return u.Hits
	}
	return 0
}

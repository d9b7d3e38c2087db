package report

import (
	"crypto/rand"
	"time"

	"github.com/weirhq/weir/window"
)

// What memory counted in a period that has closed since is not lost under a limit that keeps the last closed period. A record
// would count in the current period, but what a hold costs counts in that of its take. So these hits are pending as a hold of
// that period that is over: the store makes it and then ends it.

const (
	// closedFor is how long the store has such a hold if its end is lost. Then all of it is final, too.
	closedFor = 10 * time.Second
	// closedHolds is how many holds a key can have when it is made: nearly always more than the rule allows.
	closedHolds = 5000
)

// turn makes the hits of e that are of the last closed period pending as such.
func (e *entry) turn(now window.Instant) {
	cell, _, kept := e.limit.Exported(e.state, now, true)
	if !kept || cell.Hits == 0 {
		return
	}
	n := e.amount(now)
	e.hits, e.state = 0, nil
	e.close(cell.Start.Add(cell.Length/2), cell.Hits, now) // the store's clock may differ
	if n > 0 {
		e.add(n, now)
	}
	e.resize()
}

// close makes n hits at an instant of the last closed period pending until the next one closes.
func (e *entry) close(at window.Instant, n int64, now window.Instant) {
	_, end := e.limit.Window.PeriodBounds(now)
	h := held{Hold: window.Hold{At: at, End: end}, n: n, final: n, there: true, over: true, closed: true}
	_, _ = rand.Read(h.ID[:]) // never fails
	e.holds = append(e.holds, h)
}

// closedLimit returns the limit under which the store has the hits of a closed period of l: it holds, and keeps what ends.
func closedLimit(l *window.Compiled) *window.Compiled {
	holding := *l.Limit
	holding.Hold, holding.Release, holding.MaxHolds = closedFor, false, max(holding.MaxHolds, closedHolds)
	if holding.Quota == window.Unlimited { // a counter cannot hold
		holding.Quota = window.MaxHits
	}
	if c, err := window.Compile(holding); err == nil {
		return c
	}
	return l
}

package page

import (
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// leaving is what is in a window, and when it leaves.
type leaving struct {
	Now  instant `json:"now"`
	Kind string  `json:"kind"` // of the window

	// From and To are the ends of the window: to draw it.
	From instant `json:"from"`
	To   instant `json:"to"`

	Hits []hits `json:"hits"`

	// Drains is the time in which a bucket drains by one hit.
	Drains *seconds `json:"drains,omitempty"`
	// Held is how many hits are in use and not in Hits: those of holds, or that are older than what is dated.
	Held int64 `json:"held,omitempty"`
}

// hits are hits that leave together.
type hits struct {
	At      instant `json:"at"`
	Seconds seconds `json:"seconds,omitempty"` // of a cell or a period
	Hits    int64   `json:"hits"`
	Leave   instant `json:"leave,omitzero"` // zero: never
}

// leavingOf returns what u has in the window of r at now.
func leavingOf(r *rule.Rule, u *weir.KeyUsage, now time.Time) *leaving {
	w := &r.Window
	l := &leaving{Now: instant{now}, Kind: w.Kind.String(), From: instant{now.Add(-w.Length)}, To: instant{now.Add(w.Length)}, Hits: []hits{}, Held: u.Used}
	for _, c := range u.History {
		h := hits{At: instant{c.Start.Time()}, Seconds: seconds(c.Length), Hits: c.Hits}
		switch end := c.Start.Add(c.Length); {
		case c.Length == 0:
			h.Leave = instant{end.Add(w.Length).Time()}
		case w.Kind == window.KindCells, w.Kind == window.KindSliding: // of a counter
			h.Leave = instant{end.Add(w.Length - time.Microsecond).Time()}
		default:
			h.Leave, l.From, l.To = instant{end.Time()}, h.At, instant{end.Time()}
		}
		if c.Hits > 0 {
			l.Hits = append(l.Hits, h)
		}
		l.Held -= c.Hits
	}
	if w.Kind == window.KindBucket {
		if u.Quota > 0 && u.ResetAfter > 0 && u.Used > 0 {
			drains := seconds(int64(u.ResetAfter) / u.Used)
			l.Drains, l.Held = &drains, 0
		}
		l.From, l.To = l.Now, instant{now.Add(max(u.ResetAfter, 0))}
	}
	l.Held = max(l.Held, 0)
	return l
}

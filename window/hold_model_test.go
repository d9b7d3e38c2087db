package window_test

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/weirhq/weir/window"
)

// holdModel is a limit that holds, by the definition: hits that are final, each
// with the instant that it counts from, and holds. It is slow and remembers all.
type holdModel struct {
	l     window.Limit
	final finals
	holds []heldHits // the one that ends first at the front
	seen  window.Instant
}

// heldHits is a hold.
type heldHits struct {
	id      [12]byte
	at, end window.Instant
	n       int64
	keep    bool
}

// finals are hits that are final, in a kind of window.
type finals interface {
	// used returns how many count at t.
	used(t window.Instant) int64
	// leaves returns when hits from at do not count any more.
	leaves(at window.Instant) window.Instant
	// ends returns the instants at which used falls, in any order.
	ends() []window.Instant
	// open is called for a take that holds.
	open(now window.Instant)
	// add counts n hits of a take at an instant, which are settled at another.
	add(now, at, settled window.Instant, n int64)
	// refund gives back the newest n, and giveBack up to n of those from at.
	refund(now window.Instant, n int64)
	giveBack(now, at window.Instant, n int64)
	// close is called when nothing is held.
	close()
}

func newHoldModel(l window.Limit) *holdModel {
	tw := &holdModel{l: l}
	switch w := &l.Window; w.Kind {
	case window.KindSliding:
		tw.final = &dates{quota: l.Quota, length: w.Length}
	case window.KindCells:
		n := w.N
		if n == 0 {
			n = window.DefaultCells
		}
		width := (w.Length.Microseconds() + int64(n) - 1) / int64(n)
		tw.final = &dates{quota: math.MaxInt64, length: w.Length, cell: window.Instant(width)}
	case window.KindFixed, window.KindCalendar, window.KindAligned:
		tw.final = &periodOf{w: *w}
	case window.KindEver:
		tw.final = &dates{quota: math.MaxInt64, length: 0}
	case window.KindBucket:
		plain := l
		plain.Hold, plain.Release, plain.MaxHolds = 0, false, 0
		tw.final = &levels{Compiled: window.MustCompile(plain)}
	case window.KindHeld:
		tw.final = nothing{}
	}
	return tw
}

func (tw *holdModel) length() time.Duration { return window.MustCompile(tw.l).HoldLength() }

func (tw *holdModel) most() int {
	switch {
	case tw.l.MaxHolds > 0:
		return tw.l.MaxHolds
	case tw.l.Window.Kind == window.KindHeld && tw.l.Measure == window.Count:
		return max(window.DefaultHolds, int(tw.l.Quota))
	}
	return window.DefaultHolds
}

// used returns what counts at t if nobody calls until then.
func (tw *holdModel) used(t window.Instant) (n int64) {
	if b, ok := tw.final.(*levels); ok {
		level := *b
		for _, h := range tw.holds {
			if h.end > t {
				n += h.n
			} else if h.keep {
				level.add(h.end, h.at, h.end, h.n)
			}
		}
		return min(level.used(t)+n, b.Capacity())
	}
	for _, h := range tw.holds {
		if h.end > t || h.keep && tw.final.leaves(h.at) > t {
			n += h.n
		}
	}
	return n + tw.final.used(t)
}

// fits reports whether n hits fit at t if nobody calls until then.
func (tw *holdModel) fits(t window.Instant, n int64) bool {
	if n == 0 {
		return true
	}
	alive := 0
	for _, h := range tw.holds {
		if h.end > t {
			alive++
		}
	}
	if alive >= tw.most() {
		return false
	}
	if b, ok := tw.final.(*levels); ok {
		level := *b
		var held int64
		for _, h := range tw.holds {
			if h.end > t {
				held += h.n
			} else if h.keep {
				level.add(h.end, h.at, h.end, h.n)
			}
		}
		return level.Check(level.s, t, window.Hits{N: n + held}).Allowed
	}
	return tw.used(t)+n <= tw.l.Quota
}

// changes returns the instants after now at which something ends, in order.
func (tw *holdModel) changes(now window.Instant) []window.Instant {
	at := tw.final.ends()
	for _, h := range tw.holds {
		at = append(at, h.end)
		if leaves := tw.final.leaves(h.at); h.keep && leaves > h.end {
			at = append(at, leaves)
		}
	}
	at = slices.DeleteFunc(at, func(t window.Instant) bool { return t <= now })
	slices.Sort(at)
	return at
}

// wait returns how long n hits wait at now.
func (tw *holdModel) wait(now window.Instant, n int64) time.Duration {
	if tw.fits(now, n) {
		return 0
	}
	if _, ok := tw.final.(*levels); ok { // drains all the time, so bisect
		lo, hi := now, now+1
		for hi < latestInstant && !tw.fits(hi, n) {
			hi = now + 2*(hi-now)
		}
		if !tw.fits(hi, n) {
			return window.Never
		}
		for hi-lo > 1 {
			if mid := lo + (hi-lo)/2; tw.fits(mid, n) {
				hi = mid
			} else {
				lo = mid
			}
		}
		return hi.Sub(now)
	}
	for _, at := range tw.changes(now) {
		if at < never && tw.fits(at, n) {
			return at.Sub(now)
		}
	}
	return window.Never
}

const never = window.Instant(math.MaxInt64)

// reset returns how long it takes until the key is unused.
func (tw *holdModel) reset(now window.Instant) (d time.Duration) {
	if b, ok := tw.final.(*levels); ok {
		exact, latest, end := *b, *b, now
		held, kept := int64(0), false
		for _, h := range tw.holds {
			end, held, kept = max(end, h.end), held+h.n, kept || h.keep
			if h.keep {
				exact.add(h.end, h.at, h.end, h.n)
			}
		}
		if kept { // as if all of them ended with the last one
			latest.add(0, 0, tw.holds[len(tw.holds)-1].end, held)
		}
		if at := latest.Expires(latest.s); at < exact.Expires(exact.s) {
			panic("a bucket resets earlier than it is empty")
		}
		return max(end, latest.Expires(latest.s)).Sub(now)
	}
	for _, at := range tw.changes(now) {
		if at == never {
			return window.Never
		}
		d = at.Sub(now)
	}
	return d
}

// mature makes final what has ended at now.
func (tw *holdModel) mature(now window.Instant) {
	if tw.matureBeside(now); len(tw.holds) == 0 {
		tw.final.close()
	}
}

// matureBeside is mature for a hold that stays.
func (tw *holdModel) matureBeside(now window.Instant) {
	for len(tw.holds) > 0 && tw.holds[0].end <= now {
		if h := tw.holds[0]; h.keep {
			tw.final.add(now, h.at, h.end, h.n)
		}
		tw.holds = tw.holds[1:]
	}
}

// insert adds a hold behind those that end before it or at the same instant.
func (tw *holdModel) insert(h heldHits) {
	i, _ := slices.BinarySearchFunc(tw.holds, h, func(a, b heldHits) int {
		if a.end <= b.end {
			return -1
		}
		return 1
	})
	tw.holds = slices.Insert(slices.Clone(tw.holds), i, h)
}

// holdCall is one call of a limit that holds.
type holdCall struct {
	verb string // of package window
	now  window.Instant
	n    int64
	id   [12]byte
	at   window.Instant // GiveBack

	length time.Duration // reserve
}

// do returns the answer to c.
func (tw *holdModel) do(c holdCall) (r window.Result) {
	now := max(c.now, tw.seen)
	if tw.unused(now) {
		tw.final = newHoldModel(tw.l).final
		tw.holds, now = nil, c.now
	}
	r = window.Result{Quota: window.MustCompile(tw.l).Capacity(), Before: tw.used(now), Allowed: true}
	changed := true
	at := slices.IndexFunc(tw.holds, func(h heldHits) bool { return h.id == c.id && h.end > now })
	switch c.verb {
	case "check", "take":
		r.RetryAfter = tw.wait(now, c.n)
		if c.n > r.Quota {
			r.RetryAfter = window.Never
		}
		r.Allowed = r.RetryAfter == 0
		if changed = c.verb == "take" && r.Allowed && c.n > 0; changed {
			tw.mature(now)
			tw.final.open(now)
			if tw.length() > 0 {
				tw.insert(heldHits{c.id, now, now.Add(tw.length()), c.n, !tw.l.Release})
				r.Held = true
			} else {
				tw.final.add(now, now, now, c.n)
			}
		}
	case "reserve":
		end, wait := tw.reservable(now, c)
		r.RetryAfter = wait
		r.Allowed = wait == 0
		if changed = r.Allowed && c.n > 0; changed {
			tw.mature(now)
			tw.final.open(now)
			tw.insert(heldHits{c.id, end, end, c.n, true}) // what it costs counts from its end
			r.Held = true
		}
	case "record":
		if tw.l.Window.Kind == window.KindHeld || c.n == 0 {
			changed = false
			break
		}
		tw.mature(now)
		d, ok := tw.final.(*dates)
		before := int64(0)
		if ok {
			d.expire(now)
			before = d.sum()
		}
		if tw.final.add(now, now, now, c.n); ok {
			d.forget(before)
		}
	case "refund":
		if changed = c.n > 0 && !(tw.l.Window.Kind == window.KindHeld) && !tw.unused(now); changed {
			tw.mature(now)
			tw.final.refund(now, c.n)
		}
	case "settle", "cancel":
		if changed = at >= 0; changed {
			h := tw.holds[at]
			tw.holds = slices.Delete(slices.Clone(tw.holds), at, at+1)
			tw.matureBeside(now)
			n := c.n
			if c.verb == "cancel" {
				n = 0
			} else if n == -1 {
				n = h.n
			}
			d, ok := tw.final.(*dates)
			before := h.n
			if ok {
				d.expire(now)
				before += d.sum()
			}
			if n > 0 {
				tw.final.add(now, min(h.at, now), now, n)
			}
			if ok && n > h.n {
				d.forget(before)
			}
			r.Held = true
		}
	case "renew":
		if changed = at >= 0 && tw.length() > 0; changed {
			h := tw.holds[at]
			tw.holds = slices.Delete(slices.Clone(tw.holds), at, at+1)
			tw.matureBeside(now)
			h.end = now.Add(tw.length())
			tw.insert(h)
			r.Held = true
		}
	case "give back":
		if changed = c.n > 0 && !tw.unused(now); changed {
			tw.mature(now)
			tw.final.giveBack(now, c.at, c.n)
		}
	}
	if changed {
		tw.seen = now
		if len(tw.holds) == 0 {
			tw.final.close()
		}
	}
	r.Used = tw.used(now)
	r.Remaining = max(0, r.Quota-r.Used)
	r.ResetAfter = tw.reset(now)
	return r
}

// reservable returns when a reservation ends, and how long it waits.
func (tw *holdModel) reservable(now window.Instant, c holdCall) (end window.Instant, wait time.Duration) {
	end, wait = now.Add(c.length), tw.wait(now, c.n)
	switch {
	case c.n == 0:
		return end, 0
	case c.n > window.MustCompile(tw.l).Capacity() || c.id == [12]byte{} || c.length <= 0:
		return end, window.Never
	}
	if p, ok := tw.final.(*periodOf); ok {
		of := *p
		of.begin(now)
		if end = min(end, of.end-1); end <= now {
			wait = max(wait, of.end.Sub(now))
		}
	}
	for _, h := range tw.holds {
		if h.id == c.id && h.end > now && wait != window.Never {
			wait = max(wait, h.end.Sub(now))
		}
	}
	return end, wait
}

// unused reports whether the key is as good as unused at now.
func (tw *holdModel) unused(now window.Instant) bool { return tw.reset(now) == 0 }

// dates are hits with their dates: of a sliding window, of cells if cell is not
// 0, and of a window without an end if length is 0.
type dates struct {
	quota  int64
	length time.Duration
	cell   window.Instant
	hits   []logged // in order
	excess int64
}

func (d *dates) date(at window.Instant) window.Instant {
	if d.cell > 0 {
		return at / d.cell
	}
	if d.length == 0 {
		return 0
	}
	return at
}

func (d *dates) leaves(at window.Instant) window.Instant {
	switch {
	case d.length == 0:
		return never
	case d.cell > 0:
		return (at/d.cell+1)*d.cell + window.Instant(d.length.Microseconds()) - 1
	}
	return at.Add(d.length)
}

// expiry returns when hits of a date leave.
func (d *dates) expiry(date window.Instant) window.Instant {
	if d.cell > 0 {
		return d.leaves(date * d.cell)
	}
	return d.leaves(date)
}

func (d *dates) used(t window.Instant) (n int64) {
	for _, h := range d.hits {
		if d.expiry(h.at) > t {
			n += h.n
		}
	}
	return n
}

func (d *dates) ends() (at []window.Instant) {
	for _, h := range d.hits {
		at = append(at, d.expiry(h.at))
	}
	return at
}

func (d *dates) open(window.Instant) {}
func (d *dates) close()              {}

func (d *dates) expire(now window.Instant) {
	before := len(d.hits)
	d.hits = slices.DeleteFunc(slices.Clone(d.hits), func(h logged) bool { return d.expiry(h.at) <= now })
	if len(d.hits) < before {
		d.excess = 0
	}
}

func (d *dates) add(now, at, _ window.Instant, n int64) {
	d.expire(now)
	if d.leaves(at) <= now {
		return
	}
	date := d.date(at)
	i, found := slices.BinarySearchFunc(d.hits, date, func(h logged, at window.Instant) int { return cmp.Compare(h.at, at) })
	if found {
		d.hits[i].n += n
	} else {
		d.hits = slices.Insert(d.hits, i, logged{date, n})
	}
}

// forget drops hits past the quota as long as what stays fills it, or past what there was before if that was more.
func (d *dates) forget(before int64) {
	for most := max(d.quota, before); len(d.hits) > 1 && d.sum() > most; {
		gone := d.hits[0].n
		if over := d.sum() - most; gone > over {
			if before <= d.quota {
				break
			}
			gone = over
		}
		if d.excess += gone; gone == d.hits[0].n {
			d.hits = d.hits[1:]
		} else {
			d.hits[0].n -= gone
		}
	}
}

func (d *dates) sum() (n int64) {
	for _, h := range d.hits {
		n += h.n
	}
	return n
}

func (d *dates) refund(now window.Instant, n int64) {
	d.expire(now)
	part := min(n, d.excess)
	d.excess -= part
	n -= part
	for i := len(d.hits) - 1; i >= 0 && n > 0; i-- {
		part := min(n, d.hits[i].n)
		d.hits[i].n -= part
		n -= part
	}
	d.drop()
}

func (d *dates) drop() {
	d.hits = slices.DeleteFunc(d.hits, func(h logged) bool { return h.n == 0 })
	if len(d.hits) == 0 {
		d.excess = 0
	}
}

func (d *dates) giveBack(now, at window.Instant, n int64) {
	d.expire(now)
	for i := range d.hits {
		if d.hits[i].at != d.date(at) {
			continue
		}
		part := min(n, d.hits[i].n)
		eaten := min(part, d.excess) // the hits stand for those that were dropped
		d.excess -= eaten
		d.hits[i].n -= part - eaten
	}
	d.drop()
}

// periodOf is the hits of the current period of a fixed or calendar window.
type periodOf struct {
	w          window.Window
	start, end window.Instant // end 0: there is none
	n          int64
}

func (p *periodOf) begin(now window.Instant) {
	if now < p.end {
		return
	}
	p.n = 0
	if p.w.Kind == window.KindFixed {
		p.start, p.end = now, now.Add(p.w.Length)
	} else {
		p.start, p.end = p.w.PeriodBounds(now)
	}
}

func (p *periodOf) used(t window.Instant) int64 {
	if t < p.end {
		return p.n
	}
	return 0
}

func (p *periodOf) leaves(at window.Instant) window.Instant {
	if at >= p.start && at < p.end {
		return p.end
	}
	return 0
}

func (p *periodOf) ends() []window.Instant {
	if p.n == 0 {
		return nil
	}
	return []window.Instant{p.end}
}

func (p *periodOf) open(now window.Instant) { p.begin(now) }

func (p *periodOf) close() {
	if p.n == 0 {
		p.end = 0
	}
}

func (p *periodOf) add(now, at, _ window.Instant, n int64) {
	if at == now { // a record, or a hold that was settled at once
		p.begin(now)
	}
	if p.leaves(at) > now {
		p.n += n
	}
}

func (p *periodOf) refund(now window.Instant, n int64) {
	if now < p.end {
		p.n -= min(n, p.n)
	}
}

func (p *periodOf) giveBack(now, at window.Instant, n int64) {
	if p.leaves(at) > now {
		p.refund(now, n)
	}
}

// levels is a bucket without holds.
type levels struct {
	*window.Compiled
	s window.State
}

func (b *levels) used(t window.Instant) int64               { return b.Check(b.s, t, window.Hits{}).Used }
func (b *levels) leaves(window.Instant) window.Instant      { return 0 }
func (b *levels) ends() []window.Instant                    { return nil }
func (b *levels) open(window.Instant)                       {}
func (b *levels) close()                                    {}
func (b *levels) add(_, _, settled window.Instant, n int64) { b.change(b.Record, settled, n) }
func (b *levels) refund(now window.Instant, n int64)        { b.change(b.Refund, now, n) }
func (b *levels) giveBack(now, at window.Instant, n int64) {
	b.s, _ = b.GiveBackNow(slices.Clone(b.s), now, at, window.Hits{N: n})
}
func (b *levels) change(f func(window.State, window.Instant, window.Hits) (window.State, window.Result), at window.Instant, n int64) {
	b.s, _ = f(slices.Clone(b.s), at, window.Hits{N: n})
}

// nothing is what a held window counts for good.
type nothing struct{}

func (nothing) used(window.Instant) int64             { return 0 }
func (nothing) leaves(window.Instant) window.Instant  { return 0 }
func (nothing) ends() []window.Instant                { return nil }
func (nothing) open(window.Instant)                   {}
func (nothing) close()                                {}
func (nothing) add(_, _, _ window.Instant, _ int64)   {}
func (nothing) refund(window.Instant, int64)          {}
func (nothing) giveBack(_, _ window.Instant, _ int64) {}

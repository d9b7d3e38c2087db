package lease

import "sync/atomic"

// Time is an instant on the steady clock of one process, or a length of time, in nanoseconds.
type Time int64

// ID names a lease. It is random, so that no instance uses it again after a restart.
type ID [12]byte

// Terms are what an instance asks for.
type Terms struct {
	// The store grants min(Want, max(Min, left/Div)) units, or refuses if fewer than Min are left.
	Want, Min, Div int64

	// Length is how long the lease lasts at most, by the store's clock from its decision on.
	Length Time
	// Margin is how much earlier the instance ends it, by its own clock from before the request on. It covers
	// the difference of the rates of the clocks, and the time in which a settle reaches the store.
	Margin Time
	// Lead is how long before its end the instance should ask for the next one.
	Lead Time
}

// Ask is a request for a lease. A reply belongs to the ask it answers.
type Ask struct {
	Terms
	ID ID

	// Report is the number of units of credit that the store has to count before it grants.
	Report int64

	Sent     Time // before the request was sent
	answered bool // the reply has taken effect
}

// Settle tells the store what was spent of a lease that is closed: the rest is given back.
type Settle struct {
	ID      ID
	Granted int64 // 0: not known here
	Spent   int64
}

// closed is what is left of a lease that nobody may spend any more.
const closed = -1

// Lease is a grant. Its methods are safe for concurrent use.
type Lease struct {
	ID      ID
	Granted int64
	End     Time // its end here
	Soon    Time // when to ask for the next one, if not earlier

	left atomic.Int64 // or closed
}

// Left returns how many units can be spent.
func (l *Lease) Left() int64 { return max(l.left.Load(), 0) }

// spend takes n of the units that are left, if there are so many.
func spend(from *atomic.Int64, n int64) (left int64, ok bool) {
	for {
		left = from.Load()
		if left < n {
			return left, false
		}
		if from.CompareAndSwap(left, left-n) {
			return left - n, true
		}
	}
}

// Return puts back n units that were spent and not used. They are lost if the lease is closed.
func (l *Lease) Return(n int64) {
	for {
		left := l.left.Load()
		if left < 0 || l.left.CompareAndSwap(left, left+n) {
			return
		}
	}
}

// close ends l and returns what nobody has spent.
func (l *Lease) close() (left int64) { return max(l.left.Swap(closed), 0) }

// Answer is what a view says of a request.
type Answer uint8

const (
	Empty    Answer = iota // not decided: nothing is leased, and nothing is refused
	Admitted               // the hits were spent
	Refused                // the store has refused, and has named a later instant
)

// Decision is the answer for one request.
type Decision struct {
	Answer Answer
	From   *Lease // what the hits were spent from; nil: from credit
	Left   int64  // in From
	Wait   Time   // until the store may grant again, if it has refused
}

// View is what an instance knows of a key. It does not change, but for what is left of its leases.
type View struct {
	leases [2]*Lease // in the order in which they are spent; nil after the last one
	asked  bool      // a request is in flight

	refused Time // nothing is asked before
	retry   Time // the store may grant then

	credit *atomic.Int64 // units that may be admitted without a lease; nil: none
}

// Decide spends n hits, which must be above 0, at now: a reading of the clock that was made after v was
// loaded ([Key.View]).
func (v *View) Decide(now Time, n int64) Decision {
	for _, l := range v.leases {
		if l == nil {
			break
		}
		if now < l.End {
			if left, ok := spend(&l.left, n); ok {
				return Decision{Answer: Admitted, From: l, Left: left}
			}
		}
	}
	if now < v.refused {
		return Decision{Answer: Refused, Wait: v.retry - now}
	}
	if v.credit != nil {
		if _, ok := spend(v.credit, n); ok { // never put back: an ask may report them already
			return Decision{Answer: Admitted}
		}
	}
	return Decision{}
}

// Look answers as Decide does, and spends nothing.
func (v *View) Look(now Time, n int64) Decision {
	for _, l := range v.leases {
		if l != nil && now < l.End && l.Left() >= n {
			return Decision{Answer: Admitted, From: l, Left: l.Left()}
		}
	}
	if now < v.refused {
		return Decision{Answer: Refused, Wait: v.retry - now}
	}
	return Decision{}
}

// Has reports whether v decides n hits at now without an ask.
func (v *View) Has(now Time, n int64) bool {
	return v.Look(now, n).Answer != Empty || v.credit != nil && v.credit.Load() >= n
}

// Left returns how many units can be spent at now.
func (v *View) Left(now Time) (n int64) {
	for _, l := range v.leases {
		if l != nil && now < l.End {
			n += l.Left()
		}
	}
	return n
}

// Lasts reports whether the lease that is spent first does not end before until.
func (v *View) Lasts(until Time) bool { return v.leases[0] != nil && until <= v.leases[0].End }

// Asked reports whether a request is in flight.
func (v *View) Asked() bool { return v.asked }

// Refuses reports whether requests that no lease covers are refused at now.
func (v *View) Refuses(now Time) bool { return now < v.refused }

// Due reports whether it is time to ask for the next lease, after the decision d at now: less than
// a quarter of the last one is left, it is about to end, or there is none.
func (v *View) Due(d Decision, now Time) bool {
	switch {
	case v.asked || v.leases[1] != nil && d.From == v.leases[0]:
		return false
	case d.From == nil:
		return true
	}
	return d.Left < d.From.Granted/4 || now >= d.From.Soon
}

// Key is the state of one key at one instance. View is safe for concurrent use; the other
// methods are called one at a time. Make one with [New].
type Key struct {
	view atomic.Pointer[View]
	ask  *Ask // in flight; nil: none

	// Invariant: most - credit = what was spent and the store has not counted. It is that of the view.
	credit *atomic.Int64 // nil: strict
	most   int64

	spent int64 // of leases that are closed, and of credit that was restored
}

// New returns a key without leases. most is the number of units that it may admit without a lease.
func New(most int64) *Key {
	k := &Key{}
	if most > 0 {
		k.most, k.credit = most, new(atomic.Int64)
		k.credit.Store(most)
	}
	k.view.Store(&View{credit: k.credit})
	return k
}

// View returns what is known now.
func (k *Key) View() *View { return k.view.Load() }

// Ask begins a request at now, before it is sent. It returns nil if one is in flight.
func (k *Key) Ask(now Time, id ID, terms Terms) *Ask {
	if k.ask != nil {
		return nil
	}
	k.ask = &Ask{Terms: terms, ID: id, Report: k.Unrecorded(), Sent: now}
	k.change(func(v *View) { v.asked = true })
	return k.ask
}

// Unrecorded returns how many units of credit were spent that the store has not counted.
func (k *Key) Unrecorded() int64 {
	if k.credit == nil {
		return 0
	}
	return k.most - k.credit.Load()
}

// restore gives back n units of credit that the store has counted.
func (k *Key) restore(n int64) {
	if k.credit == nil || n == 0 {
		return
	}
	// In a new place: who has an older view may have read the clock before the store counted them.
	restored := new(atomic.Int64)
	restored.Store(k.credit.Swap(closed) + n)
	k.credit, k.spent = restored, k.spent+n
}

// Retire reports whether a new key can take the place of k: nothing is leased, asked for or refused, and the store
// has counted what was spent of the credit. If so, it closes the credit, which somebody with an older view could spend otherwise.
func (k *Key) Retire(now Time) bool {
	if v := k.View(); k.ask != nil || v.leases[0] != nil || v.Refuses(now) {
		return false
	}
	return k.credit == nil || k.credit.CompareAndSwap(k.most, closed)
}

// Granted is called with the reply to a: n units, at least one, and the length of their lease by the store's
// clock. It returns the leases to settle.
func (k *Key) Granted(a *Ask, now Time, n int64, length Time) []Settle {
	if a.answered {
		return nil
	}
	a.answered = true
	if k.ask != a { // it was given up
		return []Settle{{a.ID, n, 0}}
	}
	k.ask = nil
	k.restore(a.Report)
	var over []Settle
	end := a.Sent + min(length, a.Length) - a.Margin
	k.change(func(v *View) {
		v.asked, v.refused, v.retry, v.credit = false, 0, 0, k.credit
		if now >= end {
			over = append(over, Settle{a.ID, n, 0})
			return
		}
		over = k.drop(v, over, func(l *Lease) bool { return now >= l.End || l.Left() == 0 })
		if v.leases[1] != nil {
			oldest := v.leases[0]
			over = k.drop(v, over, func(l *Lease) bool { return l == oldest })
		}
		l := &Lease{ID: a.ID, Granted: n, End: end, Soon: end - a.Lead}
		l.left.Store(n)
		if v.leases[0] == nil {
			v.leases[0] = l
		} else {
			v.leases[1] = l
		}
	})
	return over
}

// Refused is called with the reply to a: the store has counted so many of the reported units, and so few are left that it
// can grant again only after retry. Until then, at most for the length of a lease, requests that no lease covers are refused.
func (k *Key) Refused(a *Ask, now Time, counted int64, retry Time) {
	if a.answered {
		return
	}
	a.answered = true
	if k.ask != a {
		return
	}
	k.ask = nil
	k.restore(counted)
	k.change(func(v *View) {
		v.asked, v.refused, v.retry, v.credit = false, now+min(retry, a.Length), now+retry, k.credit
	})
}

// Lost is called when there is no reply to a in time. It returns what to settle: the store may have granted
// something, which nobody will spend.
func (k *Key) Lost(a *Ask) []Settle {
	if k.ask == a {
		k.ask = nil
		k.change(func(v *View) { v.asked = false })
	}
	return []Settle{{ID: a.ID}}
}

// End closes the leases that are over at now or spent, and returns them to settle.
func (k *Key) End(now Time) []Settle {
	return k.close(func(l *Lease) bool { return now >= l.End || l.Left() == 0 })
}

// Recall closes all leases, gives up the request in flight, forgets that the store has refused, and returns what to settle.
func (k *Key) Recall() []Settle {
	settles := k.close(func(*Lease) bool { return true })
	k.ask = nil
	k.change(func(v *View) { v.asked, v.refused, v.retry = false, 0, 0 })
	return settles
}

func (k *Key) close(over func(*Lease) bool) (settles []Settle) {
	for _, l := range k.View().leases {
		if l != nil && over(l) {
			k.change(func(v *View) { settles = k.drop(v, nil, over) })
			break
		}
	}
	return settles
}

// Next returns when the first lease ends. It returns false if there is none.
func (k *Key) Next() (end Time, ok bool) {
	for _, l := range k.View().leases {
		if l != nil && (!ok || l.End < end) {
			end, ok = l.End, true
		}
	}
	return end, ok
}

// Spent returns how many units were spent.
func (k *Key) Spent() int64 {
	n := k.spent + k.Unrecorded()
	for _, l := range k.View().leases {
		if l != nil {
			n += l.Granted - l.Left()
		}
	}
	return n
}

// Open returns how many units the store has granted in leases that are not closed.
func (k *Key) Open() (n int64) {
	for _, l := range k.View().leases {
		if l != nil {
			n += l.Granted
		}
	}
	return n
}

// drop closes the leases of v that are over, and adds them to settles.
func (k *Key) drop(v *View, settles []Settle, over func(*Lease) bool) []Settle {
	var kept [2]*Lease
	n := 0
	for _, l := range v.leases {
		switch {
		case l == nil:
		case over(l):
			left := l.close()
			k.spent += l.Granted - left
			settles = append(settles, Settle{l.ID, l.Granted, l.Granted - left})
		default:
			kept[n] = l
			n++
		}
	}
	v.leases = kept
	return settles
}

// change replaces the view by a changed copy.
func (k *Key) change(what func(*View)) {
	v := *k.View()
	what(&v)
	k.view.Store(&v)
}

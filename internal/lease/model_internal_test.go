package lease

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// The model explores everything that instances, a store, and a network between them can do. The
// instances are the keys of this package, with their own transitions: Ask, Granted, Refused, Lost, End, Recall, View,
// Decide, Return, Retire. The rest is nondeterministic: which instance asks when, how much of what is left the store grants
// or whether it refuses, when timers fire, when goroutines run, how fast clocks are, which messages arrive, when, and whether they
// arrive twice. So it covers every policy of demand.go and every order in which package leasestore makes the calls.
//
// Time is in ticks of the store's clock. A clock of an instance advances by speed units in a tick, and 2 is the right
// speed. States are compared relative to the clocks, so there is no last instant: the exploration ends when it
// has seen all states.
const (
	unit      = 2 // of an instance's clock, in a tick
	historyOf = 2 // windows that are remembered
)

// setup is the size of a model, and what is wrong with it.
type setup struct {
	quota, window, length int
	speeds                []int // one for each instance
	credit                int
	messages              int  // in flight at most
	doubles               int  // messages that arrive twice, at most, at any one time
	direct                bool // calls that the store decides
	undo                  bool // hits are put back after another limit has denied
	crash                 bool
	lost                  bool // asks are given up
	recall                bool // leases are closed early
	lead                  bool // asks begin while a lease is open
	retire                bool // new keys take the place of old ones
	large                 bool

	// The mutations. With each of them the bound breaks.
	clockFirst   bool // the clock is read before the view is loaded
	noMargin     bool // the lease ends at its full length
	fromReply    bool // the lease is measured from the reply on
	lateSettle   bool // a settle after the end of its lease frees other units
	doubleSettle bool // a settle has effect each time that it arrives
	openSettle   bool // a lease is settled and not closed
	doubledReply bool // a reply that arrives again is that of a request that was given up
	settleEarly  bool // what was spent counts at the decision of the lease

	creditInPlace bool // credit is restored where it was spent
	creditRest    bool // a refused ask restores credit that was not counted
	creditAtOnce  bool // a key retires when it is refused, whatever was spent of its credit
	creditOpen    bool // a key retires and its credit is not closed
}

// record is hits of one date, or a lease: then date is its end.
type record struct {
	id   ID // of a lease that was not settled
	date int
	n    int
}

type messageKind uint8

const (
	request messageKind = iota
	reply
	settle
)

type message struct {
	kind    messageKind
	of      int  // the instance; -1: it has crashed since
	ask     *Ask // of a request or a reply; a copy if the instance has crashed
	settle  Settle
	granted int64 // of the lease to settle; for lateSettle
	n       int   // granted; 0: refused
	report  int   // of credit, counted; if it is not all that was reported, nothing is granted
	doubled bool
}

// thread is a goroutine that decides one hit.
type thread struct {
	step    uint8 // 0: idle; then the number of steps done
	view    *View
	reading Time
	at      int // the instant of reading
	from    *Lease
}

type instance struct {
	clock  Time
	key    *Key
	thread thread
}

type world struct {
	*setup
	now       int
	instances []instance
	store     []record
	net       []message
	admitted  []int        // by age in ticks
	granted   map[ID]int64 // of each lease; nil if not needed
	ids       uint16
	trace     *trace
}

type trace struct {
	before *trace
	text   string
}

func (t *trace) String() string {
	var lines []string
	for ; t != nil; t = t.before {
		lines = append(lines, t.text)
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}

func (s *setup) begin() *world {
	w := &world{setup: s, admitted: make([]int, historyOf*s.window)}
	if s.lateSettle || s.doubleSettle {
		w.granted = map[ID]int64{}
	}
	for range s.speeds {
		w.instances = append(w.instances, instance{key: New(int64(s.credit))})
	}
	return w
}

// clone returns a copy of w with copies of all that the keys share with threads and messages.
func (w *world) clone() *world {
	c := *w
	c.store, c.net, c.admitted = slices.Clone(w.store), slices.Clone(w.net), slices.Clone(w.admitted)
	c.instances = slices.Clone(w.instances)
	for i := range c.instances {
		in := &c.instances[i]
		old := in.key
		var leases [6][2]*Lease
		n := 0
		leaseOf := func(l *Lease) *Lease {
			if l == nil {
				return nil
			}
			for _, known := range leases[:n] {
				if known[0] == l {
					return known[1]
				}
			}
			copied := &Lease{ID: l.ID, Granted: l.Granted, End: l.End}
			copied.left.Store(l.left.Load())
			leases[n] = [2]*Lease{l, copied}
			n++
			return copied
		}
		k := &Key{most: old.most}
		if old.credit != nil {
			k.credit = new(atomic.Int64)
			k.credit.Store(old.credit.Load())
		}
		viewOf := func(v *View) *View {
			copied := *v
			copied.leases = [2]*Lease{leaseOf(v.leases[0]), leaseOf(v.leases[1])}
			switch {
			case v.credit == old.credit:
				copied.credit = k.credit
			case v.credit != nil: // closed
				copied.credit = new(atomic.Int64)
				copied.credit.Store(v.credit.Load())
			}
			return &copied
		}
		k.view.Store(viewOf(old.View()))
		switch in.thread.view {
		case nil:
		case old.View():
			in.thread.view = k.View()
		default:
			in.thread.view = viewOf(in.thread.view)
		}
		in.thread.from = leaseOf(in.thread.from)
		in.key = k
		if old.ask != nil {
			ask := *old.ask
			k.ask = &ask
		}
		var given []*Ask // asks that were given up, which messages share
		var copies []*Ask
		for j := range c.net {
			m := &c.net[j]
			switch {
			case m.ask == nil || m.of != i:
			case m.ask == old.ask:
				m.ask = k.ask
			default:
				at := slices.Index(given, m.ask)
				if at < 0 {
					ask := *m.ask
					given, copies, at = append(given, m.ask), append(copies, &ask), len(given)
				}
				m.ask = copies[at]
			}
		}
	}
	return &c
}

// encode appends what tells w from other states. Times are relative, and ids are in the order in which they are found.
func (w *world) encode(b []byte) []byte {
	var known [16]ID
	n := 0
	id := func(i ID) byte {
		for j := range n {
			if known[j] == i {
				return byte(j)
			}
		}
		known[n] = i
		n++
		return byte(n - 1)
	}
	oldest := w.now
	for i := range w.instances {
		in := &w.instances[i]
		floor := in.clock // a time before it is over for everybody
		if in.thread.step > 0 && in.thread.at >= 0 {
			floor = in.thread.reading
			oldest = min(oldest, in.thread.at)
		}
		since := func(t Time) byte { return byte(100 + max(t, floor) - in.clock) }
		lease := func(l *Lease) {
			if l == nil {
				b = append(b, 255)
				return
			}
			b = append(b, since(l.End), byte(l.left.Load()+1))
			if l.left.Load() >= 0 {
				b = append(b, id(l.ID), byte(l.Granted))
			}
		}
		view := func(v *View) {
			lease(v.leases[0])
			lease(v.leases[1])
			if v.credit != nil {
				b = append(b, byte(v.credit.Load()+1))
			}
		}
		view(in.key.View())
		if a := in.key.ask; a != nil {
			b = append(b, 1, id(a.ID), age(in, a), byte(a.Report))
		} else {
			b = append(b, 0)
		}
		if in.key.credit != nil {
			b = append(b, byte(in.key.credit.Load()))
		}
		t := &in.thread
		b = append(b, t.step)
		if t.step > 0 {
			if t.at >= 0 {
				b = append(b, since(t.reading), byte(100+t.at-w.now))
			}
			if t.view != nil {
				if t.view == in.key.View() {
					b = append(b, 254)
				} else {
					view(t.view)
				}
			}
			if t.from != nil {
				b = append(b, id(t.from.ID), since(t.from.End), byte(t.from.left.Load()+1))
			}
		}
	}
	b = append(b, 253)
	for i := range w.net {
		m := &w.net[i]
		d := byte(0)
		if m.doubled {
			d = 1
		}
		b = append(b, byte(m.kind), byte(m.of+1), byte(m.n), byte(m.report), d)
		switch {
		case m.ask != nil && m.of >= 0:
			a := byte(0)
			if m.ask.answered {
				a = 1
			}
			in := &w.instances[m.of]
			b = append(b, id(m.ask.ID), age(in, m.ask), byte(m.ask.Report), a)
		case m.kind == settle:
			b = append(b, id(m.settle.ID), byte(m.settle.Spent), byte(m.granted))
		case m.ask != nil:
			b = append(b, id(m.ask.ID), byte(m.ask.Report))
		}
	}
	b = append(b, 252)
	for _, r := range w.store {
		b = append(b, id(r.id), byte(100+r.date-w.now), byte(r.n))
	}
	b = append(b, 251)
	for age, n := range w.admitted {
		if age < w.now-oldest+w.window {
			b = append(b, byte(n))
		}
	}
	return b
}

// age returns for how long a was asked, as far as that matters: until its lease would be over.
func age(in *instance, a *Ask) byte { return byte(min(in.clock-a.Sent, a.Length)) }

func (w *world) used() (n int) {
	for _, r := range w.store {
		n += r.n
	}
	return n
}

func (w *world) newID() (id ID) {
	w.ids++
	binary.BigEndian.PutUint16(id[:], w.ids)
	return id
}

// admit counts an admission.
func (w *world) admit(at int) { w.admitted[w.now-at]++ }

func (w *world) holds() bool {
	bound := w.quota + len(w.instances)*w.credit
	for newest := range len(w.admitted) {
		sum := 0
		for age := newest; age < min(newest+w.window, len(w.admitted)); age++ {
			sum += w.admitted[age]
		}
		if sum > bound {
			return false
		}
	}
	return true
}

// tick advances the clocks.
func (w *world) tick() {
	w.now++
	for i := range w.instances {
		w.instances[i].clock += Time(w.speeds[i])
		if t := &w.instances[i].thread; t.step > 0 && t.at >= 0 && t.at <= w.now-w.window {
			*t = thread{} // the history does not go back far enough to judge it
		}
	}
	w.admitted = append([]int{0}, w.admitted[:len(w.admitted)-1]...)
	w.store = slices.DeleteFunc(w.store, func(r record) bool { return r.date <= w.now-w.window })
	for j := range w.store {
		if r := &w.store[j]; r.date <= w.now {
			r.id = ID{} // nothing ends it any more
		}
	}
}

// usable reports whether t can spend anything.
func (w *world) usable(in *instance) bool {
	t := &in.thread
	if t.step == 0 || t.step == 3 || t.view == nil || t.view.credit != nil && t.view.credit.Load() >= 0 {
		return true
	}
	for _, l := range t.view.leases {
		if l != nil && l.left.Load() >= 0 && (l.Left() > 0 || w.undo) && (t.at < 0 || t.reading < l.End) {
			return true
		}
	}
	return false
}

// tidy ends goroutines that have nothing to spend, and puts what the store counts into one order, so that equal states are found.
func (w *world) tidy() {
	for i := range w.instances {
		if in := &w.instances[i]; !w.usable(in) {
			in.thread = thread{}
		}
	}
	slices.SortStableFunc(w.store, func(a, b record) int {
		return cmp.Or(cmp.Compare(a.date, b.date), bytes.Compare(a.id[:], b.id[:]), cmp.Compare(a.n, b.n))
	})
	out := w.store[:0]
	for _, r := range w.store {
		if last := len(out) - 1; last >= 0 && out[last].date == r.date && out[last].id == (ID{}) && r.id == (ID{}) {
			out[last].n += r.n
		} else if r.n > 0 {
			out = append(out, r)
		}
	}
	w.store = out
}

func (w *world) send(m message) {
	if len(w.net) < w.messages {
		w.net = append(w.net, m)
	}
}

func (w *world) sendSettles(of int, settles []Settle) {
	for _, s := range settles {
		m := message{kind: settle, of: of, settle: s}
		if w.granted != nil {
			m.granted = w.granted[s.ID]
		}
		w.send(m)
	}
}

// next calls found with each state that can follow w. The text is built only for traces.
func (w *world) next(found func(*world, func() string) bool) bool {
	name := func(what string, i int) func() string {
		return func() string { return fmt.Sprintf("%3d: instance %d: %s", w.now, i, what) }
	}
	ok := true
	do := func(text func() string, what func(*world)) {
		if ok {
			c := w.clone()
			what(c)
			c.tidy()
			ok = found(c, text)
		}
	}
	do(func() string { return fmt.Sprintf("%3d: tick", w.now) }, (*world).tick)
	if w.direct && w.used() < w.quota {
		do(func() string { return fmt.Sprintf("%3d: the store admits one", w.now) }, func(c *world) {
			c.store = append(c.store, record{date: c.now, n: 1})
			c.admit(c.now)
		})
	}
	for i := range w.instances {
		w.nextOf(i, do, name)
	}
	for i := range w.net {
		w.deliver(i, do)
	}
	return ok
}

func (w *world) nextOf(i int, do func(func() string, func(*world)), name func(string, int) func() string) {
	in := &w.instances[i]
	_, open := in.key.Next()
	if in.key.ask == nil && len(w.net) < w.messages && (w.lead || !open) {
		do(name("ask", i), func(c *world) {
			in := &c.instances[i]
			terms := Terms{Want: int64(c.quota), Min: 1, Div: 1, Length: Time(c.length * unit), Margin: Time(c.length)}
			if c.noMargin {
				terms.Margin = 0
			}
			c.send(message{kind: request, of: i, ask: in.key.Ask(in.clock, c.newID(), terms)})
		})
	}
	if in.key.ask != nil && w.lost {
		do(name("lost", i), func(c *world) { k := c.instances[i].key; c.sendSettles(i, k.Lost(k.ask)) })
	}
	if end, open := in.key.Next(); open {
		if end <= in.clock || slices.ContainsFunc(in.key.View().leases[:], func(l *Lease) bool { return l != nil && l.Left() == 0 }) {
			do(name("end", i), func(c *world) {
				in := &c.instances[i]
				c.sendSettles(i, in.key.End(in.clock))
			})
		}
		if w.recall || w.openSettle {
			do(name("recall", i), func(c *world) {
				in := &c.instances[i]
				if c.openSettle {
					for _, l := range in.key.View().leases {
						if l != nil {
							c.sendSettles(i, []Settle{{l.ID, l.Granted, l.Granted - l.Left()}})
						}
					}
					return
				}
				c.sendSettles(i, in.key.Recall())
			})
		}
	}
	if w.crash && (in.key.ask != nil || in.key.View().leases[0] != nil) {
		do(name("crash", i), func(c *world) {
			in := &c.instances[i]
			in.key, in.thread = New(int64(c.credit)), thread{}
			c.net = slices.DeleteFunc(c.net, func(m message) bool { return m.of == i && m.kind == reply })
			for j := range c.net {
				if m := &c.net[j]; m.of == i {
					m.of = -1
				}
			}
		})
	}
	if w.retire {
		do(name("retire", i), func(c *world) {
			in := &c.instances[i]
			left := in.key.credit.Load()
			if c.creditAtOnce {
				in.key.credit.Store(in.key.most)
			}
			if !in.key.Retire(in.clock) {
				return
			}
			if c.creditOpen {
				in.key.credit.Store(left)
			}
			in.key = New(int64(c.credit))
		})
	}
	w.nextOfThread(i, do, name)
}

// nextOfThread has the steps of a decision: the view, the clock, the atomic step, and what follows if another limit denies.
func (w *world) nextOfThread(i int, do func(func() string, func(*world)), name func(string, int) func() string) {
	t := &w.instances[i].thread
	load := func(c *world) { in := &c.instances[i]; in.thread.view = in.key.View() }
	read := func(c *world) { in := &c.instances[i]; in.thread.reading, in.thread.at = in.clock, c.now }
	can := w.instances[i].key.View().leases[0] != nil || w.credit > 0
	switch t.step {
	case 0:
		if w.clockFirst {
			do(name("read the clock", i), func(c *world) { read(c); c.instances[i].thread.step = 1 })
		} else if can {
			do(name("load the view", i), func(c *world) { load(c); c.instances[i].thread.at = -1; c.instances[i].thread.step = 1 })
		}
	case 1:
		if w.clockFirst {
			do(name("load the view", i), func(c *world) { load(c); c.instances[i].thread.step = 2 })
		} else {
			do(name("read the clock", i), func(c *world) { read(c); c.instances[i].thread.step = 2 })
		}
	case 2:
		do(name("decide", i), func(c *world) {
			t := &c.instances[i].thread
			d := t.view.Decide(t.reading, 1)
			if d.Answer != Admitted {
				*t = thread{}
				return
			}
			c.admit(t.at)
			if c.undo && d.From != nil {
				*t = thread{step: 3, reading: t.reading, at: t.at, from: d.From}
				return
			}
			*t = thread{}
		})
	case 3:
		do(name("another limit admits", i), func(c *world) { c.instances[i].thread = thread{} })
		do(name("another limit denies", i), func(c *world) {
			t := &c.instances[i].thread
			c.admitted[c.now-t.at]--
			t.from.Return(1)
			*t = thread{}
		})
	}
}

// deliver has what can happen to message i.
func (w *world) deliver(i int, do func(func() string, func(*world))) {
	m := w.net[i]
	text := func(what string) func() string {
		return func() string {
			return fmt.Sprintf("%3d: %s of instance %d: %s", w.now, [...]string{"request", "reply", "settle"}[m.kind], m.of, what)
		}
	}
	do(text("lost"), func(c *world) { c.net = slices.Delete(c.net, i, i+1) })
	doubles := 0
	for _, m := range w.net {
		if m.doubled {
			doubles++
		}
	}
	for _, again := range []bool{false, true} {
		if again && (m.doubled || doubles >= w.doubles) {
			break
		}
		take := func(c *world) message {
			m := c.net[i]
			if again {
				c.net[i].doubled = true
			} else {
				c.net = slices.Delete(c.net, i, i+1)
			}
			return m
		}
		more := ""
		if again {
			more = ", and it will arrive again"
		}
		switch m.kind {
		case request:
			left := w.quota - w.used()
			report := min(int(m.ask.Report), max(left, 0))
			for n := range max(left-report, 0) + 1 {
				do(text(fmt.Sprintf("counted %d of credit, granted %d%s", report, n, more)), func(c *world) {
					m := take(c)
					if report > 0 {
						c.store = append(c.store, record{date: c.now, n: report})
					}
					if n > 0 {
						c.store = append(c.store, record{m.ask.ID, c.now + c.length, n})
						if c.granted != nil {
							c.granted = maps.Clone(c.granted)
							c.granted[m.ask.ID] = int64(n)
						}
					}
					if m.of >= 0 {
						c.send(message{kind: reply, of: m.of, ask: m.ask, n: n, report: report})
					}
				})
			}
		case reply:
			do(text("received"+more), func(c *world) {
				m := take(c)
				in := &c.instances[m.of]
				if c.doubledReply {
					m.ask.answered = false
				}
				before := in.key.credit
				inPlace := func() {
					if c.creditInPlace && before != in.key.credit {
						before.Store(in.key.credit.Load())
						in.key.credit = before
						in.key.change(func(v *View) { v.credit = before })
					}
				}
				if m.n == 0 {
					counted := int64(m.report)
					if c.creditRest {
						counted = m.ask.Report
					}
					in.key.Refused(m.ask, in.clock, counted, 0)
					inPlace()
					return
				}
				if c.fromReply {
					m.ask.Sent = in.clock
				}
				c.sendSettles(m.of, in.key.Granted(m.ask, in.clock, int64(m.n), Time(c.length*unit)))
				inPlace()
			})
		case settle:
			do(text("received"+more), func(c *world) { c.settle(take(c)) })
		}
	}
}

// settle ends a lease that is held: what was spent of it counts from now on.
func (w *world) settle(m message) {
	for j := range w.store {
		r := &w.store[j]
		if r.id != m.settle.ID || r.date <= w.now {
			continue
		}
		switch {
		case w.doubleSettle:
			r.n = max(0, r.n-int(m.granted-m.settle.Spent))
		case w.settleEarly:
			*r = record{date: r.date - w.length, n: int(m.settle.Spent)}
		default:
			*r = record{date: w.now, n: int(m.settle.Spent)}
		}
		return
	}
	if w.lateSettle {
		left := int(m.granted - m.settle.Spent)
		for j := len(w.store) - 1; j >= 0 && left > 0; j-- { // the newest ones
			n := min(w.store[j].n, left)
			w.store[j].n -= n
			left -= n
		}
	}
}

// explore visits all states of s, and returns how many there are, and how the first state came about in which the
// bound does not hold.
func (s *setup) explore(most int) (states int, wrong *trace) {
	seed1, seed2 := maphash.MakeSeed(), maphash.MakeSeed()
	seen := map[[2]uint64]struct{}{}
	var buffer []byte
	visit := func(w *world) bool {
		buffer = w.encode(buffer[:0])
		h := [2]uint64{maphash.Bytes(seed1, buffer), maphash.Bytes(seed2, buffer)}
		if _, ok := seen[h]; ok {
			return false
		}
		seen[h] = struct{}{}
		return true
	}
	first := s.begin()
	visit(first)
	open := []*world{first}
	for len(open) > 0 && len(seen) < most {
		w := open[len(open)-1]
		open = open[:len(open)-1]
		w.next(func(c *world, text func() string) bool {
			if !c.holds() {
				wrong = &trace{w.trace, text()}
				return false
			}
			if visit(c) {
				c.trace = &trace{w.trace, text()}
				open = append(open, c)
			}
			return true
		})
		if wrong != nil {
			break
		}
	}
	return len(seen), wrong
}

// The models together have all that can happen. All of it at once would be too many states.
func models() map[string]setup {
	two, slow, right, fast := []int{1, 3}, []int{1}, []int{2}, []int{3}
	return map[string]setup{
		"two instances":                   {quota: 2, window: 2, length: 1, speeds: two, messages: 2},
		"two instances, crash, recall":    {large: true, quota: 2, window: 2, length: 1, speeds: two, messages: 2, crash: true, lost: true, recall: true},
		"two instances, crash, doubles":   {large: true, quota: 2, window: 2, length: 1, speeds: two, messages: 2, crash: true, doubles: 1},
		"two instances, all faults":       {large: true, quota: 1, window: 2, length: 1, speeds: two, messages: 2, direct: true, lost: true, crash: true, recall: true, doubles: 1},
		"two instances, one message":      {quota: 2, window: 2, length: 1, speeds: two, messages: 1, direct: true, lost: true, crash: true, recall: true, doubles: 1},
		"two instances, long leases":      {large: true, quota: 1, window: 3, length: 2, speeds: two, messages: 1, direct: true, lost: true, crash: true, recall: true, doubles: 1, lead: true},
		"three instances":                 {large: true, quota: 2, window: 2, length: 1, speeds: []int{1, 1, 1}, messages: 1},
		"three instances, crash":          {large: true, quota: 1, window: 2, length: 1, speeds: []int{1, 2, 3}, messages: 1, crash: true},
		"slow and direct":                 {quota: 3, window: 2, length: 1, speeds: slow, messages: 2, direct: true, lead: true},
		"long leases":                     {large: true, quota: 2, window: 3, length: 2, speeds: slow, messages: 2, direct: true, lead: true},
		"all faults":                      {quota: 2, window: 2, length: 1, speeds: slow, messages: 2, direct: true, lost: true, crash: true, recall: true, doubles: 1},
		"most faults, fast":               {large: true, quota: 2, window: 2, length: 1, speeds: fast, messages: 2, direct: true, crash: true, lead: true, doubles: 1},
		"several limits":                  {quota: 2, window: 2, length: 1, speeds: right, messages: 2, direct: true, undo: true, lead: true, recall: true},
		"several limits, two instances":   {large: true, quota: 2, window: 2, length: 1, speeds: two, messages: 1, direct: true, undo: true, recall: true},
		"credit":                          {quota: 2, window: 2, length: 1, speeds: slow, messages: 2, direct: true, credit: 1},
		"credit, new keys":                {quota: 2, window: 2, length: 1, speeds: right, messages: 2, direct: true, credit: 1, retire: true},
		"credit, new keys, lost":          {large: true, quota: 1, window: 2, length: 1, speeds: right, messages: 2, direct: true, credit: 1, retire: true, lost: true},
		"credit, new keys, faults":        {quota: 1, window: 2, length: 1, speeds: slow, messages: 1, direct: true, credit: 2, retire: true, lost: true, recall: true, doubles: 1},
		"credit, new keys, two instances": {large: true, quota: 1, window: 2, length: 1, speeds: []int{2, 2}, messages: 1, credit: 1, retire: true},
	}
}

// In all states of all models, every window has at most the quota. The large models are for make model.
func TestModel(t *testing.T) {
	t.Parallel()
	for name, s := range models() {
		t.Run(name, func(t *testing.T) {
			if s.large && (testing.Short() || raced) {
				t.Skip("takes long")
			}
			t.Parallel()
			began := time.Now()
			states, wrong := s.explore(2_000_000)
			t.Logf("%d states in %v", states, time.Since(began))
			if wrong != nil {
				t.Fatalf("more than the quota was admitted:\n%v", wrong)
			}
			if states >= 2_000_000 {
				t.Fatal("not all states were seen")
			}
		})
	}
}

// The models find what breaks the bound.
func TestModelFinds(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]setup{
		"the clock is read before the lease is loaded": {clockFirst: true, direct: true},
		"a late settle frees other units":              {lateSettle: true, direct: true},
		"a settle has effect twice":                    {doubleSettle: true, doubles: 1, direct: true, recall: true},
		"a lease is settled and not closed":            {openSettle: true, direct: true},
		"a lease ends without a margin":                {noMargin: true, direct: true},
		"a lease is measured from the reply":           {fromReply: true, direct: true},
		"a doubled reply gives a lease up":             {doubledReply: true, doubles: 1, direct: true},
		"what was spent counts too early":              {settleEarly: true, direct: true, recall: true},
		"credit is restored in place":                  {creditInPlace: true, credit: 1, direct: true},
		"credit that did not fit is restored":          {creditRest: true, credit: 1, direct: true},
		"a key that was refused is replaced":           {creditAtOnce: true, credit: 1, direct: true, retire: true},
		"a key that was replaced has credit":           {creditOpen: true, credit: 1, direct: true, retire: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.quota, s.window, s.length, s.speeds, s.messages = 2, 2, 1, []int{1}, 2
			if s.settleEarly || s.noMargin {
				s.window, s.length = 3, 2
			}
			states, wrong := s.explore(1_000_000)
			if wrong == nil {
				t.Fatalf("not found in %d states", states)
			}
			t.Logf("%d states; the last steps:\n%v", states, wrong)
		})
	}
}

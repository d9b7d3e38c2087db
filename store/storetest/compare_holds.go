package storetest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// perSchedule is the number of steps of a short schedule.
const perSchedule = 10

// compareHolds compares the stores under limits of all kinds, from now on: in one
// schedule of steps, and in short ones. Each has its own takes and keys. A short one has
// four of the limits, so that its calls share keys.
func compareHolds(t testing.TB, a, b Opened, seed uint64, now window.Instant, steps int) {
	t.Helper()
	r := newHolder(seed, now)
	names := r.names
	for step := range 2 * steps {
		if short := step - steps; short >= 0 && short%perSchedule == 0 {
			r.schedule, r.takes, r.names = r.schedule+1, r.takes[:0], nil
			for _, i := range r.Perm(len(names))[:4] {
				r.names = append(r.names, names[i])
			}
		}
		r.compare(t, a, b, fmt.Sprintf("seed %d, schedule %d, step %d", seed, r.schedule, step))
	}
	if steps < 300 { // as in a fuzz test: some seeds have few of everything
		return
	}
	few := steps / 100
	for _, verb := range []store.Verb{store.Take, store.Record, store.Settle, store.Cancel, store.Renew, store.Reserve} {
		if r.found[verb] < few {
			t.Errorf("seed %d: got %d holds in %vs of %d steps, want %d", seed, r.found[verb], verb, 2*steps, few)
		}
	}
	if r.banned < few {
		t.Errorf("seed %d: got %d bans in %d steps, want %d", seed, r.banned, 2*steps, few)
	}
}

// compare makes the calls of one step in both stores.
func (r *holder) compare(t testing.TB, a, b Opened, at string) {
	t.Helper()
	r.pass()
	a.Set(r.now)
	b.Set(r.now)
	if r.made%48 == 0 {
		r.compareExports(t, a, b, at)
	}
	calls := r.remembered(r.calls())
	compareCalls(t, a, b, calls, r.now, at)
	for n := range calls {
		for i := range calls[n].Ops {
			op := &calls[n].Ops[i]
			if op.Result.Held {
				r.found[calls[n].Verb]++
			}
			if op.Result.Banned {
				r.banned++
			}
		}
		r.remember(calls[n])
	}
}

// holder generates calls about holds and bans.
type holder struct {
	random
	schedule int // the keys of each are its own
	made     uint64
	takes    []store.Call // which held something, the newest last

	found  map[store.Verb]int // holds, by the verb that found them
	banned int                // answers for a banned key
}

func newHolder(seed uint64, now window.Instant) *holder {
	r := &holder{
		random: random{Rand: rand.New(rand.NewPCG(seed, 1)), now: now, limits: holdLimits()},
		found:  map[store.Verb]int{},
	}
	for name, l := range limits() {
		if l.After.Count == 0 {
			r.limits["plain "+name] = l
		}
	}
	r.names = slices.Sorted(maps.Keys(r.limits))
	return r
}

// holdLimits returns limits that hold and limits that ban, in every kind of
// window, by name.
func holdLimits() map[string]*window.Compiled {
	all := map[string]window.Limit{}
	berlin := time.FixedZone("Berlin in winter", 3600)
	for name, w := range map[string]window.Window{
		"sliding":  window.Sliding(time.Hour),
		"cells":    window.Cells(time.Hour, 7),
		"fixed":    window.Fixed(time.Hour),
		"calendar": window.Calendar(window.Hour, berlin),
		"bucket":   window.Bucket(time.Hour, 0),
		"ever":     window.Ever(),
	} {
		all["hold "+name] = window.Limit{Quota: 12, Window: w, Hold: 10 * time.Minute, MaxHolds: 5}
		all["hold sum "+name] = window.Limit{Quota: 5000, Measure: window.Sum, Window: w, Hold: 2 * time.Hour, Release: true}
		all["ban "+name] = window.Limit{Quota: 4, Window: w, Ban: window.Ban{For: time.Minute, Factor: 3, Most: time.Hour, Forget: 2 * time.Hour}}
	}
	all["held"] = window.Limit{Quota: 4, Window: window.Held(time.Minute)}
	all["held sum"] = window.Limit{Quota: 1 << 35, Measure: window.Sum, Window: window.Held(time.Hour), MaxHolds: 4}
	all["ban held"] = window.Limit{Quota: 3, Window: window.Held(time.Hour), Ban: window.Ban{For: time.Second}}
	all["ban hold"] = window.Limit{Quota: 8, Window: window.Sliding(time.Minute), Hold: time.Minute, Ban: window.Ban{For: time.Second, Factor: 2}}
	all["ban distinct"] = window.Limit{Quota: 3, Measure: window.Distinct, Window: window.Sliding(time.Hour), Ban: window.Ban{For: time.Minute}}
	all["ban after"] = window.Limit{Quota: 2, Window: window.Sliding(time.Minute), After: window.After{Count: 3, Window: window.Fixed(time.Hour)}, Ban: window.Ban{For: time.Minute}}
	compiled := make(map[string]*window.Compiled, len(all))
	for name, l := range all {
		l.Export = name == "hold sum calendar" || name == "hold calendar"
		compiled[name] = window.MustCompile(l)
	}
	return compiled
}

func (r *holder) calls() []store.Call {
	calls := make([]store.Call, 1)
	if r.IntN(5) == 0 {
		calls = make([]store.Call, 1+r.IntN(4))
	}
	for i := range calls {
		calls[i] = r.call()
	}
	return apart(calls)
}

// apart returns the calls that share no key with an earlier one: a store may have to send a call again when it meets
// a hold or a mark that it did not know of, and a later call overtakes it then.
func apart(calls []store.Call) []store.Call {
	seen := map[address]bool{}
	return slices.DeleteFunc(calls, func(c store.Call) bool {
		shares := slices.ContainsFunc(c.Ops, func(op store.Op) bool { return seen[addressOf(&op)] })
		for i := range c.Ops {
			seen[addressOf(&c.Ops[i])] = true
		}
		return shares
	})
}

func (r *holder) call() store.Call {
	if len(r.takes) > 0 && r.IntN(2) == 0 {
		return r.later()
	}
	var c store.Call
	c.Verb, c.Ops = r.random.call()
	switch r.IntN(8) {
	case 0: // any verb
	case 1:
		c.Verb = store.Record
	case 2:
		c.Verb = []store.Verb{store.Set, store.Unban}[r.IntN(2)]
	default:
		c.Verb = store.Take
	}
	if r.IntN(4) == 0 {
		r.reserve(&c)
	}
	r.made++
	id := [12]byte{11: 7}
	binary.BigEndian.PutUint64(id[:], r.made)
	length := []time.Duration{0, time.Second, time.Minute, 20 * time.Minute, 3 * time.Hour}[r.IntN(5)]
	for i := range c.Ops {
		op := &c.Ops[i]
		op.Key = fmt.Append(nil, r.schedule, "key", r.IntN(3)) // few, so that takes share keys
		if op.Limit.HoldLength() > 0 {
			op.CountDenied = false
		}
		if c.Verb == store.Refund && r.IntN(4) == 0 {
			op.N = window.All
		}
		switch {
		case c.Verb == store.Reserve:
			begin := window.Instant(r.IntN(100))
			op.Hold = &store.Hold{Hold: window.Hold{ID: id, At: begin, End: begin.Add(length)}}
			op.Hold.Least, op.Hold.Part = r.Int64N(op.N+2), r.Int64N(4)
		case c.Verb == store.Take && r.IntN(8) > 0:
			op.Hold = &store.Hold{Hold: window.Hold{ID: id}}
		case c.Verb == store.Record && r.IntN(4) > 0: // as after an outage
			op.Hold = &store.Hold{NoStrike: r.IntN(2) == 0}
			if r.IntN(4) > 0 {
				op.Hold.Hold = window.Hold{ID: id, At: r.now.Add(-time.Minute), End: r.now.Add(time.Duration(r.IntN(4)-1) * time.Minute)}
			}
		}
	}
	return c
}

// reserve makes c a reserve, most often only of ops whose limits can reserve.
func (r *holder) reserve(c *store.Call) {
	c.Verb = store.Reserve
	if r.IntN(8) == 0 {
		return
	}
	var ops []store.Op
	for _, at := range r.Perm(len(r.names)) {
		if name := r.names[at]; r.limits[name].CanReserve() && len(ops) < 1+r.IntN(3) {
			ops = append(ops, r.op(name))
		}
	}
	if len(ops) > 0 {
		c.Ops = ops
	}
}

// later returns a call about the holds of an earlier take: usually of all its ops, sometimes also of
// others.
func (r *holder) later() store.Call {
	take := r.takes[r.IntN(len(r.takes))]
	c := store.Call{Verb: store.Settle + store.Verb(r.IntN(3)), Ops: cloned(take).Ops}
	if r.IntN(4) == 0 {
		c.Ops = c.Ops[:1+r.IntN(len(c.Ops))]
	}
	if r.IntN(6) == 0 { // memory reports a hold that the store had, and may still have
		c.Verb = store.Record
	}
	for i := range c.Ops {
		op := &c.Ops[i]
		if op.Hold == nil {
			op.Hold = &store.Hold{}
		}
		op.Hold.At, op.Hold.Decided = op.Hold.Decided, 0
		if c.Verb == store.Record {
			op.Hold.End, op.Result = r.now.Add(time.Duration(r.IntN(3))*time.Minute), window.Result{}
			continue
		}
		switch r.IntN(8) {
		case 0:
			op.Hold.ID = [12]byte{1} // which no take has
		case 1:
			op.Hold.Sure = true
		}
		if take.Verb == store.Reserve && c.Verb == store.Cancel {
			op.N = 0 // it has counted nothing without a hold
		}
		if op.Result = (window.Result{}); c.Verb != store.Settle {
			continue
		}
		switch r.IntN(4) {
		case 0:
			op.N = -1
		case 1:
			op.N = r.Int64N(2*op.N + 2)
		}
	}
	return c
}

// remember stores a take for later calls.
func (r *holder) remember(c store.Call) {
	if c.Verb != store.Take && c.Verb != store.Reserve || c.Err != nil {
		return
	}
	if r.takes = append(r.takes, c); len(r.takes) > 12 {
		r.takes = r.takes[1:]
	}
}

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

// Compare runs the same random calls on two stores, and fails t if a result or
// an error differs. The seed determines the calls: all verbs, roles, windows and
// measures, with one op or several, in bursts and with pauses. Time only goes
// forward, because a store may drop an expired key, and with it the latest
// instant at which it was used.
//
// There are three parts of so many steps: limits that neither hold nor ban; limits of
// all kinds, with takes that hold, and settles, cancels and renewals of theirs, early,
// late and repeated, and of takes that never were; and the same on new keys every ten
// steps.
func Compare(t testing.TB, a, b Opened, seed uint64, steps int) {
	t.Helper()
	compareHolds(t, a, b, seed, comparePlain(t, a, b, seed, steps), steps)
}

// comparePlain compares the stores under limits that neither hold nor ban, and returns
// the instant of the last step.
func comparePlain(t testing.TB, a, b Opened, seed uint64, steps int) window.Instant {
	t.Helper()
	r := newRandom(seed)
	for step := range steps {
		r.pass()
		a.Set(r.now)
		b.Set(r.now)
		if step%50 == 0 {
			r.compareExports(t, a, b, fmt.Sprintf("seed %d, step %d", seed, step))
		}
		compareCalls(t, a, b, r.remembered(r.calls()), r.now, fmt.Sprintf("seed %d, step %d", seed, step))
	}
	return r.now
}

// compareCalls makes calls at now in both stores, and fails t if a result differs.
func compareCalls(t testing.TB, a, b Opened, calls []store.Call, now window.Instant, at string) {
	t.Helper()
	others := make([]store.Call, len(calls))
	for i, c := range calls {
		others[i] = cloned(c)
	}
	errA, errB := a.Store.Do(t.Context(), calls), b.Store.Do(t.Context(), others)
	if fmt.Sprint(errA) != fmt.Sprint(errB) {
		t.Fatalf("%s: got errors %v and %v, want the same", at, errA, errB)
	}
	for n := range calls {
		if errA, errB := calls[n].Err, others[n].Err; fmt.Sprint(errA) != fmt.Sprint(errB) {
			t.Fatalf("%s, call %d of %d: got errors %v and %v, want the same", at, n, len(calls), errA, errB)
		}
		compareOnce(t, calls[n], others[n], fmt.Sprintf("%s, call %d of %d", at, n, len(calls)))
		for i := range calls[n].Ops {
			op, other := &calls[n].Ops[i], &others[n].Ops[i]
			if op.Result != other.Result || op.N != other.N || op.Hold != nil && *op.Hold != *other.Hold {
				t.Fatalf("%s, %v at %v, op %d of %d: %+v, %d and %d hits on key %s of %s (role %d, count denied %v), hold %+v and %+v:\ngot  %+v\nand  %+v,\nwant the same",
					at, calls[n].Verb, now.Time(), i, len(calls[n].Ops), *op.Limit.Limit, op.N, other.N, op.Key, op.Space.ID(), op.Role, op.CountDenied,
					op.Hold, other.Hold, op.Result, other.Result)
			}
		}
	}
}

// random generates calls.
type random struct {
	*rand.Rand
	now    window.Instant
	pace   time.Duration
	names  []string
	limits map[string]*window.Compiled
	once   []store.Call // made before, with their records
	ids    uint64       // of records
}

func newRandom(seed uint64) *random {
	r := &random{Rand: rand.New(rand.NewPCG(seed, 0)), now: start, limits: limits()}
	r.names = slices.Sorted(maps.Keys(r.limits))
	return r
}

// pass lets time pass: in bursts of one pace each, from no time to hours a step.
func (r *random) pass() {
	if r.IntN(40) == 0 {
		paces := []time.Duration{0, time.Microsecond, time.Millisecond, time.Second, time.Minute, time.Hour}
		r.pace = paces[r.IntN(len(paces))]
	}
	if r.pace > 0 {
		r.now = r.now.Add(time.Duration(r.Int64N(int64(4 * r.pace))))
	}
}

// calls returns one call, or a few that may share keys.
func (r *random) calls() []store.Call {
	n := 1
	if r.IntN(4) == 0 {
		n = 1 + r.IntN(6)
	}
	calls := make([]store.Call, n)
	for i := range calls {
		calls[i].Verb, calls[i].Ops = r.call()
	}
	return calls
}

// call returns a verb and one to four ops.
func (r *random) call() (store.Verb, []store.Op) {
	verb := store.Take
	if r.IntN(3) == 0 {
		verb = []store.Verb{store.Check, store.Record, store.Refund}[r.IntN(3)]
	}
	n := 1
	if r.IntN(2) == 0 {
		n = 1 + r.IntN(4)
	}
	ops := make([]store.Op, n)
	for i, at := range r.Perm(len(r.names))[:n] {
		ops[i] = r.op(r.names[at])
	}
	return verb, ops
}

// op returns an op under the named limit, at times with another quota, as for
// another plan.
func (r *random) op(name string) store.Op {
	limit := r.limits[name]
	if other := *limit.Limit; other.Quota > 0 && r.IntN(10) == 0 {
		other.Quota += 5
		limit = window.MustCompile(other)
	}
	key := r.IntN(1 << r.IntN(12)) // some keys often, many seldom
	op := hit(name, limit, fmt.Sprint("key", key))
	op.Member = []byte{byte(r.IntN(20))}
	op.N = r.hits(limit)
	if r.IntN(4) == 0 {
		op.Role = []store.Role{store.Shadow, store.Always, store.Look}[r.IntN(3)]
	}
	op.CountDenied = op.Role != store.Always && r.IntN(8) == 0
	op.UpTo = r.IntN(6) == 0
	return op
}

// hits returns a number of hits: mostly a few, sometimes none, all that fit, or
// more.
func (r *random) hits(l *window.Compiled) int64 {
	most := max(l.Capacity(), 10)
	switch r.IntN(20) {
	case 0:
		return 0
	case 1:
		return most
	case 2:
		return most + 1
	case 3:
		return r.Int64N(most)
	default:
		return 1 + r.Int64N(max(1, most/6))
	}
}

// recordLimit is the limit of records.
var recordLimit = window.MustCompile(window.Limit{Quota: window.Unlimited, Window: window.Fixed(24 * time.Hour)})

// records is the space of records.
var records = store.NewSpace("", "records", "records", 0)

// record returns the op of a record that is kept for some time.
func record(key, digest string, keep time.Duration) *store.Op {
	member := make([]byte, 16)
	copy(member, digest)
	return &store.Op{Space: records, Limit: recordLimit, Key: []byte(key), Member: member, N: keep.Microseconds()}
}

// remembered gives some of calls a record, and replaces some by calls that were made before: as they were, or
// with the digest of another request, or with fewer ops.
func (r *random) remembered(calls []store.Call) []store.Call {
	for i := range calls {
		switch {
		case calls[i].Verb == store.Check || calls[i].Verb == store.Reserve || r.IntN(4) > 0:
		case len(r.once) > 0 && r.IntN(2) == 0:
			c := cloned(r.once[r.IntN(len(r.once))])
			switch r.IntN(8) {
			case 0:
				c.Once.Member[3]++
			case 1:
				c.Once.N = 0
			case 2, 3: // without some of the ops
				if n := len(c.Ops); n > 1 {
					from := int(r.ids) % n
					c.Ops = c.Ops[from : from+1+int(r.ids/8)%(n-from)]
				}
			}
			r.ids++
			for n := range c.Ops {
				if h := c.Ops[n].Hold; c.Verb == store.Take && h != nil && h.ID != [12]byte{} {
					h.ID = [12]byte{0: 9}
					binary.BigEndian.PutUint64(h.ID[4:], r.ids)
				}
			}
			calls[i] = c
		default:
			r.ids++
			calls[i].Once = record(fmt.Sprint("call", r.ids), "digest", []time.Duration{time.Second, time.Minute, 24 * time.Hour}[r.IntN(3)])
			if r.ids%4 == 0 {
				calls[i].Once.Role = store.Look
			}
			if r.once = append(r.once, cloned(calls[i])); len(r.once) > 30 {
				r.once = slices.Delete(r.once, 0, 1)
			}
		}
	}
	return calls
}

// compareOnce fails t if one of two calls that are the same has found its record, and the other not, or another one.
func compareOnce(t testing.TB, a, b store.Call, at string) {
	t.Helper()
	if a.Once == nil || a.Err != nil {
		return
	}
	if x, y := &a.Once.Result, &b.Once.Result; (x.Before > 0) != (y.Before > 0) {
		t.Fatalf("%s: %v: got a record in one store only: %+v and %+v", at, a.Verb, *x, *y)
	} else if x.Before > 0 && (x.Allowed != y.Allowed || x.RetryAfter != y.RetryAfter) {
		t.Fatalf("%s: %v: got records that tell %+v and %+v, want the same", at, a.Verb, *x, *y)
	}
}

// cloned returns a deep copy of a call.
func cloned(c store.Call) store.Call {
	c.Ops = slices.Clone(c.Ops)
	for i := range c.Ops {
		if h := c.Ops[i].Hold; h != nil {
			own := *h
			c.Ops[i].Hold = &own
		}
	}
	if c.Once != nil {
		own := *c.Once
		own.Member = slices.Clone(own.Member)
		c.Once = &own
	}
	return c
}

package window_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/window"
)

// exactTake is what one take or record has counted. A record has no id.
type exactTake struct {
	id   [12]byte
	at   window.Instant // of its hits
	said window.Instant // in the receipt: the clock's
	n    int64
	left int64 // of n, not given back
}

// exactLog is a sliding window that remembers each hit with its own instant.
type exactLog struct {
	length time.Duration
	takes  []*exactTake // by at
	made   uint64
}

func (x *exactLog) used(t window.Instant) (n int64) {
	for _, h := range x.takes {
		if h.at.Add(x.length) > t {
			n += h.left
		}
	}
	return n
}

// count adds n hits that count at an instant, or earlier by the clock.
func (x *exactLog) count(at, clock window.Instant, n int64, id [12]byte) *exactTake {
	h := &exactTake{id: id, at: at, said: clock, n: n, left: n}
	x.takes = append(x.takes, h)
	return h
}

func (x *exactLog) refund(now window.Instant, n int64) {
	for i := len(x.takes) - 1; i >= 0 && x.takes[i].at.Add(x.length) > now; i-- {
		part := min(n, x.takes[i].left)
		x.takes[i].left, n = x.takes[i].left-part, n-part
	}
}

func (x *exactLog) next() (id [12]byte) {
	x.made++
	binary.BigEndian.PutUint64(id[:], x.made)
	return id
}

// Cancels in any order give back all hits of a window that has kept them in groups.
func TestGroupsGiveBackAllTakes(t *testing.T) {
	t.Parallel()
	l := window.MustCompile(window.Limit{Quota: 1000, Window: window.Sliding(time.Minute)})
	rnd := rand.New(rand.NewPCG(1, 38))
	for name, tc := range map[string]struct {
		takes int
		most  int64 // hits of a take
		order func([]*exactTake)
	}{
		"in order":                   {900, 1, func([]*exactTake) {}},
		"reversed":                   {900, 1, slices.Reverse[[]*exactTake]},
		"shuffled":                   {900, 1, func(h []*exactTake) { rnd.Shuffle(len(h), func(i, j int) { h[i], h[j] = h[j], h[i] }) }},
		"shuffled, with several":     {50, 35, func(h []*exactTake) { rnd.Shuffle(len(h), func(i, j int) { h[i], h[j] = h[j], h[i] }) }},
		"in order, larger than most": {3, 333, func([]*exactTake) {}},
	} {
		x, s, now := exactLog{length: time.Minute}, window.State(nil), window.Instant(1e15)
		var r window.Result
		for i := range tc.takes {
			if i%3 > 0 { // some share an instant
				now = now.Add(time.Millisecond)
			}
			h := x.count(now, now, 1+rnd.Int64N(tc.most), x.next())
			if s, r = l.TakeHold(s, now, window.Hits{N: h.n}, h.id); !r.Allowed {
				x.takes = x.takes[:len(x.takes)-1]
			}
		}
		tc.order(x.takes)
		for i, h := range x.takes {
			before := r.Used
			if s, r = l.GiveBack(s, now.Add(time.Second), h.said, window.Hits{N: h.n}); r.Used != before-h.n {
				t.Fatalf("%s: cancel %d of %d: got %d of %d used, want %d less", name, i, h.n, r.Used, before, h.n)
			}
		}
		if len(s) > 0 {
			t.Errorf("%s: got state %v after all cancels, want none", name, s)
		}
	}
}

// Whatever is taken, cancelled, refunded and recorded, a window in groups counts no fewer hits
// than a log of all hits does, now and at any later instant. Without refunds it counts less than a group
// more.
func TestGroupsGiveBackNoOthersHits(t *testing.T) {
	t.Parallel()
	runs := 2000
	if testing.Short() {
		runs = 300
	}
	for seed := range uint64(runs) {
		g := newGroupRun(seed)
		for step := range 150 {
			if err := g.step(); err != "" {
				t.Fatalf("seed %d, step %d: %+v: %s", seed, step, g, err)
			}
		}
	}
}

// groupRun is a run of calls on one key.
type groupRun struct {
	*rand.Rand
	limits                          []*window.Compiled
	least                           int64 // of their quotas
	refunds, records, reloads, back bool

	log exactLog
	s   window.State
	now window.Instant
}

func newGroupRun(seed uint64) *groupRun {
	r := rand.New(rand.NewPCG(seed, 38))
	g := &groupRun{Rand: r, refunds: r.IntN(3) == 0, records: r.IntN(3) == 0, reloads: r.IntN(3) == 0}
	g.back = !g.refunds && r.IntN(2) == 0 // a refund does not date what it leaves
	g.now, g.log.length, g.least = 1e15, time.Second, window.MaxHits
	for range 3 {
		w := window.Sliding(time.Second)
		w.Precision = 1 + r.IntN(8)
		l := window.Limit{Quota: int64(w.Precision)*(1+r.Int64N(9)) + 1, Window: w}
		g.limits, g.least = append(g.limits, window.MustCompile(l)), min(g.least, l.Quota)
		if !g.reloads {
			break
		}
	}
	return g
}

func (g *groupRun) step() string {
	switch g.IntN(6) {
	case 0, 1:
		g.now = g.now.Add(time.Duration(g.IntN(int(time.Second / 20))))
	case 2:
		g.now = g.now.Add(time.Duration(g.IntN(3)) * time.Microsecond)
	case 3:
		if n := len(g.log.takes); n > 0 { // to where hits leave
			g.now = max(g.now, g.log.takes[g.IntN(n)].at.Add(time.Second)+window.Instant(g.IntN(3)-1))
		}
	case 4:
		if g.back {
			g.now = g.now.Add(-time.Duration(g.IntN(int(time.Second / 10))))
		}
	}
	l, n := g.limits[g.IntN(len(g.limits))], 1+g.Int64N(12)
	if g.IntN(3) > 0 {
		n = 1
	}
	at := l.Read(g.s, g.now).At // later if the clock was set back
	var r window.Result
	switch k := g.IntN(24); {
	case k == 0 && g.refunds:
		g.log.refund(at, n)
		g.s, _ = l.Refund(g.s, g.now, window.Hits{N: n})
	case k == 1 && g.records:
		g.log.count(at, g.now, n, [12]byte{})
		g.s, _ = l.Record(g.s, g.now, window.Hits{N: n})
	case k < 8:
		i := -1
		if len(g.log.takes) > 0 {
			i = g.IntN(len(g.log.takes))
		}
		if i < 0 || g.log.takes[i].id == [12]byte{} {
			break
		}
		h := g.log.takes[i]
		g.log.takes = slices.Delete(g.log.takes, i, i+1)
		g.s, _ = l.GiveBack(g.s, g.now, h.said, window.Hits{N: h.n})
	default:
		h := g.log.next()
		if g.s, r = l.TakeHold(g.s, g.now, window.Hits{N: n}, h); r.Allowed {
			g.log.count(at, g.now, n, h)
		}
	}
	return g.compare(l, at)
}

// compare compares the window with the log from now on.
func (g *groupRun) compare(l *window.Compiled, now window.Instant) string {
	at := []window.Instant{now}
	for _, h := range g.log.takes {
		at = append(at, h.at.Add(time.Second)-1, h.at.Add(time.Second))
	}
	for _, t := range at {
		if t < now {
			continue
		}
		exact, used := g.log.used(t), l.Check(g.s, t, window.Hits{}).Used
		if used < min(exact, g.least) {
			return fmt.Sprintf("got %d used at %d, want at least %d", used, t, min(exact, g.least))
		}
		if !g.refunds && !g.records && !g.reloads && !g.back && used > exact+l.Group() {
			return fmt.Sprintf("got %d used at %d, want at most %d more than %d", used, t, l.Group()-1, exact)
		}
	}
	if l.Check(g.s, now, window.Hits{}).Used == 0 { // what has left does not come back where the clock is set back
		g.log.takes = nil
	}
	return ""
}

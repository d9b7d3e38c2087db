package redisstore_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/storetest"
	"github.com/weirhq/weir/window"
)

// subject is a limit, and what a reload may make of it while its states stay.
type subject struct {
	name     string
	limits   []window.Limit
	compiled []*window.Compiled // limits, in order
	most     int64              // hits of a call; 0: about the quota
	crowd    bool               // time passes slowly, so that many members come together
	back     int64              // times the window that the clock goes back at most; 0: once

	// amounts returns the hits of an op, where it is not nil.
	amounts func(r *rand.Rand, capacity int64) int64
}

func subjects(t testing.TB) []subject {
	t.Helper()
	zone := func(name string) *time.Location {
		z, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		return z
	}
	berlin, howe := zone("Europe/Berlin"), zone("Australia/Lord_Howe")
	precise := func(d time.Duration, precision int) window.Window {
		w := window.Sliding(d)
		w.Precision = precision
		return w
	}
	anchored := func(p window.Period, anchor int) window.Window {
		w := window.Calendar(p, berlin)
		w.Anchor = anchor
		return w
	}
	count := func(quota int64, w window.Window) window.Limit { return window.Limit{Quota: quota, Window: w} }
	sum := func(quota int64, w window.Window) window.Limit {
		return window.Limit{Quota: quota, Window: w, Measure: window.Sum}
	}
	distinct := func(quota int64, w window.Window) window.Limit {
		return window.Limit{Quota: quota, Window: w, Measure: window.Distinct}
	}
	waits := func(l window.Limit, n int64, w window.Window) window.Limit {
		l.After = window.After{Count: n, Window: w}
		return l
	}
	const keep, release = "keep", "release"
	holds := func(l window.Limit, d time.Duration, end string, most int) window.Limit {
		l.Hold, l.Release, l.MaxHolds = d, end == release, most
		return l
	}
	bans := func(l window.Limit, b window.Ban) window.Limit {
		l.Ban = b
		return l
	}
	of := func(highest int64, l window.Limit) window.Limit {
		l.Highest = highest
		return l
	}
	minute, day := time.Minute, 24*time.Hour
	quick := window.Ban{For: time.Second, Factor: 3, Most: 10 * minute, Forget: minute}
	all := []subject{
		{name: "sliding count", limits: []window.Limit{count(10, window.Sliding(minute))}},
		{name: "sliding count in groups", limits: []window.Limit{
			count(1000, window.Sliding(minute)), count(60, window.Sliding(minute)), count(1000, precise(minute, 7)), count(0, window.Sliding(minute)),
		}},
		{name: "sliding count, several quotas", limits: []window.Limit{
			of(450, count(450, window.Sliding(minute))), of(450, count(77, window.Sliding(minute))), of(450, count(3, window.Sliding(minute))),
		}},
		{name: "sliding count, several quotas without groups", limits: []window.Limit{of(60, count(60, window.Sliding(minute))), of(60, count(7, window.Sliding(minute)))}},
		{name: "distinct, several quotas", limits: []window.Limit{of(90, distinct(90, window.Sliding(day))), of(90, distinct(5, window.Sliding(day)))}, crowd: true},
		{name: "distinct in a fixed window, several quotas", limits: []window.Limit{of(90, distinct(90, window.Fixed(day))), of(90, distinct(5, window.Fixed(day)))}, crowd: true},
		{name: "distinct in a calendar window, several quotas", limits: []window.Limit{
			of(90, distinct(90, window.Calendar(window.Day, berlin))), of(90, distinct(5, window.Calendar(window.Day, berlin))),
		}, crowd: true},
		{name: "held, several quotas", limits: []window.Limit{
			of(450, holds(count(450, window.Sliding(minute)), 20*time.Second, keep, 9)), of(450, holds(count(7, window.Sliding(minute)), 20*time.Second, keep, 9)),
		}},
		{name: "sliding sum", limits: []window.Limit{sum(1_000_000, window.Sliding(day)), sum(123_457, precise(day, 1000))}},
		{name: "sliding sum of the most", limits: []window.Limit{sum(window.MaxHits, window.Sliding(day)), sum(window.MaxHits-4711, precise(day, 3))}},
		{name: "sliding sum of the most, in one group or in 10,000", limits: []window.Limit{sum(window.MaxHits, precise(day, 1)), sum(10, precise(day, 10_000))}, most: window.MaxHits},
		{name: "cells count", limits: []window.Limit{count(100, window.Cells(minute, 7)), count(100, window.Cells(minute, 60)), count(20, window.Cells(minute, 1))}},
		{name: "cells sum", limits: []window.Limit{sum(1_000_000, window.Cells(day, 0)), sum(window.MaxHits, window.Cells(day, 1440))}},
		{name: "cells counter", limits: []window.Limit{count(-1, window.Cells(minute, 10)), count(-1, window.Cells(minute, 11)), count(50, window.Cells(minute, 10))}},
		{name: "cells counter of the most", limits: []window.Limit{sum(-1, window.Cells(day, 3))}, most: window.MaxHits},
		{name: "cells, long", limits: []window.Limit{sum(-1, window.Cells(5*365*day, 1))}, most: 1 << 41},
		{name: "fixed count", limits: []window.Limit{count(10, window.Fixed(minute)), count(1000, window.Fixed(minute)), count(-1, window.Fixed(minute))}},
		{name: "fixed sum", limits: []window.Limit{sum(window.MaxHits, window.Fixed(day))}},
		{name: "calendar count", limits: []window.Limit{count(10, window.Calendar(window.Minute, howe)), count(50, window.Calendar(window.Minute, howe))}},
		{name: "aligned count", limits: []window.Limit{count(10, window.Aligned(minute)), count(50, window.Aligned(minute)), count(-1, window.Aligned(minute))}},
		{name: "aligned sum", limits: []window.Limit{sum(1_000_000, window.Aligned(30*day))}},
		{name: "distinct in an aligned window", limits: []window.Limit{distinct(80, window.Aligned(day)), distinct(5, window.Aligned(day))}, crowd: true},
		{name: "held in an aligned window", limits: []window.Limit{
			holds(count(20, window.Aligned(minute)), 30*time.Second, keep, 9), count(20, window.Aligned(minute)),
		}},
		{name: "calendar sum", limits: []window.Limit{sum(1_000_000, window.Calendar(window.Day, berlin)), sum(-1, window.Calendar(window.Day, berlin))}},
		{name: "calendar month", limits: []window.Limit{count(100, anchored(window.Month, 31))}},
		{name: "calendar week", limits: []window.Limit{count(100, anchored(window.Week, 3))}},
		{name: "calendar year", limits: []window.Limit{count(100, window.Calendar(window.Year, nil))}},
		{name: "calendar hour", limits: []window.Limit{count(100, window.Calendar(window.Hour, howe))}},
		{name: "bucket count", limits: []window.Limit{
			count(7, window.Bucket(10*time.Second, 0)), count(7, window.Bucket(10*time.Second, 30)), count(6, window.Bucket(10*time.Second, 1)),
			count(5, window.Bucket(10*time.Second, 0)), count(0, window.Bucket(10*time.Second, 0)),
		}},
		{name: "bucket sum", limits: []window.Limit{sum(1_000_003, window.Bucket(minute, 0)), sum(999_999, window.Bucket(minute, 20_000))}},
		{name: "bucket sum, fast", limits: []window.Limit{sum(1<<50, window.Bucket(time.Second, 1<<33))}, most: window.MaxHits},
		{name: "bucket sum, slow", limits: []window.Limit{sum(3, window.Bucket(10*365*day, 0))}, most: 1 << 40},
		{name: "distinct, few", limits: []window.Limit{distinct(5, window.Sliding(minute)), distinct(9, window.Sliding(minute)), distinct(0, window.Sliding(minute))}},
		{name: "distinct, many", limits: []window.Limit{distinct(100, window.Sliding(day)), distinct(70, window.Sliding(day))}, crowd: true},
		{name: "distinct in a fixed window", limits: []window.Limit{distinct(100, window.Fixed(day)), distinct(6, window.Fixed(day))}, crowd: true},
		{name: "distinct in a calendar window", limits: []window.Limit{distinct(80, window.Calendar(window.Day, berlin)), distinct(5, window.Calendar(window.Day, berlin))}, crowd: true},
		{name: "after a day's count", limits: []window.Limit{waits(count(1, window.Sliding(2*time.Second)), 30, window.Calendar(window.Day, berlin))}},
		{name: "after a sliding count", limits: []window.Limit{waits(count(3, window.Bucket(minute, 0)), 5, window.Sliding(10*minute)), waits(count(4, window.Bucket(minute, 2)), 3, window.Sliding(10*minute))}},
		{name: "after a count that ends first", limits: []window.Limit{waits(count(30, window.Sliding(2*minute)), 28, window.Sliding(minute)), waits(count(20, window.Sliding(2*minute)), 18, window.Sliding(minute))}},
		{name: "after fewer hits than are kept", limits: []window.Limit{waits(sum(100_000, window.Fixed(minute)), 13, window.Sliding(minute)), waits(sum(50_000, window.Fixed(minute)), 2000, window.Sliding(minute))}},
		{name: "after a count in cells", limits: []window.Limit{waits(sum(50, window.Cells(minute, 6)), 200, window.Cells(5*minute, 5)), waits(sum(50, window.Cells(minute, 6)), 100, window.Cells(5*minute, 5))}},
		{name: "after a sliding count, by the minute", back: 8, limits: []window.Limit{waits(count(2, window.Calendar(window.Minute, howe)), 3, window.Sliding(20*minute))}},
		{name: "after a minute's count", back: 8, limits: []window.Limit{waits(count(2, window.Sliding(10*minute)), 3, window.Calendar(window.Minute, howe))}},
		{name: "after a count in a fixed window", limits: []window.Limit{waits(count(10, window.Fixed(minute)), 20, window.Fixed(5*minute))}},
		{name: "ever", limits: []window.Limit{count(10, window.Ever()), count(30, window.Ever()), count(0, window.Ever())}},
		{name: "ever, the most", limits: []window.Limit{sum(window.MaxHits, window.Ever()), sum(window.MaxHits-1, window.Ever())}},
		{name: "after a count ever", limits: []window.Limit{waits(count(3, window.Sliding(minute)), 20, window.Ever())}},
		{name: "ever, after a count", limits: []window.Limit{waits(count(30, window.Ever()), 5, window.Sliding(minute))}},
		{name: "in flight", limits: []window.Limit{count(10, window.Held(minute)), count(3, window.Held(minute)), count(30, window.Held(minute))}},
		{name: "in flight, a sum", limits: []window.Limit{{Quota: 1 << 40, Measure: window.Sum, Window: window.Held(minute), MaxHolds: 5}}},
		{name: "held", limits: []window.Limit{
			holds(count(10, window.Sliding(minute)), 20*time.Second, keep, 0), count(10, window.Sliding(minute)),
			holds(count(30, window.Sliding(minute)), 5*minute, release, 3), holds(count(5, precise(minute, 2)), minute, keep, 4),
		}},
		{name: "held in groups", limits: []window.Limit{
			holds(sum(1_000_000, precise(day, 7)), time.Hour, keep, 9), sum(1_000_000, precise(day, 7)),
			holds(sum(1000, window.Sliding(day)), 30*time.Hour, release, 9),
		}},
		{name: "held, the most", limits: []window.Limit{
			holds(sum(window.MaxHits, window.Sliding(day)), time.Hour, keep, 9), holds(sum(window.MaxHits-4711, precise(day, 3)), 2*day, release, 5),
		}},
		{name: "held in cells", limits: []window.Limit{
			holds(count(100, window.Cells(minute, 7)), 30*time.Second, keep, 9), count(100, window.Cells(minute, 7)), count(-1, window.Cells(minute, 7)),
			holds(count(100, window.Cells(minute, 60)), 2*minute, release, 9),
		}},
		{name: "held in cells, the most", limits: []window.Limit{holds(sum(window.MaxHits, window.Cells(day, 1440)), day, keep, 9)}},
		{name: "held in a fixed window", limits: []window.Limit{
			holds(count(20, window.Fixed(minute)), 30*time.Second, keep, 9), count(20, window.Fixed(minute)), count(-1, window.Fixed(minute)),
			holds(sum(window.MaxHits, window.Fixed(minute)), 3*minute, release, 9),
		}},
		{name: "held in a calendar window", limits: []window.Limit{
			holds(count(20, window.Calendar(window.Minute, howe)), 30*time.Second, keep, 9), count(20, window.Calendar(window.Minute, howe)),
			holds(count(30, window.Calendar(window.Minute, howe)), 3*minute, release, 9),
		}},
		{name: "held in a bucket", limits: []window.Limit{
			holds(count(7, window.Bucket(10*time.Second, 0)), 3*time.Second, keep, 9), count(7, window.Bucket(10*time.Second, 0)),
			holds(count(6, window.Bucket(10*time.Second, 30)), 20*time.Second, release, 9), holds(count(0, window.Bucket(10*time.Second, 0)), minute, keep, 9),
		}},
		{name: "held in a bucket, fast", limits: []window.Limit{holds(sum(1<<50, window.Bucket(time.Second, 1<<33)), minute, keep, 9)}, most: window.MaxHits},
		{name: "held in a bucket, slow", limits: []window.Limit{holds(sum(3, window.Bucket(10*365*day, 0)), day, keep, 9)}, most: 1 << 40},
		{name: "held ever", limits: []window.Limit{
			holds(count(50, window.Ever()), minute, keep, 9), count(50, window.Ever()), holds(sum(window.MaxHits, window.Ever()), minute, release, 9),
		}},
		{name: "bans", limits: []window.Limit{
			bans(count(5, window.Sliding(minute)), quick), count(5, window.Sliding(minute)), bans(count(5, window.Sliding(minute)), window.Ban{For: 5 * minute}),
			holds(bans(count(5, window.Sliding(minute)), quick), 20*time.Second, keep, 3),
		}},
		{name: "bans in groups", limits: []window.Limit{ // which cancels that are sure take hits out of
			bans(count(100, precise(minute, 7)), quick), count(100, precise(minute, 7)), count(100, precise(minute, 3)), count(5, precise(minute, 2)),
		}, most: 9},
		{name: "bans with holds in a bucket", limits: []window.Limit{holds(bans(count(6, window.Bucket(10*time.Second, 9)), quick), 5*time.Second, release, 4)}},
		{name: "bans in a calendar window", limits: []window.Limit{bans(count(5, window.Calendar(window.Minute, howe)), quick), bans(count(0, window.Calendar(window.Minute, howe)), quick)}},
		{name: "bans of what is in flight", limits: []window.Limit{bans(count(5, window.Held(minute)), quick), count(5, window.Held(minute))}},
		{name: "bans of members", limits: []window.Limit{bans(distinct(70, window.Sliding(day)), quick), bans(distinct(5, window.Sliding(day)), quick), distinct(70, window.Sliding(day))}, crowd: true},
		{name: "bans of members of a day", limits: []window.Limit{bans(distinct(80, window.Calendar(window.Day, berlin)), quick)}, crowd: true},
		{name: "bans after a count", limits: []window.Limit{bans(waits(count(3, window.Bucket(minute, 0)), 5, window.Sliding(10*minute)), quick)}},
		{name: "bans for long", limits: []window.Limit{bans(count(1, window.Fixed(minute)), window.Ban{For: window.MaxLength, Factor: 1000, Most: window.MaxLength, Forget: window.MaxLength})}},
	}
	for i := range all {
		for _, l := range all[i].limits {
			all[i].compiled = append(all[i].compiled, window.MustCompile(l))
		}
	}
	return all
}

// TestAgreesWithWindow plays random and bursty traffic, with limits that
// change under it and time that sometimes runs backwards, on the store and on
// the model, which counts with package window: all results are equal.
// WEIR_LONG=1 makes it 100,000 calls a subject.
func TestAgreesWithWindow(t *testing.T) {
	t.Parallel()
	players, calls := 25, 200
	if testing.Short() {
		players = 3
	}
	if os.Getenv("WEIR_LONG") == "1" {
		players, calls = 50, 2000
	}
	c := connect(t, redistest.Server(t).Addr())
	for _, s := range subjects(t) {
		t.Run(s.name, func(t *testing.T) {
			var all sync.WaitGroup
			for seed := range players {
				all.Go(func() { play(t, open(t, c), &s, uint64(seed), calls) })
			}
			all.Wait()
		})
	}
}

// play makes calls of one to three ops of a subject on got and on the model.
func play(t *testing.T, got storetest.Opened, s *subject, seed uint64, calls int) {
	want := storetest.NewModel()
	p := &player{Rand: rand.New(rand.NewPCG(seed, 7)), subject: s, space: store.NewSpace("", s.name, "rule", 0)}
	p.now = window.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)) + window.Instant(p.Int64N(1e9))
	for i := range calls {
		p.pass()
		got.Set(p.now)
		want.Set(p.now)
		verb, ops := p.call()
		expected := slices.Clone(ops)
		for n := range expected {
			if h := expected[n].Hold; h != nil {
				own := *h
				expected[n].Hold = &own
			}
		}
		if err := store.Do(t.Context(), want.Store, verb, expected); err != nil {
			t.Error(err)
			return
		}
		if err := store.Do(t.Context(), got.Store, verb, ops); err != nil {
			t.Errorf("seed %d, call %d: got error %v", seed, i, err)
			return
		}
		for n := range ops {
			op, r := &ops[n], ops[n].Result
			if r != expected[n].Result || op.N != expected[n].N || op.Hold != nil && *op.Hold != *expected[n].Hold {
				t.Errorf("seed %d, call %d, %v at %d, op %d of %d: %+v, %d and %d hits on key %s, member %s, role %d, count denied %v, hold %+v:\ngot  %+v\nwant %+v",
					seed, i, verb, p.now, n, len(ops), *op.Limit.Limit, op.N, expected[n].N, op.Key, op.Member, op.Role, op.CountDenied, op.Hold, r, expected[n].Result)
				return
			}
			p.last = r.RetryAfter
		}
		p.note(verb, ops)
	}
}

// latest is when the traffic ends.
var latest = window.At(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))

// player makes up the calls of a subject.
type player struct {
	*rand.Rand
	*subject
	space *store.Space
	now   window.Instant
	last  time.Duration // the wait in the result of the last call
	here  int           // calls at this instant

	made  uint64       // names of holds
	takes [][]store.Op // which held something, the newest last
}

// pass lets time pass, by nothing in a burst.
func (p *player) pass() {
	before := p.now
	w := &p.limits[0].Window
	length := w.Length
	switch w.Kind {
	case window.KindEver:
		length = time.Minute
	case window.KindCalendar:
		start, end := w.PeriodBounds(p.now)
		length = end.Sub(start)
	}
	if p.crowd && p.IntN(50) > 0 {
		length /= 500
	}
	switch p.IntN(12) {
	case 0:
		p.now = p.now.Add(length) + window.Instant(p.IntN(3)-1)
	case 1: // to the end of the wait in the last result
		p.now = p.now.Add(p.last) + window.Instant(p.IntN(3)-1)
	case 2:
		most := max(p.subject.back, 1)
		if p.holds() {
			most = 3
		}
		back := window.Instant(p.Int64N(length.Microseconds() * most))
		if p.crowd {
			back = 1 // further back too many members are of the latest instant
		}
		p.now -= back
	case 3:
		p.now = p.now.Add(time.Duration(p.Int64N(int64(length))))
	case 4, 5, 6:
		p.now = p.now.Add(time.Duration(p.Int64N(int64(length)/20 + 1)))
	case 7:
		p.now++
	}
	// The store keeps members of one microsecond in order up to the 16th.
	if p.here++; p.now != before {
		p.here = 0
	} else if p.here > 4 {
		p.now++
		p.here = 0
	}
	p.now = min(max(p.now, 1), latest)
}

// holds reports whether limits of the subject hold or ban.
func (s *subject) holds() bool {
	return slices.ContainsFunc(s.compiled, func(l *window.Compiled) bool { return l.HoldLength() > 0 || l.Ban.For > 0 })
}

// note remembers a take for later calls about its holds.
func (p *player) note(verb store.Verb, ops []store.Op) {
	if verb != store.Take || !p.holds() {
		return
	}
	if p.takes = append(p.takes, ops); len(p.takes) > 10 {
		p.takes = p.takes[1:]
	}
}

// name gives ops a hold in common.
func (p *player) name(verb store.Verb, ops []store.Op) {
	p.made++
	id := [12]byte{7}
	binary.BigEndian.PutUint64(id[4:], p.made)
	for i := range ops {
		h := &store.Hold{Hold: window.Hold{ID: id}, NoStrike: p.IntN(2) == 0}
		if verb == store.Record {
			h.At, h.End = p.now.Add(-time.Second), p.now.Add(time.Duration(p.IntN(60)-5)*time.Second)
		}
		if ops[i].Hold = h; ops[i].Limit.HoldLength() > 0 {
			ops[i].CountDenied = false
		}
		if verb == store.Refund && p.IntN(4) == 0 {
			ops[i].N = window.All
		}
	}
}

// later returns a call about the holds of an earlier take.
func (p *player) later() (store.Verb, []store.Op) {
	verb := []store.Verb{store.Settle, store.Cancel, store.Renew}[p.IntN(3)]
	ops := slices.Clone(p.takes[p.IntN(len(p.takes))])
	for i := range ops {
		op := &ops[i]
		h := *op.Hold
		h.At, h.Decided, h.Sure = h.Decided, 0, p.IntN(4) == 0
		if op.Hold, op.Result = &h, (window.Result{}); verb != store.Settle {
			continue
		}
		switch p.IntN(4) {
		case 0:
			op.N = -1
		case 1:
			op.N = p.Int64N(min(2*op.N+2, window.MaxHits))
		}
	}
	return verb, ops
}

func (p *player) call() (store.Verb, []store.Op) {
	if len(p.takes) > 0 && p.IntN(3) == 0 {
		return p.later()
	}
	verb, ops := p.random()
	if p.holds() {
		p.name(verb, ops)
	}
	return verb, ops
}

func (p *player) random() (store.Verb, []store.Op) {
	verb := store.Take
	if p.IntN(3) == 0 {
		verb = []store.Verb{store.Check, store.Record, store.Refund}[p.IntN(3)]
	}
	ops := make([]store.Op, 1)
	if p.IntN(4) == 0 {
		ops = make([]store.Op, 2+p.IntN(2))
	}
	keys := 5
	if p.limits[0].Measure == window.Distinct {
		keys = 3 // enough of them on each to need more than one string
	}
	for i, key := range p.Perm(keys)[:len(ops)] {
		ops[i] = p.op(fmt.Sprint("key", key))
	}
	return verb, ops
}

func (p *player) op(key string) store.Op {
	i := 0
	if p.IntN(10) == 0 {
		i = p.IntN(len(p.limits))
	}
	limit := p.compiled[i]
	op := store.Op{Space: p.space, Limit: limit, Key: []byte(key), N: p.hits(limit)}
	if limit.Measure == window.Distinct {
		op.Member = fmt.Append(nil, "member", p.Int64N(2*limit.Capacity()+3))
	}
	if p.IntN(6) == 0 {
		op.Role = []store.Role{store.Shadow, store.Always}[p.IntN(2)]
	}
	op.CountDenied = op.Role != store.Always && p.IntN(10) == 0
	op.UpTo = p.IntN(6) == 0
	if p.limits[i].Window.Kind == window.KindCells && len(p.limits) > 1 {
		// Cells that were cut anew may begin after now, and package window then
		// counts the wait of a denied and counted op from there.
		op.CountDenied = false
	}
	return op
}

// hits returns mostly a few, sometimes none, all, or more than fit.
func (p *player) hits(l *window.Compiled) int64 {
	if p.amounts != nil {
		return p.amounts(p.Rand, l.Capacity())
	}
	most := p.most
	if most == 0 {
		most = max(l.Capacity(), 10)
	}
	switch p.IntN(20) {
	case 0:
		return 0
	case 1:
		return most
	case 2:
		return min(most+1, window.MaxHits)
	case 3, 4:
		return p.Int64N(most)
	case 5, 6, 7:
		return 1 + p.Int64N(max(1, most/6))
	default:
		return 1 + p.Int64N(min(3, most))
	}
}

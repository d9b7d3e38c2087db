package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/bits"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/benchmarks/internal/measure"
	"github.com/weirhq/weir/benchmarks/internal/peer"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// plenty is a quota that no measurement exhausts, and scarce one that is exhausted at once.
var (
	plenty = peer.Config{Quota: 1_000_000_000, Window: time.Hour}
	scarce = peer.Config{Quota: 100, Window: time.Minute}
)

// eachTurn is how many slices of one core and of all cores one round measures in turns. A single slice of all
// cores depends too much on chance: while another program runs on a core, goroutines wait for the locks of the
// goroutine that was running there.
const eachTurn = 3

// turns returns the medians of eachTurn calls of f.
func turns(f func() measure.Numbers) measure.Numbers {
	var all []measure.Numbers
	for range eachTurn {
		all = append(all, f())
	}
	return measure.Medians(all)
}

// anew measures each peer with a new limiter in each turn, so that no other limiter's memory is scanned or cached in
// the meantime.
func anew(peers []peer.Peer, c peer.Config, f func(p peer.Peer, l peer.Limiter) measure.Numbers) (rows []row) {
	for _, p := range peers {
		rows = append(rows, rowOf(p, func() measure.Numbers {
			l := p.New(c)
			defer l.Stop()
			defer runtime.KeepAlive(l)
			return f(p, l)
		}))
	}
	return rows
}

// kept measures each peer with one limiter, which stays until the section ends.
func (s settings) kept(peers []peer.Peer, c peer.Config, f func(p peer.Peer, l peer.Limiter) measure.Numbers) (rows []row) {
	for _, p := range peers {
		l := p.New(c)
		s.later(l.Stop)
		rows = append(rows, rowOf(p, func() measure.Numbers { return f(p, l) }))
	}
	return rows
}

// hot measures limiters with one key.
func hot(s settings) *table {
	keys, denying := measure.NewKeys(1), map[string]peer.Limiter{}
	for _, p := range peer.Hot() {
		if p.Kind == peer.Limits {
			denying[p.Name] = p.New(scarce)
			s.later(denying[p.Name].Stop)
		}
	}
	rows := s.kept(peer.Hot(), plenty, func(p peer.Peer, l peer.Limiter) measure.Numbers {
		one := measure.Measure(l.Allow, keys, measure.One(), 1, s.slice)
		two := measure.Measure(l.Allow, keys, measure.One(), 2, s.slice)
		denied := measure.None()
		if d := denying[p.Name]; d.Allow != nil {
			denied = measure.Measure(d.Allow, keys, measure.One(), 1, s.slice).Nanoseconds
		}
		if p.Kind == peer.Cost {
			one.Admitted = measure.None()
		}
		return measure.Numbers{one.Nanoseconds, two.Nanoseconds, denied, one.Allocs, one.Admitted}
	})
	g := s.measure("hot", s.rounds, rows)
	t := g.table(s, []column{
		{"one core", "one", number, at(0)}, {"two cores", "", number, at(1)}, {"denied, one core", "denied", number, at(2)},
		{"× reference", "", ratio, by(0)}, {"on two", "", ratio, by(1)}, {"allocations", "", whole, at(3)}, {"admitted", "", share, at(4)},
	})
	t.chart = g.chart(s, "hot.svg", chart{title: "One hot key, one core: nanoseconds per admitted call", unit: " ns", show: number}, at(0))
	return t
}

// million measures limiters with many keys.
func million(s settings) *table {
	keys, zipf, uniform := measure.NewKeys(s.keys), measure.Zipf(s.keys), measure.Uniform(s.keys)
	var empties []measure.Numbers // before a limiter of weir: what is left of others can be in it
	var before, empty float64
	peers := peer.Million()
	for i, p := range peers {
		peers[i].New = func(c peer.Config) peer.Limiter {
			before, empty = measure.Heap(), measure.Collection()
			return p.New(c)
		}
	}
	g := s.measure("million", s.rounds, anew(peers, scarce, func(p peer.Peer, l peer.Limiter) measure.Numbers {
		measure.Fill(l.Allow, keys, p.Hits)
		each, collection := (measure.Heap()-before)/float64(s.keys), measure.Collection()
		measure.Measure(l.Allow, keys, zipf, 1, s.settle)
		n := turns(func() measure.Numbers {
			one, two := measure.Measure(l.Allow, keys, zipf, 1, s.slice), measure.Measure(l.Allow, keys, zipf, 2, s.slice)
			return measure.Numbers{one.Nanoseconds, two.Nanoseconds, one.Allocs, one.Admitted}
		})
		measure.Measure(l.Allow, keys, uniform, 1, s.settle)
		n = append(n, measure.Measure(l.Allow, keys, uniform, 1, s.slice).Nanoseconds, each, collection)
		if p.Kind == peer.Cost {
			n[3], n[5], n[6] = measure.None(), measure.None(), measure.None()
		}
		if p.IsOurs() {
			empties = append(empties, measure.Numbers{empty})
		}
		return n
	}))
	s.found[cell{"million", "", "gc"}] = measure.Medians(empties)[0]
	t := g.table(s, []column{
		{"zipf, one core", "one", number, at(0)}, {"two cores", "", number, at(1)}, {"gain", "", multiple, gain(0, 1)}, {"uniform, one core", "", number, at(4)},
		{"× reference (zipf)", "", ratio, by(0)}, {"on two", "", ratio, by(1)}, {"allocations", "", whole, at(2)}, {"bytes a key", "bytes", whole, at(5)},
		{"GC ms", "gc", number, at(6)}, {"admitted (zipf)", "", share, at(3)},
	})
	t.chart = g.chart(s, "million.svg", chart{title: "A million keys, zipf, one core: nanoseconds per call", unit: " ns", show: number}, at(0))
	return t
}

// cores measures what limiters gain from all cores of the machine.
func cores(s settings) *table {
	n := runtime.NumCPU()
	c := chart{
		title: "Million decisions a second: one core, and all cores of the machine", longest: true, given: true, show: number,
		series: []string{"one core", fmt.Sprintf("%d cores, a goroutine each", n), fmt.Sprintf("%d cores, 8 goroutines each", n)},
	}
	limiting := slices.DeleteFunc(peer.ContendedHot(), func(p peer.Peer) bool { return p.Kind == peer.Flows })
	var tables []*table
	for _, part := range []struct {
		section, label string
		peers          []peer.Peer
		config         peer.Config
		draw           measure.Draw
		keys           measure.Keys
	}{
		{"cores hot", "hot key", peer.ContendedHot(), plenty, measure.One(), measure.NewKeys(1)},
		{"cores denied", "denied", limiting, scarce, measure.One(), measure.NewKeys(1)},
		{"cores zipf", "zipf", peer.ContendedMillion(), scarce, measure.Zipf(s.keys), measure.NewKeys(s.keys)},
	} {
		g := s.measure(part.section, s.rounds, anew(part.peers, part.config, func(_ peer.Peer, l peer.Limiter) measure.Numbers {
			warm := s.slice
			if part.keys.Len() > 1 {
				measure.Fill(l.Allow, part.keys, 1)
				runtime.GC()
				warm = s.settle
			}
			measure.Measure(l.Allow, part.keys, part.draw, 1, warm)
			return turns(func() measure.Numbers {
				numbers, last := measure.Numbers{measure.Measure(l.Allow, part.keys, part.draw, 1, s.slice).Nanoseconds}, measure.Speed{}
				for _, each := range []int{1, 2, 8} { // goroutines for each core
					last = measure.MeasureGoroutines(l.Allow, part.keys, part.draw, n, n*each, s.slice)
					numbers = append(numbers, last.Nanoseconds)
				}
				return append(numbers, last.Waiting)
			})
		}))
		millions := func(n int) func(*grid, int) float64 {
			return func(g *grid, i int) float64 { return 1e3 / g.numbers[i][n] }
		}
		tables = append(tables, g.table(s, []column{
			{"one core", "", number, at(0)}, {"all, 1 a core", "", number, at(1)}, {"gain", "", multiple, gain(0, 1)}, {"", "millions", number, millions(1)},
			{"all, 2 a core", "", number, at(2)}, {"all, 8 a core", "", number, at(3)}, {"gain", "", multiple, gain(0, 3)}, {"waiting", "", share, at(4)},
		}))
		for i, r := range g.rows {
			label := r.name
			if r.bold {
				label = "raw"
			}
			if r.bold || r.class == "ours" {
				c.bars = append(c.bars, bar{part.label + ": " + label, r.class, []float64{millions(0)(g, i), millions(1)(g, i), millions(3)(g, i)}})
			}
		}
	}
	tables[0].more, tables[0].chart = tables[1:], s.draw("cores.svg", c)
	return tables[0]
}

// collector measures single calls while the garbage collector works.
func collector(s settings) *table {
	keys, draw := measure.NewKeys(s.keys), measure.Zipf(s.keys)
	return s.measure("collector", s.rounds, anew(peer.Cold(), scarce, func(_ peer.Peer, l peer.Limiter) measure.Numbers {
		measure.Fill(l.Allow, keys, 1)
		defer measure.AllocateInBackground(s.pointers, 100<<20)()
		runtime.GC()
		before := measure.Collections()
		h := measure.Open(l.Allow, keys, draw, 20*time.Microsecond, s.open)
		return measure.Numbers{measure.Share(h, 0.5), measure.Share(h, 0.99), measure.Share(h, 0.999), float64(h.Max()), measure.Collections() - before}
	})).table(s, []column{
		{"p50", "", timing, at(0)}, {"p99", "p99", timing, at(1)}, {"p99.9", "", timing, at(2)}, {"max", "", timing, at(3)}, {"collections", "", number, at(4)},
	})
}

// The limit that the traces are played against, and the factor by which they are played faster to a limiter that
// needs the real clock.
const (
	traceQuota  = 1000
	traceWindow = 10 * time.Second
	traceScale  = 100
)

// accuracy compares the answers of limiters with an exact log.
func accuracy(s settings) *table {
	peers, traces := peer.Accuracy(), measure.Traces(s.arrivals, traceQuota, traceWindow)
	t := s.newTable("accuracy", "")
	t.notes = []string{fmt.Sprintf("*: needs the real clock, so the trace was played %d times as fast, against a window of %v; the machine's timing accounts for a few hits.", traceScale, traceWindow/traceScale)}
	for _, p := range peer.Hot() {
		if p.NoTrace != "" {
			t.notes = append(t.notes, fmt.Sprintf("Left out: %s, because %s.", p.Name, p.NoTrace))
		}
	}
	oracles := make([][]*measure.Oracle, len(peers))
	for _, trace := range traces {
		t.head = append(t.head, "over, "+trace.Name)
		play := func(i int) { oracles[i] = append(oracles[i], judge(peers[i], trace)) }
		// First those with a settable clock, one by one; then the others together, because they wait most of the
		// time.
		var waiting sync.WaitGroup
		for i, p := range peers {
			if p.Clock {
				play(i)
			}
		}
		for i, p := range peers {
			if !p.Clock {
				waiting.Go(func() { play(i) })
			}
		}
		waiting.Wait()
	}
	t.head = append(t.head, "admitted", "wrongly denied")
	c := chart{title: "The most hits admitted in any window, as a multiple of the quota, over four traces (1 is right)", mark: 1, show: thrice}
	for i, p := range peers {
		name, worst := p.Name, 0.0
		if !p.Clock {
			name += " *"
		}
		var cells []string
		var admitted, wrong []float64
		for _, o := range oracles[i] {
			worst = max(worst, o.Over())
			admitted, wrong = append(admitted, o.Admitted()), append(wrong, o.WronglyDenied())
			cells = append(cells, thrice(o.Over()))
		}
		t.row(name, append(cells, span(admitted, share, "–", " %"), span(wrong, share, "–", " %"))...)
		s.found[cell{"accuracy", p.Name, "over"}] = worst
		c.bars = append(c.bars, bar{p.Name, rowOf(p, nil).class, []float64{worst}})
	}
	t.chart = s.draw("accuracy.svg", c)
	return t
}

// judge sends a trace to a limiter and compares its answers with an exact log. A peer with a settable clock gets
// the time of the trace. Another peer gets the trace faster, with a window that is shorter by the same factor:
// judge waits for each arrival, and reads its time just before the call. If the machine is late, several arrivals
// come together.
func judge(p peer.Peer, t measure.Trace) *measure.Oracle {
	c, scale := peer.Config{Quota: traceQuota, Window: traceWindow}, time.Duration(traceScale)
	// A whole number of windows after the epoch, so that boundaries are where the trace expects them.
	base := time.Unix(0, 0).Add(1 << 20 * traceWindow)
	now := base
	if p.Clock {
		scale, c.Now = 1, func() time.Time { return now }
	}
	c.Window /= scale
	l := p.New(c)
	defer l.Stop()
	if !p.Clock {
		base = time.Now().Truncate(c.Window).Add(2 * c.Window)
	}
	o := measure.NewOracle(traceQuota, c.Window)
	for _, at := range t.At {
		if now = base.Add(at); !p.Clock {
			time.Sleep(time.Until(base.Add(at / scale)))
			now = time.Now()
		}
		o.See(now.Sub(base), l.Allow(peer.HotKey))
	}
	return o
}

// engine measures what rules cost beyond limiters.
func engine(s settings) *table {
	rows := s.kept(peer.Engine(), plenty, func(_ peer.Peer, l peer.Limiter) measure.Numbers {
		speed := measure.Measure(l.Allow, measure.NewKeys(1), measure.One(), 1, s.slice)
		if speed.Admitted < 0.9 {
			measure.Check(fmt.Errorf("%s of the requests were admitted, want all", share(speed.Admitted)))
		}
		return measure.Numbers{speed.Nanoseconds, speed.Allocs}
	})
	return s.measure("engine", s.few(), rows).table(s, []column{
		{"ns", "", number, at(0)}, {"× one rule", "", ratio, by(0)}, {"× one Limiter", "", ratio, to("Limiter.Allow", 0)}, {"allocations", "", whole, at(1)},
	})
}

// expiry measures what is left of a table whose keys have all expired. It takes one round, because most of the
// time is waiting.
func expiry(s settings) *table {
	keys, few := measure.NewKeys(s.keys), measure.NewKeys(s.keys+1000).From(s.keys)
	peers := slices.DeleteFunc(peer.Million(), func(p peer.Peer) bool { return p.Kind == peer.Cost })
	for i := range peers {
		peers[i].Note, peers[i].Reference = "", false
	}
	peers = append([]peer.Peer{peer.Cold()[0]}, peers...)
	g := s.measure("expiry", 1, anew(peers, peer.Config{Quota: 100, Window: s.window}, func(p peer.Peer, l peer.Limiter) measure.Numbers {
		fmt.Fprintf(s.progress, "          %s\n", p.Name)
		if p.Kind == peer.Cost {
			_, slow := measure.Expire(l.Allow, measure.NewKeys(1), few, 0, s.light)
			return measure.Numbers{measure.None(), float64(slow)}
		}
		left, slow := measure.Expire(l.Allow, keys, few, s.window, s.light)
		return measure.Numbers{left, float64(slow)}
	}))
	return g.table(s, []column{
		{"left", "", share, at(0)}, {"slowest call meanwhile", "", timing, at(1)},
	})
}

// rolling measures windows of statistics, which have no keys.
func rolling(s settings) *table {
	keys := measure.NewKeys(1)
	var rows []row
	for i, w := range peer.Windows() {
		add, sum := w.New()
		adding := func(string) bool { add(); return true }
		rows = append(rows, row{name: w.Name, bold: i == 0, measure: func() measure.Numbers {
			one, two := measure.Measure(adding, keys, measure.One(), 1, s.slice), measure.Measure(adding, keys, measure.One(), 2, s.slice)
			add() // the sum must not be empty
			sums := measure.Measure(func(string) bool { return sum() >= 0 }, keys, measure.One(), 1, s.slice)
			return measure.Numbers{one.Nanoseconds, two.Nanoseconds, one.Allocs, sums.Nanoseconds, sums.Allocs}
		}})
	}
	return s.measure("rolling", s.rounds, rows).table(s, []column{
		{"add, one core", "", number, at(0)}, {"two cores", "", number, at(1)}, {"× reference", "", ratio, by(0)}, {"allocations", "", whole, at(2)},
		{"sum", "", number, at(3)}, {"allocations", "", whole, at(4)},
	})
}

// matching measures how long it takes to find the rules that match a request.
func matching(s settings) *table {
	var names []string
	for _, n := range peer.RuleCounts {
		names = append(names, number(float64(n)))
	}
	return s.each("matching", "rules", names, peer.Layouts, func(row, column int) func(string) bool {
		return peer.Matcher(peer.Layouts[column], peer.RuleCounts[row])
	})
}

// windows measures the arithmetic of windows, without a store.
func windows(s settings) *table {
	var names []string
	for _, k := range peer.WindowKinds {
		names = append(names, k.Name)
	}
	return s.each("windows", "", names, []string{"quota 5", "quota 100", "quota 10,000", "denied, quota 100"}, func(row, column int) func(string) bool {
		return peer.Arithmetic(row, []int64{5, 100, 10_000, 100}[column], column == 3)
	})
}

// each makes a table with a function in each cell, which is measured on one core.
func (s settings) each(section, corner string, names, columns []string, f func(row, column int) func(string) bool) *table {
	var rows []row
	var heads []column
	for k, head := range columns {
		heads = append(heads, column{head, "", number, at(k)})
	}
	for i, name := range names {
		var cells []func(string) bool
		for k := range columns {
			cells = append(cells, f(i, k))
		}
		rows = append(rows, row{name: name, measure: func() (n measure.Numbers) {
			for _, cell := range cells {
				n = append(n, measure.Measure(cell, measure.NewKeys(1), measure.One(), 1, s.slice).Nanoseconds)
			}
			return n
		}})
	}
	t := s.measure(section, s.rounds, rows).table(s, heads)
	t.head[0] = corner
	return t
}

// span returns the least and the largest of some numbers as text.
func span(numbers []float64, show func(float64) string, between, unit string) string {
	least, most := show(slices.Min(numbers)), show(slices.Max(numbers))
	if least == most {
		return least
	}
	return strings.TrimSuffix(least, unit) + between + most
}

// emptyTimes is how many empty calls are made for each key: they take about a quarter of the time of a call of
// weir for a new key.
const emptyTimes = 4

// growth measures single calls while tables grow and expire.
func growth(s settings) *table {
	keys := measure.NewKeys(s.grown)
	subjects := []func() measure.Subject{
		func() measure.Subject {
			return measure.Subject{Name: "raw: an empty call", Times: emptyTimes, Allow: func(string) bool { return true }}
		},
		newMemory("raw: 45 bytes of new memory", s.grown, 0),
		newMemory("raw: 45 bytes of new memory, three reads", s.grown, 3),
		plainMap,
		weirTable("weir bucket", weir.Bucket(100, time.Minute, 0)),
		weirTable("weir sliding, exact", weir.Sliding(100, time.Minute)),
	}
	t := s.newTable("growth", "", "growing: p50", "p99.99", "max", "over 1 ms", "of them busy", "expiring: p50", "p99.99", "max", "over 1 ms", "of them busy", "keys left")
	t.notes = []string{"The plain map is swept part by part: every 1000 calls, one of its 256 parts under its lock. A program would write this itself."}
	// Of each row, growing and shrinking: the times of all turns, and the slow and the busy calls of each turn.
	type calls struct {
		times      *hdrhistogram.Histogram
		slow, busy []float64
	}
	names, all, left := make([]string, len(subjects)), make([][2]calls, len(subjects)), make([]float64, len(subjects))
	for range s.few() {
		for i, start := range subjects {
			runtime.GC()
			subject := start()
			grow, shrink, rest := measure.Grow(subject, keys)
			names[i], left[i] = subject.Name, max(left[i], rest)
			for k, turn := range []measure.Calls{grow, shrink} {
				c := &all[i][k]
				if c.slow, c.busy = append(c.slow, turn.Slow), append(c.busy, turn.Busy); c.times == nil {
					c.times = turn.Histogram
				} else {
					c.times.Merge(turn.Histogram)
				}
			}
		}
	}
	for i, name := range names {
		var cells []string
		for _, c := range all[i] {
			cells = append(cells, timing(measure.Share(c.times, 0.5)), timing(measure.Share(c.times, 0.9999)), timing(float64(c.times.Max())), span(c.slow, number, " to ", ""), span(c.busy, number, " to ", ""))
		}
		t.row(name, append(cells, share(left[i]))...)
	}
	return t
}

// newMemory returns a subject whose calls write to memory that the process has not used before, 45 bytes a call,
// which is what a key of weir takes. Then they read at some places of what is written, which are not in the
// processor's cache, each after the one before.
func newMemory(name string, calls, reads int) func() measure.Subject {
	const each = 45
	return func() measure.Subject {
		memory, at, random := make([]byte, each*calls), 0, uint64(1)
		return measure.Subject{Name: name, Times: 1, Allow: func(string) bool {
			if at+each <= len(memory) {
				memory[at] = 1
				at += each
			}
			for range reads {
				random = random*6364136223846793005 + 1442695040888963407 // Knuth's MMIX
				place, _ := bits.Mul64(random, uint64(at))
				random += uint64(memory[place])
			}
			return true
		}}
	}
}

func plainMap() measure.Subject {
	m := peer.NewShards(scarce)
	calls, expired := 0, false
	return measure.Subject{Name: "raw: 256 mutex + map shards, GCRA", Times: 1, Allow: func(key string) bool {
		if calls++; expired && calls%1000 == 0 {
			m.Sweep(calls/1000, scarce.Window)
		}
		return m.Allow(key)
	}, Expire: func() { expired = true }, Len: m.Len, Close: func() {}}
}

// weirTable returns a limiter with a settable clock.
func weirTable(name string, limit weir.Limit) func() measure.Subject {
	return func() measure.Subject {
		var skipped atomic.Int64 // microseconds
		s := memstore.New(memstore.WithClock(func() window.Instant { return window.Instant(time.Now().UnixMicro() + skipped.Load()) }))
		l := measure.Must(weir.NewLimiter(limit, weir.WithStore(s), weir.WithName(name), weir.WithMaxKeys(100_000_000)))
		ctx := context.Background()
		return measure.Subject{Name: name, Times: 1, Allow: func(key string) bool {
			r, err := l.Allow(ctx, key)
			return err == nil && r.Allowed
		},
			// With a given clock, keys stay for an hour after they expire.
			Expire: func() { skipped.Add(2 * time.Hour.Microseconds()) },
			Len: func() (n int) {
				for _, st := range s.Stats() {
					n += int(st.Keys)
				}
				return n
			},
			Close: func() { _ = s.Close() }, // a store in memory closes without error
		}
	}
}

// coldChild measures a row of the section cold in this process, which has just started. The arguments are the name
// of the peer, the number of keys, and the time at which the process was started, in Unix nanoseconds.
func coldChild(args []string) {
	keys, _ := strconv.Atoi(args[1])
	began, _ := strconv.ParseInt(args[2], 10, 64)
	peers := peer.Cold()
	l := peers[slices.IndexFunc(peers, func(p peer.Peer) bool { return p.Name == args[0] })].New(scarce)
	defer l.Stop()
	all := measure.NewKeys(keys + 1)
	base, _ := measure.Resident(os.Getpid())
	l.Allow(all.At(uint32(keys)))
	first := time.Since(time.Unix(0, began))
	start, slow := time.Now(), time.Duration(0)
	for i, last := 0, start; i < keys; i++ {
		l.Allow(strings.Clone(all.At(uint32(i))))
		now := time.Now()
		slow, last = max(slow, now.Sub(last)), now
	}
	middle := time.Now()
	for i := range keys {
		l.Allow(all.At(uint32(i)))
	}
	fill, again, n := middle.Sub(start), time.Since(middle), float64(keys)
	now, most := measure.Resident(os.Getpid())
	measure.Check(json.NewEncoder(os.Stdout).Encode(measure.Numbers{
		float64(fill) / n, float64(again) / n, float64(slow), max(0, now-base) / n, max(0, most-base) / n, float64(first),
	}))
}

// cold measures processes that have just started.
func cold(s settings) *table {
	var rows []row
	for _, p := range peer.Cold() {
		rows = append(rows, rowOf(p, func() (n measure.Numbers) {
			out := measure.Must(childCommand("cold", p.Name, fmt.Sprint(s.keys), fmt.Sprint(time.Now().UnixNano())).Output())
			measure.Check(json.Unmarshal(out, &n))
			return n
		}))
	}
	t := s.measure("cold", s.rounds, rows).table(s, []column{
		{"first call", "first", number, at(0)}, {"again", "", number, at(1)}, {"slowest call", "slowest", timing, at(2)},
		{"memory", "", number, at(3)}, {"at most", "", number, at(4)}, {"first answer", "", timing, at(5)},
	})
	var list strings.Builder
	for i := range s.keys {
		fmt.Fprintf(&list, "user-%d\n", i)
	}
	path := s.file("blocked.txt", list.String())
	ready := func(name, rules string) row {
		return row{name: name, measure: func() measure.Numbers {
			service := s.serve(rules)
			defer service.Stop()
			now, _ := measure.Resident(service.PID())
			return measure.Numbers{float64(service.Ready), now / 1e6}
		}}
	}
	t.more = []*table{s.measure("ready", s.rounds, []row{
		ready("weir serve, one rule", serviceRules),
		ready(fmt.Sprintf("weir serve, a list of %s lines", number(float64(s.keys))), "lists:\n  blocked: {file: "+strconv.Quote(path)+"}\n"+serviceRules+"  - {name: blocked, when: {user: {in: blocked}}, then: deny}\n"),
	}).table(s, []column{{"until ready", "", timing, at(0)}, {"memory, MB", "", number, at(1)}})}
	return t
}

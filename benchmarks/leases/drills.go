package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/benchmarks/internal/measure"
	"github.com/weirhq/weir/internal/pgtest"
	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/leasestore"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

type named struct {
	name string
	run  func(*drill, string) []line
}

var drills = []named{
	{"surge/redis", surge},
	{"surge/postgres", surge},
	{"moving", moving},
	{"hot", hot},
	{"credit", credit},
	{"several/redis", several},
	{"several/postgres", several},
	{"process", inProcess},
	{"fault/kill", kill},
	{"fault/kill/postgres", kill},
	{"fault/replies", replies},
	{"fault/late", late},
	{"fault/stop", stop},
	{"fault/failover", failover},
	{"fault/connections/postgres", connections},
	{"fault/failover/postgres", promote},
	{"fault/drift", drift},
	{"control", control},
	{"distance/few", few},
	{"distance/many", many},
	{"idle", idle},
}

func (d *drill) store(name string) string {
	if strings.HasSuffix(name, "postgres") {
		return pgtest.Server(d, "-c", "max_connections=300").URL("timeout=250ms")
	}
	return "redis://" + redistest.Server(d).Addr() + patience
}

// patience is for drills without faults of the network: the time-out of a decision should not measure how busy the
// machine is.
const patience = "?timeout=250ms"

// fleet returns nodes that share a limit of so many hits a second, and offer rate together.
func (d *drill) fleet(url string, limit int64, n int, length time.Duration, rate ...step) (nodes []node) {
	d.limit, d.window = limit, time.Second
	for range n {
		own := slices.Clone(rate)
		for i := range own {
			own[i].Rate /= float64(n)
		}
		nodes = append(nodes, node{Store: url, Limit: limit, Window: time.Second, Lease: window.LeaseStrict, Nodes: n, Key: "hot", Rate: own, For: length, Workers: 8})
	}
	return nodes
}

// bound returns whether the audit finds no window with more than the limit and the credits. A clock reading of the store is in whole microseconds.
func (d *drill) bound(name string, hits []admission) line {
	top, most := most(hits, int64(d.window-time.Microsecond)), d.limit+d.credit
	return line{name + " bound", fmt.Sprintf("≤ %.4f L in every window", float64(most)/float64(d.limit)),
		fmt.Sprintf("%.4f L (%d of %d; %d admissions audited)", float64(top)/float64(d.limit), top, d.limit, len(hits)), int64(top) <= most}
}

// used returns whether at least a part aim of the limit that was used from one second on up to another.
func (d *drill) used(name string, hits []admission, aim float64, from, to int) line {
	n := 0
	per := seconds(hits, d.start, int64(time.Second), to)
	for _, s := range per[from:] {
		n += s
	}
	if n := d.sum(func(j *journal) int64 { return j.granted.Load() }); n > 0 {
		d.Logf("%s: seconds %v, granted %d, spent %d, lost asks %d, dropped %d", name, per, n, d.sum(func(j *journal) int64 { return j.spent.Load() }),
			d.sum(func(j *journal) int64 { return j.lost.Load() }), d.sum(func(j *journal) int64 { return j.dropped.Load() }))
	}
	used := float64(n) / float64(d.limit) / float64(to-from)
	return line{name + " used", fmt.Sprintf("≥ %.2f used", aim), fmt.Sprintf("%.4f in %d s; offered %d/s, store calls %d/s, failed calls %d", used, to-from,
		d.sum(offered)/int64(to), d.sum(calls)/int64(to), d.sum(failed)), used >= aim}
}

func surge(d *drill, name string) []line {
	const before, after = 3, 5
	d.run(d.fleet(d.store(name), 25_000, 8, (before+after)*time.Second, step{0, 22_000}, step{before * time.Second, 367_000}), nil)
	hits := d.hits()
	per := seconds(hits, d.start, int64(time.Second), before+after)[before:]
	least := float64(slices.Min(per)) / float64(d.limit)
	return []line{d.bound(name, hits), {name + " served", "≥ 0.95 L in each second after the step",
		fmt.Sprintf("least %.4f, seconds %v; offered in all %d of %d; store calls %d/s", least, per, d.sum(offered), before*22_000+after*367_000, d.sum(calls)/(before+after)), least >= 0.95}}
}

func moving(d *drill, name string) []line {
	const length, n, rate = 6, 8, 12_000
	nodes := d.fleet(d.store(name), 10_000, n, length*time.Second)
	for i := range nodes {
		for slot := range length * 10 {
			r := 0.1 * rate / (n - 1)
			if slot%n == i {
				r = 0.9 * rate
			}
			nodes[i].Rate = append(nodes[i].Rate, step{time.Duration(slot) * 100 * time.Millisecond, r})
		}
		nodes[i].Denials = "yes"
	}
	cron := node{Store: nodes[0].Store, Limit: 10, Window: time.Second, Lease: window.LeaseStrict, Nodes: n, Key: "cron", Rate: []step{{0, 0.95}}, Burst: 10, For: length * time.Second, Workers: 1}
	d.run(append(nodes, cron), nil)
	crons := d.procs[n]
	d.procs = d.procs[:n]
	hits := d.hits()
	// A refusal is early if at its whole duration a tenth of the quota was free in the window before.
	ends := make([]int64, len(hits))
	for i, h := range hits {
		ends[i] = h.from
	}
	slices.Sort(ends)
	denials, early := 0, 0
	for _, p := range d.procs {
		for _, r := range p.denials.read() {
			if r.from < d.start+int64(time.Second) {
				continue
			}
			denials++
			first, _ := slices.BinarySearch(ends, r.from-int64(d.window))
			last, _ := slices.BinarySearch(ends, r.to)
			if int64(last-first) < d.limit*9/10 {
				early++
			}
		}
	}
	return []line{d.bound(name, hits), d.used(name, hits, 0.95, 1, length),
		{name + " refusals", "none while ≥ 10 % is free", fmt.Sprintf("%d of %d after the first second", early, denials), early == 0},
		{name + " crons", "10 of 10 a second", fmt.Sprintf("%d of %d denied", crons.denied.Load(), crons.offered.Load()), crons.denied.Load() == 0}}
}

func hot(d *drill, name string) []line {
	const length = 5
	d.run(d.fleet(d.store(name), 100_000, 4, length*time.Second, step{0, 1_000_000}), nil)
	hits, perSecond := d.hits(), d.sum(calls)/length
	return []line{d.bound(name, hits), d.used(name, hits, 0.99, 1, length), {name + " calls", "≤ 700 store calls/s", fmt.Sprint(perSecond, "/s"), perSecond <= 700}}
}

// credit lets each node admit hits past what it has leased.
func credit(d *drill, name string) []line {
	const length, own = 6, 100
	nodes := d.fleet(d.store(name), 5_000, 4, length*time.Second, step{0, 20_000})
	for i := range nodes {
		nodes[i].Lease = own
		d.credit += own
	}
	d.run(nodes, nil)
	hits := d.hits()
	return []line{d.bound(name, hits), d.used(name, hits, 0.95, 1, length)}
}

// several has calls that count in a leased limit and in one that is not: in both or in none. The second one is used up after four
// seconds, and everything is denied from then on.
func several(d *drill, name string) []line {
	const length, full, limit = 7, 4, 1_000
	nodes := d.fleet(d.store(name), limit, 4, length*time.Second, step{0, 1_500})
	for i := range nodes {
		nodes[i].Second = full * limit
	}
	d.run(nodes, nil)
	shared, err := open(nodes[0].Store)
	measure.Check(err)
	defer shared.Close()
	var used [2]int64
	for i, op := range nodes[0].limits() {
		r, err := shared.Read(context.Background(), &op)
		measure.Check(err)
		used[i] = r.Used
	}
	hits, admitted, unsure := d.hits(), d.sum(admitted), d.sum(failed)
	return []line{d.bound(name, hits), d.used(name, hits, 0.85, 1, full-1),
		{name + " direct", fmt.Sprintf("all of %d, and what was admitted", full*limit), fmt.Sprintf("%d counted, %d admitted, %d failed", used[1], admitted, unsure),
			used[1] == full*limit && admitted <= used[1] && admitted+unsure >= used[1]},
		{name + " leased", "what was admitted; ≤ 0.1 L of what the other limit denies", fmt.Sprintf("%d audited, %d counted at the end", len(hits), used[0]),
			int64(len(hits)) >= admitted && int64(len(hits)) <= admitted+unsure && used[0] <= limit/10}}
}

// processTime returns the CPU time of this process.
func processTime() time.Duration {
	var u syscall.Rusage
	measure.Check(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// doors are what a program calls, over a store.
var doors = []struct {
	name string
	of   func(store.Store, window.Limit) (take func(context.Context) error)
}{
	{"store", func(s store.Store, l window.Limit) func(context.Context) error {
		op := []store.Op{{Space: store.NewSpace("", "door", "door", 0), Limit: window.MustCompile(l), Key: []byte("key"), N: 1}}
		calls := make([]store.Call, 1)
		return func(ctx context.Context) error {
			calls[0] = store.Call{Verb: store.Take, Ops: op}
			return s.Do(ctx, calls)
		}
	}},
	{"limiter", func(s store.Store, l window.Limit) func(context.Context) error {
		limiter, err := weir.NewLimiter(l, weir.WithStore(s), weir.WithName("door"))
		measure.Check(err)
		return func(ctx context.Context) error {
			_, err := limiter.Allow(ctx, "key")
			return err
		}
	}},
	{"engine", func(s store.Store, l window.Limit) func(context.Context) error {
		rules, err := rule.New([]rule.Rule{{Name: "door", Per: []string{"user"}, Quota: &rule.Quota{Value: l.Quota}, Window: l.Window, Lease: l.Lease}}, nil)
		measure.Check(err)
		engine, err := weir.NewEngine(rules, weir.WithStore(s))
		measure.Check(err)
		r := weir.Request{Attributes: weir.Attributes("user", "ann")}
		return func(ctx context.Context) error {
			_, err := engine.Take(ctx, r)
			return err
		}
	}},
}

// inProcess compares the decisions in a second of CPU time of leases and of the store in memory, in turns. Only the rates of the stores have an
// aim: a limiter and an engine have a shorter way to a store in memory.
func inProcess(d *drill, name string) (lines []line) {
	url := d.store(name)
	for _, c := range []struct {
		name  string
		quota int64
		aim   float64
	}{{"admitted", 1 << 40, 0.8}, {"denied", 1000, 0.95}} {
		for _, door := range doors {
			shared, err := open(url)
			measure.Check(err)
			stores := [2]store.Store{memstore.New(), leasestore.New(shared, func() int { return 1 })}
			limit := window.Limit{Quota: c.quota, Window: window.Sliding(time.Second), Lease: window.LeaseStrict}
			takes := [2]func(context.Context) error{door.of(stores[0], limit), door.of(stores[1], limit)}
			turn := func(take func(context.Context) error, length time.Duration) float64 {
				n, start, cpu := 0, time.Now(), processTime()
				for time.Since(start) < length {
					for range 256 {
						measure.Check(take(context.Background()))
					}
					n += 256
				}
				return float64(n) / (processTime() - cpu).Seconds()
			}
			var ratios, rates []float64
			for i := range 8 {
				var r [2]float64
				for s, take := range takes {
					turn(take, 50*time.Millisecond)
					r[s] = turn(take, 200*time.Millisecond)
				}
				if i > 0 {
					ratios, rates = append(ratios, r[1]/r[0]), append(rates, r[1])
				}
			}
			slices.Sort(ratios)
			slices.Sort(rates)
			m, aim, told := ratios[len(ratios)/2], 0., "(no aim)"
			if door.name == "store" {
				aim, told = c.aim, fmt.Sprintf("≥ %.2f × memory", c.aim)
			}
			lines = append(lines, line{name + " " + c.name + " " + door.name, told,
				fmt.Sprintf("%.2f × memory (%.2f to %.2f), %.1f M/s", m, ratios[0], ratios[len(ratios)-1], rates[len(rates)/2]/1e6), m >= aim})
			for _, s := range stores {
				measure.Check(s.Close())
			}
		}
	}
	return lines
}

// Faults: eight nodes share 20,000 a second, of which they ask for 30,000.
const (
	faultLength = 10
	faultLimit  = 20_000
	faultRate   = 30_000
)

func (d *drill) faulty(name, url string, change func([]node), during func(int64, []*process)) []line {
	nodes := d.fleet(url, faultLimit, 8, faultLength*time.Second, step{0, faultRate})
	if change != nil {
		change(nodes)
	}
	d.run(nodes, during)
	hits := d.hits()
	return []line{d.bound(name, hits), d.used(name, hits, 0.85, 1, faultLength)}
}

// kill kills a node each second, and starts it again.
func kill(d *drill, name string) []line {
	var nodes []node
	return d.faulty(name, d.store(name), func(n []node) { nodes = n }, func(start int64, procs []*process) {
		for i := 1; i < faultLength; i++ {
			d.until(time.Duration(i) * time.Second)
			which := rand.IntN(len(procs))
			_ = procs[which].Process.Kill()
			again := nodes[which]
			again.Start = start
			procs[which] = d.spawn(again)
		}
	})
}

func (d *drill) proxied() (*redistest.Proxy, string, *redistest.Node) {
	server := redistest.Server(d)
	p := redistest.Through(d, server)
	return p, "redis://" + p.Addr(), server
}

// replies breaks the connection in one in a hundred requests and replies, and makes two in a hundred up to 100 ms late.
func replies(d *drill, name string) []line {
	p, url, _ := d.proxied()
	p.Tear(0.01)
	p.Before(func(string) {
		if rand.Float64() < 0.02 {
			<-time.After(rand.N(100 * time.Millisecond))
		}
	})
	return d.faulty(name, url, nil, nil)
}

// late gives a third of the leases back up to 100 ms late, when they, and often the next ones, are over.
func late(d *drill, name string) []line {
	return d.faulty(name, d.store(name), func(nodes []node) {
		for i := range nodes {
			nodes[i].LateSettles, nodes[i].LateBy = 0.33, 100*time.Millisecond
		}
	}, nil)
}

// stop stops a node for 20 to 600 ms, again and again.
func stop(d *drill, name string) []line {
	return d.faulty(name, d.store(name), nil, func(_ int64, procs []*process) {
		for t := time.Second; t < (faultLength-1)*time.Second; {
			d.until(t)
			which := procs[rand.IntN(len(procs))]
			length := time.Duration(20+rand.IntN(580)) * time.Millisecond
			_ = which.Process.Signal(syscall.SIGSTOP)
			t += length
			d.until(t)
			_ = which.Process.Signal(syscall.SIGCONT)
			t += 100 * time.Millisecond
		}
	})
}

// failover moves to a replica that has all acknowledged writes.
func failover(d *drill, name string) []line {
	p, url, primary := d.proxied()
	replica := primary.Replica()
	var away time.Duration
	lines := d.faulty(name, url, nil, func(int64, []*process) {
		d.until(faultLength / 2 * time.Second)
		p.Cut()
		began := time.Now()
		redistest.Eventually(d, "the replica has everything", func() bool {
			return replica.Info("slave_repl_offset") == primary.Info("master_repl_offset")
		})
		primary.Kill()
		replica.Must("REPLICAOF", "NO", "ONE")
		p.To(replica)
		p.Heal()
		away = time.Since(began)
	})
	lines[1].measured += fmt.Sprintf("; the store was away for %d ms", away.Milliseconds())
	return lines
}

// connections ends all connections of the server again and again, in the middle of what they do.
func connections(d *drill, name string) []line {
	server := pgtest.Server(d, "-c", "max_connections=300")
	ended := 0
	lines := d.faulty(name, server.URL("timeout=250ms"), nil, func(int64, []*process) {
		for t := time.Second; t < (faultLength-1)*time.Second; t += 500 * time.Millisecond {
			d.until(t)
			n, err := strconv.Atoi(server.Must("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"))
			measure.Check(err)
			ended += n
		}
	})
	lines[1].measured += fmt.Sprintf("; %d connections were ended", ended)
	return lines
}

// promote kills a server, and promotes the standby that has confirmed each write.
func promote(d *drill, name string) []line {
	primary := pgtest.Server(d, "-c", "max_connections=300")
	standby := primary.Standby()
	primary.Must("ALTER SYSTEM SET synchronous_standby_names = '*'")
	primary.Must("SELECT pg_reload_conf()")
	pgtest.Eventually(d, "the standby confirms writes", func() bool {
		return primary.Must("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == "1"
	})
	url := strings.Replace(primary.URL("timeout=250ms", "durability=sync"), primary.Addr(), primary.Addr()+","+standby.Addr(), 1)
	var away time.Duration
	lines := d.faulty(name, url, nil, func(int64, []*process) {
		d.until(faultLength / 2 * time.Second)
		began := time.Now()
		primary.Kill()
		standby.Promote()
		away = time.Since(began)
	})
	lines[1].measured += fmt.Sprintf("; no server took writes for %d ms", away.Milliseconds())
	return lines
}

// drift lets half of the clocks run 200 ppm fast, and half of them slow.
func drift(d *drill, name string) []line {
	return d.faulty(name, d.store(name), func(nodes []node) {
		for i := range nodes {
			nodes[i].PPM = 200 * float64(1-i%2*2)
		}
	}, nil)
}

// control has the store lose everything, twice, which the proof does not cover: the audit has to see what is admitted again.
func control(d *drill, name string) []line {
	server := redistest.Server(d)
	d.run(d.fleet("redis://"+server.Addr()+patience, faultLimit, 8, 5*time.Second, step{0, faultRate}), func(int64, []*process) {
		for _, at := range []time.Duration{2500 * time.Millisecond, 3700 * time.Millisecond} {
			d.until(at)
			server.Must("FLUSHALL")
		}
	})
	l := d.bound(name, d.hits())
	l.aim, l.ok = "> 1.0000 L: the audit sees a loss", !l.ok
	return []line{l}
}

// far returns the URL of a store that is 80 ms away.
func (d *drill) far() string {
	p, url, _ := d.proxied()
	p.Delay(40 * time.Millisecond)
	return url + "?timeout=1s"
}

func few(d *drill, name string) []line {
	nodes := d.fleet(d.far(), 4, 2, 2*time.Second, step{0, 0})
	d.window = time.Minute
	for i := range nodes {
		nodes[i].Window, nodes[i].Workers = d.window, 1
		nodes[i].Rate = []step{{0, 2}, {500 * time.Millisecond, 0}}
		nodes[i].Burst = 3 + i
	}
	d.run(nodes, nil)
	hits := d.hits()
	return []line{d.bound(name, hits), {name, "4 admitted of 3 + 4", fmt.Sprintf("%d of %d", len(hits), d.sum(offered)), len(hits) == 4}}
}

func many(d *drill, name string) []line {
	const length = 8
	nodes := d.fleet(d.far(), 10_000, 4, length*time.Second, step{0, 15_000})
	for i := range nodes {
		nodes[i].Workers = 1024 // for calls of 80 ms each
	}
	d.run(nodes, nil)
	hits := d.hits()
	return []line{d.bound(name, hits), d.used(name, hits, 0.9, 2, length)}
}

func idle(d *drill, name string) []line {
	nodes := d.fleet(d.store(name), 10_000, 4, 7*time.Second, step{0, 9_000}, step{2 * time.Second, 0})
	var busy, before, after int64
	d.run(nodes, func(int64, []*process) {
		d.until(2 * time.Second)
		busy = d.sum(calls)
		d.until(3500 * time.Millisecond)
		before = d.sum(calls)
		d.until(6500 * time.Millisecond)
		after = d.sum(calls)
	})
	return []line{d.bound(name, d.hits()), {name, "no store call", fmt.Sprintf("%d in 3 s, after %d in 2 s of load and %d in the 1.5 s after it", after-before, busy, before-busy), after == before && busy > 0}}
}

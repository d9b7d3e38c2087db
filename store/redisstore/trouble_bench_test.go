package redisstore_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore"
	"github.com/weirhq/weir/window"
)

// BenchmarkTrouble runs an engine at the defaults through each of the troubles of
// file troubles_bench_test.go, under a steady load, and prints a table of how its
// calls fared. It fails when Redis admits more than a quota without having lost
// hits, when a call takes longer than the time-out and what the machine adds, or
// when calls are not answered again soon. Run it by itself:
//
//	go test ./store/redisstore -run '^$' -bench Trouble -benchtime 1x
func BenchmarkTrouble(b *testing.B) {
	var rows []string
	for _, t := range troubles {
		b.Run(t.name, func(b *testing.B) {
			for b.Loop() {
				rows = append(rows, t.run(b))
			}
		})
	}
	fmt.Fprintln(os.Stdout, "\n| trouble | calls | admitted | by Redis | over | degraded | longest call | machine | back after |")
	fmt.Fprintln(os.Stdout, "|---|---|---|---|---|---|---|---|---|")
	fmt.Fprintln(os.Stdout, strings.Join(rows, "\n"))
}

const (
	// A key gets troubleTakes takes, one after the other, at a limit of
	// troubleQuota. Each of the two policies, Redis and local memory, may admit
	// the quota.
	troubleTakes = 20
	troubleQuota = 10

	// troubleEvery is the time between two calls.
	troubleEvery = time.Millisecond

	defaultTimeout = 50 * time.Millisecond
)

// outcome is how a call fared.
type outcome struct {
	key      int
	allowed  bool
	degraded bool
	reason   store.Reason
	began    time.Time
	took     time.Duration
}

// run makes calls before the trouble, during it, and until they have been answered
// for a while after it. It returns a row of the table.
func (tr *trouble) run(b *testing.B) string {
	url, cause := tr.setup(b)
	s := openURL(b, url)
	e := engineOn(b, s, 1, rule.Rule{Name: "hits", Per: []string{"user"}, Quota: &rule.Quota{Value: troubleQuota}, Window: window.Sliding(time.Hour)})
	l := load(e)
	l.answered(b, 1000)
	from := cause(l)
	if from.IsZero() {
		from = time.Now()
	}
	l.quiet(b)
	return tr.judge(b, s, l.end(), from, &l.machine)
}

// judge compares what has happened with what may.
func (tr *trouble) judge(b *testing.B, s *redisstore.Store, all []outcome, from time.Time, m *machine) string {
	admitted, byRedis, over, blamed := 0, 0, 0, 0
	var longest, beyond, back time.Duration
	reasons := map[store.Reason]int{}
	byKey := map[int]int{}
	for _, o := range all {
		paused := m.during(o.began, o.began.Add(o.took))
		longest, beyond = max(longest, o.took), max(beyond, o.took-paused)
		if o.allowed {
			admitted++
		}
		if o.degraded {
			reasons[o.reason]++
			if paused < defaultTimeout/2 {
				blamed++
				back = max(back, o.began.Sub(from))
			}
		} else if o.allowed {
			byRedis++
			byKey[o.key]++
		}
	}
	for _, n := range byKey {
		over += max(0, n-troubleQuota)
	}
	if over > 0 && !tr.loses {
		b.Errorf("Redis has admitted %d hits over the quotas", over)
	}
	// Timers are shared, and answers get time to be read when the machine has not
	// run the program. The watch sees its pauses to the millisecond.
	if most := defaultTimeout + 13*time.Millisecond; beyond > most {
		b.Errorf("longest call: got %v without the pauses of the machine, want %v at most", beyond, most)
	}
	if back > tr.within {
		b.Errorf("calls are answered again %v after the trouble, want %v", back, tr.within)
	}
	degraded := 0
	var why []string
	for _, r := range slices.SortedFunc(maps.Keys(reasons), func(a, b store.Reason) int { return cmp.Compare(reasons[b], reasons[a]) }) {
		degraded += reasons[r]
		why = append(why, fmt.Sprintf("%s %d", r, reasons[r]))
	}
	if blamed > tr.most && tr.most >= 0 {
		b.Errorf("degraded: got %d, want %d at most", blamed, tr.most)
	}
	for _, n := range s.Nodes() {
		b.Logf("%s: outages %v, circuit breaker opened %d times", n.Addr, n.Outages, n.Interruptions)
	}
	ms := func(d time.Duration) string {
		if d <= 0 {
			return "–"
		}
		return fmt.Sprintf("%d ms", (d + time.Millisecond - 1).Milliseconds())
	}
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %d%s | %s | %s | %s |", tr.name, len(all), admitted, byRedis, over,
		degraded, strings.TrimRight(": "+strings.Join(why, ", "), ": "), ms(longest), ms(m.loop.longest()), ms(back))
}

// loading is calls at a steady rate, however long each takes.
type loading struct {
	cancel  context.CancelFunc
	ended   chan struct{}
	machine machine // at the end

	mu       sync.Mutex
	outcomes []outcome // guarded by mu
	answers  int       // guarded by mu; not degraded
	lastBad  time.Time // guarded by mu; when a degraded call began
}

// load makes calls of e until the end.
func load(e *weir.Engine) *loading {
	ctx, cancel := context.WithCancel(context.Background())
	l := &loading{cancel: cancel, ended: make(chan struct{})}
	var watching sync.WaitGroup
	watching.Go(func() { l.machine.watch(ctx) })
	go func() {
		defer close(l.ended)
		var calling sync.WaitGroup
		tick := time.NewTicker(troubleEvery)
		defer tick.Stop()
		began := time.Now()
		for made := 0; ctx.Err() == nil; {
			<-tick.C
			for ; time.Duration(made)*troubleEvery <= time.Since(began); made++ {
				key := made / troubleTakes
				calling.Go(func() { l.call(e, key) })
			}
		}
		calling.Wait()
		watching.Wait()
	}()
	return l
}

func (l *loading) call(e *weir.Engine, key int) {
	o := outcome{key: key, began: time.Now()}
	d, err := e.Take(context.Background(), weir.Request{Attributes: weir.Attributes("user", troubleUser(key))})
	o.took, o.allowed, o.degraded, o.reason = time.Since(o.began), d.Allowed, d.Degraded || err != nil, d.DegradedReason
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outcomes = append(l.outcomes, o)
	if !o.degraded {
		l.answers++
	} else if o.began.After(l.lastBad) {
		l.lastBad = o.began
	}
}

// troubleUser returns the user of a key.
func troubleUser(key int) string { return fmt.Sprint("user", key) }

// made returns how many calls have ended.
func (l *loading) made() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.outcomes)
}

// answered waits until n more calls are answered.
func (l *loading) answered(t testing.TB, n int) {
	t.Helper()
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.answers
	}
	before := count()
	redistest.Eventually(t, "calls are answered", func() bool { return count() >= before+n })
}

// quiet waits until no call has been degraded for a second.
func (l *loading) quiet(t testing.TB) {
	t.Helper()
	since := time.Now()
	redistest.Eventually(t, "all calls are answered", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return time.Since(l.lastBad) > time.Second && time.Since(since) > time.Second
	})
}

// end ends the calls and returns how they fared.
func (l *loading) end() []outcome {
	l.cancel()
	<-l.ended
	return l.outcomes
}

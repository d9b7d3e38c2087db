package redisstore_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/store/redisstore"
	"github.com/weirhq/weir/window"
)

// BenchmarkColdStart starts two processes with four clients each, which make 2,400
// takes at a limit of 1,000, 25 times. Exactly 1,000 are admitted, unless the
// machine did not run one of the processes or the server for so long that calls
// were late: then it prints when the calls were made and for how long the machine
// stood still meanwhile.
func BenchmarkColdStart(b *testing.B) {
	for b.Loop() {
		exact, excused, degraded := 0, 0, 0
		for range 25 {
			r := coldRun(b)
			degraded += r.degraded
			switch {
			case r.admitted == 1000:
				exact++
			case r.degraded > 0 && r.degraded == r.paused:
				excused++
			default:
				b.Errorf("got %d admitted, %d degraded calls, of which the machine paused %d", r.admitted, r.degraded, r.paused)
			}
		}
		b.ReportMetric(float64(exact), "exact/25")
		b.ReportMetric(float64(excused), "paused/25")
		b.ReportMetric(float64(degraded), "degraded")
	}
}

// coldResult is what the processes of a run have counted. paused are the degraded
// calls during which the machine stood still for half of the time-out.
type coldResult struct{ admitted, degraded, paused int }

// coldEnv is the variable with the URL that a child of BenchmarkColdStart uses.
const coldEnv = "WEIR_TEST_COLD_START"

func coldRun(b *testing.B) (all coldResult) {
	n := redistest.Server(b)
	defer n.Kill()
	server := waits{}
	ctx, cancel := context.WithCancel(b.Context())
	var watching, starting sync.WaitGroup
	watching.Go(func() { server.watch(ctx, n.Pid()) })
	said := make([]string, 2)
	for i := range said {
		starting.Go(func() {
			child := exec.Command(os.Args[0])
			child.Env = append(os.Environ(), coldEnv+"=redis://"+n.Addr())
			child.Stderr = os.Stderr
			out, err := child.Output()
			if err != nil {
				b.Errorf("child: %v", err)
			}
			said[i] = string(out)
		})
	}
	starting.Wait()
	cancel()
	watching.Wait()
	for i, text := range said {
		for line := range strings.Lines(text) {
			var admitted int
			var began, took, paused time.Duration
			var reason store.Reason
			if _, err := fmt.Sscanf(line, "admitted %d", &admitted); err == nil {
				all.admitted += admitted
				continue
			}
			if _, err := fmt.Sscanf(line, "degraded %d %d %d %s", &began, &took, &paused, &reason); err != nil {
				b.Errorf("child: got %q", line)
				continue
			}
			at := time.Unix(0, int64(began))
			unserved := server.during(at, at.Add(took))
			b.Logf("process %d: a call at %s was %s after %v; of this the machine did not run a thread of the process for %v, and the server for %v",
				i, at.Format("05.000"), reason, took, paused, unserved)
			all.degraded++
			if paused+unserved >= defaultTimeout/2 {
				all.paused++
			}
		}
	}
	return all
}

// coldStart runs a child of BenchmarkColdStart. It prints how many takes were
// admitted, and for each degraded one when it began, how long it took, for how much
// of that the machine did not run a loop or a thread, and the reason.
func coldStart(url string) error {
	s, err := redisstore.Open(context.Background(), url)
	if err != nil {
		return err
	}
	defer s.Close()
	rules, err := rule.New([]rule.Rule{{
		Name: "hits", Per: []string{"user"}, Quota: &rule.Quota{Value: 1000}, Window: window.Sliding(time.Hour),
	}}, nil)
	if err != nil {
		return err
	}
	local := memstore.New()
	defer local.Close()
	e, err := weir.NewEngine(rules, weir.WithStore(s), weir.WithLocal(local, 2))
	if err != nil {
		return err
	}
	threads, machine := waits{}, pauses{}
	ctx, cancel := context.WithCancel(context.Background())
	var watching, clients sync.WaitGroup
	watching.Go(func() { machine.watch(ctx) })
	watching.Go(func() { threads.watch(ctx, os.Getpid()) })
	var admitted atomic.Int64
	var mu sync.Mutex
	var degraded []outcome
	for range 4 {
		clients.Go(func() {
			for range 300 {
				o := outcome{began: time.Now()}
				d, err := e.Take(context.Background(), weir.Request{Attributes: weir.Attributes("user", "ann")})
				o.took, o.reason = time.Since(o.began), d.DegradedReason
				if err == nil && d.Allowed {
					admitted.Add(1)
				}
				if err != nil || d.Degraded {
					mu.Lock()
					degraded = append(degraded, o)
					mu.Unlock()
				}
			}
		})
	}
	clients.Wait()
	time.Sleep(2 * time.Millisecond) // so that the watch has seen the last pause
	cancel()
	watching.Wait()
	for _, o := range degraded {
		end := o.began.Add(o.took)
		fmt.Println("degraded", o.began.UnixNano(), int64(o.took),
			int64(max(machine.during(o.began, end), threads.during(o.began, end))), o.reason)
	}
	fmt.Println("admitted", admitted.Load())
	return nil
}

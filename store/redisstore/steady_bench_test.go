//go:build unix

package redisstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// BenchmarkSteadyLoad measures the CPU time that a call costs this process at a steady 5,000 calls a
// second, far below what the server could decide: 64 callers make their calls at random times. It
// compares takes with INCR, with a script of one INCR, and with the least script that limits (GET, a
// comparison and SET PX), all through a client of the library with its default options. The CPU time
// of callers who only wait is subtracted, and shown with the total. Rows are medians of their turns.
//
//	go test -run '^$' -bench SteadyLoad -benchtime 1x ./store/redisstore
func BenchmarkSteadyLoad(b *testing.B) {
	addr := redistest.Server(b).Addr()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(client.Close)
	s := openURL(b, "redis://"+addr+"?timeout=1s")
	name := func(r *rand.Rand) string { return fmt.Sprintf("key%05d", r.IntN(10_000)) }
	take := func(windows ...window.Window) func(*rand.Rand, []store.Op) error {
		rules := make([]store.Op, len(windows))
		for i, w := range windows {
			limit := window.MustCompile(window.Limit{Quota: 1_000_000, Window: w})
			rules[i] = store.Op{Space: store.NewSpace("", w.ID()+strconv.Itoa(i), "rule", 0), Limit: limit, N: 1}
		}
		return func(r *rand.Rand, own []store.Op) error {
			key := []byte(name(r))
			for i, op := range rules {
				own[i], own[i].Key = op, key
			}
			return store.Do(b.Context(), s, store.Take, own[:len(rules)])
		}
	}
	incr := rueidis.NewLuaScript("return redis.call('INCR',KEYS[1])")
	set := rueidis.NewLuaScript(`local n = tonumber(redis.call('GET', KEYS[1]) or '0')
if n < 1000000000 then redis.call('SET', KEYS[1], n + 1, 'PX', ARGV[1]) end
return ''`)
	hours := 2 * time.Hour
	rows := []steadyRow{
		{"no call", func(*rand.Rand, []store.Op) error { return nil }},
		{"incr", func(r *rand.Rand, _ []store.Op) error {
			return client.Do(b.Context(), client.B().Incr().Key(name(r)).Build()).Error()
		}},
		{"evalsha of incr", func(r *rand.Rand, _ []store.Op) error {
			return incr.Exec(b.Context(), client, []string{name(r)}, nil).Error()
		}},
		{"sliding", take(window.Sliding(time.Hour))},
		{"fixed", take(window.Fixed(time.Hour))},
		{"three rules", take(window.Sliding(hours), window.Sliding(hours), window.Sliding(hours))},
		{"evalsha of set", func(r *rand.Rand, _ []store.Op) error {
			return set.Exec(b.Context(), client, []string{"f" + name(r)}, []string{"3600000"}).Error()
		}},
	}
	const turn = 300 * time.Millisecond
	hammerFor(b, turn, 64, rows[1].call) // the client pipelines from now on
	cpu := make([][]float64, len(rows))
	for b.Loop() {
		for range 30 {
			for i, row := range rows {
				cpu[i] = append(cpu[i], pacedFor(b, turn, 5000, 64, row.call))
			}
		}
	}
	middle := make([]float64, len(rows))
	for i := range rows {
		slices.Sort(cpu[i])
		middle[i] = cpu[i][len(cpu[i])/2]
	}
	own := func(i int) float64 { return middle[i] - middle[0] } // without the wait
	of := func(i int, name string) float64 {
		return own(i) / own(slices.IndexFunc(rows, func(r steadyRow) bool { return r.name == name }))
	}
	for i, row := range rows {
		b.Logf("%-16s %5.1f µs a call, of INCR %.2f, of EVALSHA %.2f, of the least script %.2f; with the wait %.1f µs",
			row.name, own(i), of(i, "incr"), of(i, "evalsha of incr"), of(i, "evalsha of set"), middle[i])
	}
}

// steadyRow is what callers do.
type steadyRow struct {
	name string
	call func(*rand.Rand, []store.Op) error
}

// pacedFor makes callers call for some time, at a rate that they share. It returns the CPU time
// of this process for each call, in microseconds.
func pacedFor(b *testing.B, length time.Duration, rate, callers int, call func(*rand.Rand, []store.Op) error) float64 {
	ctx, cancel := context.WithTimeout(b.Context(), length)
	defer cancel()
	counts := make([]int, callers)
	between := float64(time.Second) * float64(callers) / float64(rate)
	var calling sync.WaitGroup
	before := cpuTime(b)
	for i := range callers {
		calling.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			ops := make([]store.Op, 3)
			next := time.Now()
			for {
				next = next.Add(time.Duration(r.ExpFloat64() * between))
				time.Sleep(time.Until(next))
				if ctx.Err() != nil {
					return
				}
				if err := call(r, ops); err != nil {
					b.Error(err)
					return
				}
				counts[i]++
			}
		})
	}
	calling.Wait()
	used, made := cpuTime(b)-before, 0
	for _, n := range counts {
		made += n
	}
	return float64(used.Microseconds()) / float64(made)
}

// cpuTime returns the CPU time that this process has used.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

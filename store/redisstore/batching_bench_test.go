package redisstore_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// BenchmarkBatching measures takes of many callers on 10,000 keys, in turns with
// what they are compared with through the same client: a plain INCR, a script of
// one INCR, and a baseline for runs, a script that does GET, a comparison and SET PX
// for 16 keys and counts as 16 decisions. The batched baseline is that script for
// callers of one key each, whose calls are batched with no other work. The baseline of
// three does that for callers of three keys each, which are counted only if all
// three have room: one decision of three rules. Each row is the median of its
// turns. On a cluster of one node nearly every key has its own slot, and steps
// are not batched.
//
//	go test -run '^$' -bench Batching -benchtime 1x ./store/redisstore
func BenchmarkBatching(b *testing.B) {
	addr := redistest.Server(b).Addr()
	alone := redistest.Cluster(b, 1, 0).Addrs()
	for _, setup := range []struct {
		name, addr, url string
		callers         int
	}{
		{"one server", addr, "redis://" + addr + "?timeout=1s", 1},
		{"one server", addr, "redis://" + addr + "?timeout=1s", 64},
		{"one server", addr, "redis://" + addr + "?timeout=1s", 256},
		{"many slots", alone, "redis+cluster://" + alone + "?timeout=1s", 64},
	} {
		b.Run(fmt.Sprintf("%s/callers=%d", setup.name, setup.callers), func(b *testing.B) {
			c := connect(b, setup.addr)
			rows := batchingRows(b, c, openURL(b, setup.url))
			rates, late := make([][]float64, len(rows)), make([][]float64, len(rows))
			here, there := make([][]float64, len(rows)), make([][]float64, len(rows))
			m := meter{c}
			for b.Loop() {
				for range 7 {
					for i, row := range rows {
						if strings.Contains(row.name, "baseline") && setup.addr == alone {
							continue // its keys are in several slots
						}
						_, _, before := m.read(b, "")
						own := cpuTime(b)
						rate, p99 := hammerFor(b, turn, max(1, setup.callers/row.count), row.call)
						own = cpuTime(b) - own
						_, _, after := m.read(b, "")
						rates[i], late[i] = append(rates[i], rate*float64(row.count)), append(late[i], p99)
						calls := rate * turn.Seconds() * float64(row.count)
						here[i], there[i] = append(here[i], float64(own.Microseconds())/calls), append(there[i], (after-before)*1e6/calls)
					}
				}
			}
			middle := func(all []float64) float64 {
				if len(all) == 0 {
					return math.NaN()
				}
				slices.Sort(all)
				return all[len(all)/2]
			}
			rateOf := func(name string) float64 {
				return middle(rates[slices.IndexFunc(rows, func(r batchingRow) bool { return r.name == name })])
			}
			for i, row := range rows {
				rate, own := middle(rates[i]), "batched baseline"
				if strings.HasPrefix(row.name, "three ") {
					own = "baseline of three"
				}
				b.Logf("%-16s %7.0f/s, of INCR %.2f, of EVALSHA %.2f, of the baseline %.2f, of its batched baseline %.2f, p99 %.2f ms, CPU here %.1f µs, there %.1f µs",
					row.name, rate, rate/middle(rates[0]), rate/middle(rates[1]), rate/middle(rates[2]), rate/rateOf(own), middle(late[i]), middle(here[i]), middle(there[i]))
			}
		})
	}
}

// turn is how long a row is measured at a time.
const turn = 300 * time.Millisecond

// batchingRow is what callers do, and how many decisions a call is.
type batchingRow struct {
	name  string
	count int
	call  func(*rand.Rand, []store.Op) error
}

func batchingRows(b *testing.B, c rueidis.Client, s store.Store) []batchingRow {
	ctx := b.Context()
	names := make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprintf("key%05d", i)
	}
	keys := make([][]byte, len(names))
	for i := range names {
		keys[i] = []byte(names[i])
	}
	name := func(r *rand.Rand) string { return names[r.IntN(len(names))] }
	evalsha := rueidis.NewLuaScript("return redis.call('INCR',KEYS[1])")
	baseline := rueidis.NewLuaScript(`for i = 1, #KEYS do
  local n = tonumber(redis.call('GET', KEYS[i]) or '0')
  if n < 1000000000 then redis.call('SET', KEYS[i], n + 1, 'PX', ARGV[1]) end
end
return ''`)
	baselineOfThree := rueidis.NewLuaScript(`for i = 1, #KEYS, 3 do
  local a, b, c = KEYS[i], KEYS[i + 1], KEYS[i + 2]
  local n, m, o = redis.call('GET', a), redis.call('GET', b), redis.call('GET', c)
  n, m, o = tonumber(n or '0'), tonumber(m or '0'), tonumber(o or '0')
  if n < 1000000000 and m < 1000000000 and o < 1000000000 then
    redis.call('SET', a, n + 1, 'PX', ARGV[1])
    redis.call('SET', b, m + 1, 'PX', ARGV[1])
    redis.call('SET', c, o + 1, 'PX', ARGV[1])
  end
end
return ''`)
	take := func(windows ...window.Window) func(*rand.Rand, []store.Op) error {
		rules := make([]store.Op, len(windows))
		for i, w := range windows {
			limit := window.MustCompile(window.Limit{Quota: 1_000_000, Window: w})
			rules[i] = store.Op{Space: store.NewSpace("", w.ID()+strconv.Itoa(i), "rule", 0), Limit: limit, N: 1}
		}
		return func(r *rand.Rand, own []store.Op) error {
			key := keys[r.IntN(len(keys))]
			for i, op := range rules {
				own[i], own[i].Key = op, key
			}
			return store.Do(ctx, s, store.Take, own[:len(rules)])
		}
	}
	hours := 2 * time.Hour
	return []batchingRow{
		{"incr", 1, func(r *rand.Rand, _ []store.Op) error { return c.Do(ctx, c.B().Incr().Key(name(r)).Build()).Error() }},
		{"evalsha of incr", 1, func(r *rand.Rand, _ []store.Op) error {
			return evalsha.Exec(ctx, c, []string{name(r)}, nil).Error()
		}},
		{"baseline", 16, func(r *rand.Rand, _ []store.Op) error {
			sixteen := make([]string, 16)
			for i := range sixteen {
				sixteen[i] = "f" + name(r)
			}
			return baseline.Exec(ctx, c, sixteen, []string{"3600000"}).Error()
		}},
		{"batched baseline", 1, batchedBaseline(ctx, c, baseline, name, "f")},
		{"baseline of three", 1, batchedBaseline(ctx, c, baselineOfThree, name, "f", "g", "h")},
		{"sliding", 1, take(window.Sliding(time.Hour))},
		{"fixed", 1, take(window.Fixed(time.Hour))},
		{"bucket", 1, take(window.Bucket(time.Hour, 0))},
		{"three rules", 1, take(window.Sliding(hours), window.Sliding(hours), window.Sliding(hours))},
		{"three kinds", 1, take(window.Fixed(hours), window.Bucket(hours, 0), window.Sliding(hours))},
	}
}

// batchedBaseline returns a call of a baseline's script for the keys of one caller: a
// name after each prefix. Two goroutines send the keys of all callers who wait, 64
// at most.
func batchedBaseline(ctx context.Context, c rueidis.Client, baseline *rueidis.Lua, name func(*rand.Rand) string, prefixes ...string) func(*rand.Rand, []store.Op) error {
	type pending struct {
		key  string
		back chan error
	}
	const most = 64
	waiting := make(chan pending, 1024)
	for range 2 {
		go func() {
			var run []pending
			var keys []string
			for ctx.Err() == nil {
				run, keys = run[:0], keys[:0]
				select {
				case s := <-waiting:
					run = append(run, s)
				case <-ctx.Done():
					return
				}
				runtime.Gosched() // others may come
				for len(run) < min(most, len(run)+len(waiting)) {
					select {
					case s := <-waiting:
						run = append(run, s)
					default:
					}
				}
				for _, s := range run {
					for _, prefix := range prefixes {
						keys = append(keys, prefix+s.key)
					}
				}
				err := baseline.Exec(ctx, c, keys, []string{"3600000"}).Error()
				for _, s := range run {
					s.back <- err
				}
			}
		}()
	}
	replies := sync.Pool{New: func() any { return make(chan error, 1) }}
	return func(r *rand.Rand, _ []store.Op) error {
		back := replies.Get().(chan error)
		defer replies.Put(back)
		waiting <- pending{name(r), back}
		return <-back
	}
}

// hammerFor makes callers call for some time. It returns the calls a second and the
// 99th percentile of their lengths in milliseconds.
func hammerFor(b *testing.B, length time.Duration, callers int, call func(*rand.Rand, []store.Op) error) (rate, p99 float64) {
	all := make([][]time.Duration, callers)
	var calling sync.WaitGroup
	began := time.Now()
	for i := range callers {
		calling.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			ops := make([]store.Op, 3)
			for before := began; before.Sub(began) < length; {
				if err := call(r, ops); err != nil {
					b.Error(err)
					return
				}
				after := time.Now()
				all[i] = append(all[i], after.Sub(before))
				before = after
			}
		})
	}
	calling.Wait()
	passed := time.Since(began)
	lengths := slices.Concat(all...)
	slices.Sort(lengths)
	return float64(len(lengths)) / passed.Seconds(), float64(lengths[len(lengths)*99/100].Microseconds()) / 1000
}

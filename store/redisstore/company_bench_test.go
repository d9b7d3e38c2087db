package redisstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore"
	"github.com/weirhq/weir/window"
)

// BenchmarkCompany measures takes of many callers on 10,000 keys, in turns with
// what they are compared with through a client with the same settings: a plain
// INCR, a script of one INCR, and a floor for runs, a script that does GET, a
// comparison and SET PX for 16 keys and counts as 16 decisions. Each row is the
// median of several turns.
//
//	go test -run '^$' -bench Company -benchtime 1x ./store/redisstore
func BenchmarkCompany(b *testing.B) {
	n := redistest.Server(b)
	c := connect(b, n.Addr())
	s, opened := store.Store(redisstore.New(c)), openURL(b, "redis://"+n.Addr()+"?timeout=500ms")
	const keys, turns = 10_000, 5
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprintf("key%05d", i)
	}
	evalsha := rueidis.NewLuaScript("return redis.call('INCR',KEYS[1])")
	floor := rueidis.NewLuaScript(`for i = 1, #KEYS do
  local n = tonumber(redis.call('GET', KEYS[i]) or '0')
  if n < 1000000000 then redis.call('SET', KEYS[i], n + 1, 'PX', ARGV[1]) end
end
return ''`)
	take := func(s store.Store, w window.Window, ops int) func(*rand.Rand, []store.Op) error {
		limit := window.MustCompile(window.Limit{Quota: 1_000_000, Window: w})
		space := make([]*store.Space, ops)
		for i := range space {
			space[i] = store.NewSpace("", w.ID()+strconv.Itoa(i), "rule", 0)
		}
		return func(r *rand.Rand, own []store.Op) error {
			key := []byte(names[r.IntN(keys)])
			for i := range space {
				own[i] = store.Op{Space: space[i], Limit: limit, Key: key, N: 1}
			}
			return store.Do(context.Background(), s, store.Take, own[:ops])
		}
	}
	rows := []struct {
		name  string
		count int // decisions of a call
		call  func(*rand.Rand, []store.Op) error
	}{
		{"incr", 1, func(r *rand.Rand, _ []store.Op) error {
			return c.Do(context.Background(), c.B().Incr().Key(names[r.IntN(keys)]).Build()).Error()
		}},
		{"evalsha of incr", 1, func(r *rand.Rand, _ []store.Op) error {
			return evalsha.Exec(context.Background(), c, []string{names[r.IntN(keys)]}, nil).Error()
		}},
		{"floor", 16, func(r *rand.Rand, _ []store.Op) error {
			sixteen := make([]string, 16)
			for i := range sixteen {
				sixteen[i] = "f" + names[r.IntN(keys)]
			}
			return floor.Exec(context.Background(), c, sixteen, []string{"3600000"}).Error()
		}},
		{"sliding", 1, take(s, window.Sliding(time.Hour), 1)},
		{"fixed", 1, take(s, window.Fixed(time.Hour), 1)},
		{"bucket", 1, take(s, window.Bucket(time.Hour, 0), 1)},
		{"three sliding rules", 1, take(s, window.Sliding(2*time.Hour), 3)},
		{"sliding, opened", 1, take(opened, window.Sliding(3*time.Hour), 1)},
	}
	for _, callers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			rates, late := make([][]float64, len(rows)), make([][]float64, len(rows))
			for b.Loop() {
				for range turns {
					for i, row := range rows {
						rate, p99 := hammerFor(b, 300*time.Millisecond, max(1, callers/row.count), row.call)
						rates[i], late[i] = append(rates[i], rate*float64(row.count)), append(late[i], p99)
					}
				}
			}
			middle := func(all []float64) float64 { slices.Sort(all); return all[len(all)/2] }
			incr, script := middle(rates[0]), middle(rates[1])
			for i, row := range rows {
				rate := middle(rates[i])
				b.Logf("%-20s %8.0f/s  %.2f of INCR  %.2f of EVALSHA  %.2f of the floor  p99 %.2f ms",
					row.name, rate, rate/incr, rate/script, rate/middle(rates[2]), middle(late[i]))
			}
		})
	}
}

// hammerFor has callers call for some time. It returns the calls a second and the
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

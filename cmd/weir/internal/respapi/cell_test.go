package respapi_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// cell is redis-cell's arithmetic, written from its description: GCRA in nanoseconds, an
// interval that is cut to whole nanoseconds, and seconds that are rounded up from whole
// milliseconds.
type cell struct{ tat map[string]int64 }

func (c *cell) throttle(now time.Time, key string, burst, count, period, quantity int64) string {
	at := now.UnixNano()
	interval := int64(float64(period*1e9) / float64(count))
	tolerance := interval * (burst + 1)
	tat, used := c.tat[key]
	if !used || tat < at {
		tat = at
	}
	next := tat + interval*quantity
	limited, retry := int64(0), int64(-1)
	if at < next-tolerance {
		limited = 1
		if quantity <= burst+1 {
			retry = ceiling(next - tolerance - at)
		}
		next = tat
	} else if quantity > 0 {
		c.tat[key] = next
	}
	ttl := next - at
	remaining := int64(0)
	if room := tolerance - ttl; room > -interval {
		remaining = max(0, (room/1000)/max(1, interval/1000))
	}
	return fmt.Sprintf("*[:%d :%d :%d :%d :%d]", limited, burst+1, remaining, retry, ceiling(ttl))
}

// ceiling returns nanoseconds in seconds: whole milliseconds, rounded up.
func ceiling(ns int64) int64 { return (ns/1e6 + 999) / 1000 }

// CL.THROTTLE answers as redis-cell does, on random traffic. Rates whose interval is a
// whole number of microseconds have no rounding that could differ.
func TestThrottleIsThatOfRedisCell(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, "rules: []", nil)
			l := newPipes()
			serve(t, s, l)
			c := newClient(t, l.dial())
			defer c.Close()
			rnd, model := rand.New(rand.NewPCG(seed, 7)), &cell{map[string]int64{}}
			burst, count, period := rnd.Int64N(30), []int64{1, 2, 3, 5, 10, 30, 100, 1000}[rnd.IntN(8)], []int64{1, 3, 60, 3600}[rnd.IntN(4)]
			if period*1e6%count != 0 {
				period = count
			}
			for range 300 {
				time.Sleep(time.Duration(rnd.Int64N(2*period*1e6/count+1)) * time.Microsecond)
				key, quantity := "k"+strconv.Itoa(rnd.IntN(3)), rnd.Int64N(4)
				if rnd.IntN(20) == 0 {
					quantity = burst + rnd.Int64N(4)
				}
				want := model.throttle(time.Now(), key, burst, count, period, quantity)
				got := c.do("CL.THROTTLE", key, fmt.Sprint(burst), fmt.Sprint(count), fmt.Sprint(period), fmt.Sprint(quantity))
				if got != want {
					t.Fatalf("%d %d %d, %d of %s: got %s, want %s", burst, count, period, quantity, key, got, want)
				}
			}
		})
	}
}

package rolling_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/rolling"
)

const writers = 64

// TestEveryHitInALongWindow runs many writers while every other hit opens a new
// bucket. The window is so long that no bucket leaves: each hit must be in exactly
// one bucket at the end.
func TestEveryHitInALongWindow(t *testing.T) {
	t.Parallel()
	const width = 2 * time.Nanosecond
	const ticks = rotations * int64(width) * 5 / 4
	const n = int(ticks/int64(width)) + writers
	w := rolling.MustNew[int64](n, time.Duration(n)*width)

	var clock, hits, sum atomic.Int64
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			var mine, added int64
			for {
				now := clock.Add(1)
				if now > ticks {
					break
				}
				w.AddAt(time.Duration(now), now)
				mine++
				added += now
			}
			hits.Add(mine)
			sum.Add(added)
		})
	}
	wg.Wait()

	var count, total int64
	opened := 0
	w.All().ReduceAt(time.Duration(ticks), func(b rolling.Bucket[int64]) {
		if b.Count > 0 {
			opened++
		}
		count += b.Count
		total += b.Sum
	})
	if count != hits.Load() || total != sum.Load() {
		t.Errorf("got %d hits of %d in the buckets, want %d of %d", count, total, hits.Load(), sum.Load())
	}
	if opened < rotations {
		t.Errorf("got %d buckets with hits, want at least %d", opened, rotations)
	}
}

// TestEveryHitUntilItLeaves makes all writers race to open each bucket, and counts
// the bucket and the window before the next one. The window holds four buckets, so
// buckets leave all the time.
func TestEveryHitUntilItLeaves(t *testing.T) {
	t.Parallel()
	const n = 4
	w := rolling.MustNew[float64](n, n*time.Second)
	running, err := w.View(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	for round := range rotations {
		now := time.Duration(round) * time.Second
		var wg sync.WaitGroup
		for i := range writers {
			wg.Go(func() { w.AddAt(now+time.Duration(i), float64(i)) })
		}
		wg.Wait()

		b := running.TotalAt(now)
		const sum = writers * (writers - 1) / 2
		if b.Count != writers || b.Sum != sum || b.Min != 0 || b.Max != writers-1 {
			t.Fatalf("bucket %d: got %+v, want %d hits of %d from 0 to %d", round, b, writers, sum, writers-1)
		}
		if got, want := w.All().CountAt(now), int64(writers*min(round+1, n)); got != want {
			t.Fatalf("bucket %d: got %d hits in the window, want %d", round, got, want)
		}
	}
}

// ledger counts hits by second, from second 0 on.
type ledger []atomic.Int64

func (l ledger) sum(from, to int64) int64 {
	var sum int64
	for i := max(from, 0); i < min(to, int64(len(l))); i++ {
		sum += l[i].Load()
	}
	return sum
}

// TestReadsAreBounded checks the promises of the package for reads, while writers
// write and the clock runs. A read counts every hit whose Add returned before it and
// that stays inside, and no hit that left before it or began after it.
func TestReadsAreBounded(t *testing.T) {
	t.Parallel()
	const n, seconds = 5, rotations / 50
	w := rolling.MustNew[int64](n, n*time.Second)
	var clock, reads atomic.Int64 // clock in nanoseconds
	second := func() int64 { return clock.Load() / int64(time.Second) }
	began, called, returned := new(atomic.Int64), make(ledger, seconds+1), make(ledger, seconds+1)

	var wg sync.WaitGroup
	for range writers / 8 {
		wg.Go(func() {
			for second() < seconds {
				began.Add(1)
				now := clock.Load()
				w.AddAt(time.Duration(now), 1)
				// A hit's bucket lies between the second of the call and that of the return.
				called[now/int64(time.Second)].Add(1)
				returned[second()].Add(1)
				if second() < reads.Load()+n { // at least one read per second
					clock.Add(int64(time.Millisecond))
				} else {
					runtime.Gosched()
				}
			}
		})
	}
	for second() < seconds {
		// Hits that had returned, in buckets that had left by then.
		gone := returned.sum(0, second()-n+1)
		done := make([]int64, 2*n+1)
		first := second() - n
		for i := range done {
			done[i] = called.sum(first+int64(i), first+int64(i)+1)
		}
		total := w.All().TotalAt(time.Duration(clock.Load()))
		last := second()
		most := began.Load() - gone
		var least int64
		for i, hits := range done {
			if first+int64(i) > last-n {
				least += hits
			}
		}
		if total.Count < least || total.Sum > most || total.Sum < total.Count {
			t.Fatalf("got %d hits of %d, want %d to %d", total.Count, total.Sum, least, most)
		}
		reads.Add(1)
	}
	wg.Wait()
	if got, want := returned.sum(0, seconds+1), began.Load(); got != want {
		t.Errorf("got %d hits in the ledger, want %d", got, want)
	}
}

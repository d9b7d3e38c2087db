package server

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

const (
	// mostRate is the part by which the rates of the clocks of an instance and a store may differ: what leases assume.
	mostRate = 1e-3

	// rateTrips is how many round trips the measurement lasts, so that they blur the rate by a quarter of mostRate at most. It
	// lasts at least rateAtLeast and at most rateAtMost.
	rateTrips   = 4000
	rateAtLeast = 250 * time.Millisecond
	rateAtMost  = 4 * time.Second
)

// reading is the clock of a store at an instant of this process's steady clock.
type reading struct {
	here  time.Time
	there window.Instant
	trip  time.Duration // here is off by half of it, at most
}

// readClock returns the quickest of a few readings.
func readClock(read func() (window.Instant, error)) (best reading, err error) {
	for i := range 9 {
		before := time.Now()
		at, err := read()
		if err != nil {
			return best, err
		}
		if trip := time.Since(before); i == 0 || trip < best.trip {
			best = reading{before.Add(trip / 2), at, trip}
		}
	}
	return best, nil
}

// clockRate compares the rates of the clock of a store, which read reads, and of this process.
func clockRate(ctx context.Context, read func() (window.Instant, error)) remote.Finding {
	f := remote.Finding{Check: "clock-rate", Level: remote.LevelUnknown}
	first, err := readClock(read)
	if err != nil {
		f.Seen = "not measured: " + seen(err)
		return f
	}
	select {
	case <-time.After(min(max(rateTrips*first.trip, rateAtLeast), rateAtMost)):
	case <-ctx.Done():
	}
	last, err := readClock(read)
	if err != nil {
		f.Seen = "not measured: " + seen(err)
		return f
	}
	here := last.here.Sub(first.here).Seconds()
	off := float64(last.there-first.there)/1e6/here - 1
	blur := (first.trip + last.trip).Seconds() / 2 / here
	switch seen := fmt.Sprintf("%+.1f ‰, measured to %.1f ‰", 1000*off, 1000*blur); {
	case max(off, -off)-blur > mostRate:
		f.Level, f.Seen = remote.LevelWarn, seen
		f.Means, f.Fix = "rules with lease can admit more than their quota", "correct the clocks slowly, and not in steps, while weir runs"
	case blur > mostRate:
		f.Seen = "not measured: the server is too far away"
	default:
		f.Level, f.Seen = remote.LevelOK, seen
	}
	return f
}

// clockRates compares the rates of the clocks of the servers of s with that of this process, and returns the worst finding.
// In a cluster it reads keys that no rule has, in several slots.
func clockRates(ctx context.Context, s store.Store, servers string, nodes int) (worst remote.Finding) {
	limit := window.MustCompile(window.Limit{Quota: 1, Window: window.Fixed(time.Second)})
	keys := 1
	if nodes > 1 {
		keys = 4 * nodes
	}
	found := make(chan remote.Finding, keys)
	for i := range keys {
		op := store.Op{Space: store.NewSpace("", "doctor", "doctor", 0), Limit: limit, Key: strconv.AppendInt(nil, int64(i), 10)}
		go func() {
			found <- clockRate(ctx, func() (window.Instant, error) {
				r, err := s.Read(ctx, &op)
				return r.At, err
			})
		}()
	}
	levels := map[remote.Level]int{remote.LevelUnknown: 1, remote.LevelWarn: 2}
	for range keys {
		if f := <-found; worst.Check == "" || levels[f.Level] > levels[worst.Level] {
			worst = f
		}
	}
	worst.Node = servers
	return worst
}

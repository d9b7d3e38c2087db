package server

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// A heap is collected when the garbage is as large as what is alive. A service has a few
// megabytes alive, so under load it is collected dozens of times a second, which takes
// 5 to 10 % of its processor time. So a small heap may have garbageRoom of garbage.
const (
	garbageRoom = 32 << 20
	mostPercent = 800 // of what is alive; a heap that is nearly empty stays small
)

// garbagePercent returns the percentage for [debug.SetGCPercent] when so many bytes are
// alive.
func garbagePercent(alive uint64) int {
	return int(min(max(100*garbageRoom/max(alive, 1), 100), mostPercent))
}

// spareCollector keeps the collector's percentage at garbagePercent until ctx is done,
// unless GOGC is set. The bound on the memory of the process holds all the same.
func spareCollector(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	alive := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	percent := 100
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	defer func() { debug.SetGCPercent(100) }()
	for {
		metrics.Read(alive)
		// To set it stops the world, so small changes are not worth it.
		if now := garbagePercent(alive[0].Value.Uint64()); now > percent*5/4 || now < percent*4/5 || now == 100 && percent > 100 {
			debug.SetGCPercent(now)
			percent = now
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

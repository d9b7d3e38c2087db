package server

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
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
	s := &spared{percent: 100, alive: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
	defer s.end()
	s.afterCollections()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		s.adjust()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// spared is the collector's percentage.
type spared struct {
	mu      sync.Mutex
	percent int              // guarded by mu
	ended   bool             // guarded by mu
	alive   []metrics.Sample // guarded by mu
}

// adjust sets the percentage for what is alive. It reports whether it will be adjusted
// further.
func (s *spared) adjust() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	metrics.Read(s.alive)
	// To set it stops the world, so small changes are not worth it.
	if now := garbagePercent(s.alive[0].Value.Uint64()); now > s.percent*5/4 || now < s.percent*4/5 || now == 100 && s.percent > 100 {
		debug.SetGCPercent(now)
		s.percent = now
	}
	return true
}

// cycle is an object that nothing refers to, so that the next collection finds it.
type cycle struct{ _ *cycle }

// afterCollections adjusts the percentage after each collection. A heap that is
// nearly empty has a high percentage, and a load that begins can make it many times as
// large before a second has passed.
func (s *spared) afterCollections() {
	runtime.SetFinalizer(&cycle{}, func(*cycle) {
		if s.adjust() {
			s.afterCollections()
		}
	})
}

// end sets the default.
func (s *spared) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	debug.SetGCPercent(100)
}

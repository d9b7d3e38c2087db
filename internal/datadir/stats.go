package datadir

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// Stats are the numbers of a [Store].
type Stats struct {
	// Loading reports whether the counters are still being loaded. Loaded is the
	// number of keys that were loaded, and LoadTime how long that took or has taken.
	Loading  bool
	Loaded   int64
	LoadTime time.Duration

	// Lag is the time since the start of the last flush that succeeded. Later changes may
	// not be on the disk yet.
	Lag time.Duration

	// Bytes is the size of the files. Live is about what the keys and blobs without their
	// history need, and 0 if that is not known yet.
	Bytes, Live int64

	// Since the store was opened: flushes that succeeded and that failed, the time
	// that all of them took, the bytes and the keys that were written, and the
	// compactions, each of which wrote all keys.
	Flushes, Failures         int64
	FlushTime, LongestFlush   time.Duration
	WrittenBytes, WrittenKeys int64
	Compactions               int64

	// Damaged is the number of batches and parts of files that could not be
	// loaded, without the last, torn one.
	Damaged int64

	// Failing reports whether the last flush failed, or hangs.
	Failing bool
}

// stats are the numbers that the goroutine of a store maintains.
type stats struct {
	keys atomic.Int64

	mu    sync.Mutex
	sizes map[string]int64 // guarded by mu; of files
	begun time.Time        // guarded by mu; of the last flush that succeeded
	load  time.Time        // guarded by mu; when loading began
	Stats                  // guarded by mu
}

func newStats() *stats {
	now := time.Now()
	return &stats{sizes: make(map[string]int64), begun: now, load: now, Stats: Stats{Loading: true}}
}

func (s *stats) fileMade(name string, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sizes[name] = size
}

func (s *stats) fileGone(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sizes, name)
}

func (s *stats) wrote(name string, size int64, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sizes[name] = size
	s.WrittenBytes += int64(n)
}

func (s *stats) compactionEnded(live int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Live = live
	s.Compactions++
}

func (s *stats) hangs() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Failing = true
}

func (s *stats) flushed(begun time.Time, err error) {
	took := time.Since(begun)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.FlushTime += took
	s.LongestFlush = max(s.LongestFlush, took)
	if s.Failing = err != nil; s.Failing {
		s.Failures++
		return
	}
	s.Flushes++
	s.begun = begun
}

func (s *stats) loadEnded(keys, damage, live int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Loading, s.Loaded, s.LoadTime, s.Damaged, s.Live = false, keys, time.Since(s.load), damage, live
	s.begun = time.Now()
}

// Stats returns the numbers of s.
func (s *Store) Stats() Stats {
	st := s.writer.stats
	st.mu.Lock()
	defer st.mu.Unlock()
	out := st.Stats
	for size := range maps.Values(st.sizes) {
		out.Bytes += size
	}
	out.Lag = time.Since(st.begun)
	if out.Loading {
		out.LoadTime, out.Lag = time.Since(st.load), 0
	}
	out.WrittenKeys = st.keys.Load()
	return out
}

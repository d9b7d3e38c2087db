package rate

import (
	"sync"
	"time"
)

// Sometimes runs a function on some of the calls of [Sometimes.Do], such as one that logs
// what happens too often to log all of it. The fields say on which. With several of them,
// the function runs on the calls of each. The zero value runs it on the first call only.
//
// The fields must not change after the first call of Do. A Sometimes is safe for concurrent
// use, and must not be copied.
type Sometimes struct {
	First    int           // runs on the first First calls
	Every    int           // runs on the first call, and on each Every-th call after it
	Interval time.Duration // runs if so much time has passed since the last run

	mu    sync.Mutex
	calls int       // those that returned; guarded by mu
	last  time.Time // when the function last ran, if there is an Interval; guarded by mu
}

// Do runs f if it is the first call, or if one of the fields says so. Concurrent calls wait
// for each other, so f should be short, and must not call Do.
func (s *Sometimes) Do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.due() {
		f()
		if s.Interval > 0 {
			s.last = time.Now()
		}
	}
	s.calls++
}

func (s *Sometimes) due() bool {
	return s.calls == 0 ||
		s.calls < s.First ||
		s.Every > 0 && s.calls%s.Every == 0 ||
		s.Interval > 0 && time.Since(s.last) >= s.Interval
}

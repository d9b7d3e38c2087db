package pgstore

import (
	"errors"
	"sync"
	"time"

	"github.com/weirhq/weir/store"
)

// Change is the start or the end of a time in which the server gets no calls: at the start Err
// says why, and at the end Err is nil. Lasted is how long it took, and Missed how many outages
// there were.
type Change struct {
	Addr   string
	Err    *store.OutageError
	Gone   bool // always false
	Lasted time.Duration
	Missed int64
}

// Node is the state of the server.
type Node struct {
	Addr          string
	Unavailable   bool  // it gets no calls, because there is no connection
	Interruptions int64 // how often that began
	InFlight      int64 // calls that wait for it

	// Outages is the number of calls that ended with each reason, since the store was opened. It
	// has all reasons, also those that did not occur.
	Outages map[store.Reason]int64
}

// link is what the lanes know of the server. It is safe for concurrent use.
type link struct {
	tried chan struct{} // closed when the first attempt to connect has ended

	mu            sync.Mutex
	attempted     bool                   // guarded by mu
	up            int                    // guarded by mu; lanes with a connection
	trouble       error                  // guarded by mu; of the last attempt
	since         time.Time              // guarded by mu; when the server became unavailable; zero: it is not
	interruptions int64                  // guarded by mu
	missed        int64                  // guarded by mu; outages since then
	outages       map[store.Reason]int64 // guarded by mu
}

// unavailable returns why there is no connection, or nil when there is one.
func (k *link) unavailable() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.up > 0:
		return nil
	case k.trouble != nil:
		return k.trouble
	}
	return errUnavailable
}

// refused returns the error of the last attempt to connect, if the server will refuse again.
func (k *link) refused() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.up > 0 {
		return nil
	}
	return refusal(k.trouble)
}

// count counts err, when it is not nil, and returns it.
func (k *link) count(err error) error {
	var out *store.OutageError
	if !errors.As(err, &out) {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.outages == nil {
		k.outages = map[store.Reason]int64{}
	}
	k.outages[out.Reason]++
	k.missed++
	return err
}

// connected counts a lane that has a connection now. It returns the change, if there was none.
func (k *link) connected() (c Change, changed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.end()
	if k.up++; k.since.IsZero() {
		return c, false
	}
	c = Change{Lasted: time.Since(k.since), Missed: k.missed}
	k.trouble, k.since = nil, time.Time{}
	return c, true
}

// lost counts a lane whose connection, or attempt to connect, ended with err. It reports whether
// none is left, and the change if that is new.
func (k *link) lost(err error, had bool) (c Change, none, changed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if had {
		k.up--
	}
	if k.up > 0 {
		return c, false, false
	}
	k.trouble = err
	k.end()
	if changed = k.since.IsZero(); changed {
		k.since, k.missed = time.Now(), 0
		k.interruptions++
		c = Change{Err: outage(err, true)}
	}
	return c, true, changed
}

// end ends the first attempt. It needs the lock.
func (k *link) end() {
	if !k.attempted {
		k.attempted = true
		close(k.tried)
	}
}

// changed reports a change.
func (s *Store) changed(c Change) {
	if s.config.Changed != nil {
		c.Addr = s.config.Servers()
		s.config.Changed(c)
	}
}

// Nodes returns the state of the server, as the only node.
func (s *Store) Nodes() []Node {
	k := &s.link
	inFlight := s.queue.waits()
	k.mu.Lock()
	defer k.mu.Unlock()
	n := Node{Addr: s.config.Servers(), Unavailable: k.up == 0, Interruptions: k.interruptions, InFlight: int64(inFlight), Outages: map[store.Reason]int64{}}
	for _, r := range allReasons {
		n.Outages[r] = k.outages[r]
	}
	return []Node{n}
}

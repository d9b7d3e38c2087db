package pgstore

import (
	"errors"
	"sync"

	"github.com/weirhq/weir/store/remote"
)

// Change is the start or the end of a time in which the server gets no calls.
type Change = remote.Change

// Node has the numbers of the server.
type Node = remote.Node

// Nodes returns the numbers of the server, as the only node.
func (s *Store) Nodes() []Node { return []Node{s.server.Node()} }

// link is what the lanes know of the server. It is safe for concurrent use.
type link struct {
	tried chan struct{} // closed when the first attempt to connect has ended

	mu        sync.Mutex
	attempted bool  // guarded by mu
	up        int   // guarded by mu; lanes with a connection
	trouble   error // guarded by mu; of the last attempt; nil: there was none
}

// errUnavailable is the error of calls before the first attempt to connect has ended.
var errUnavailable = errors.New("the server was not reached yet")

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

// connected counts a lane that has a connection now.
func (k *link) connected() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.up++
	k.trouble = nil
	k.end()
}

// lost counts a lane whose connection, or attempt to connect, ended with err. It reports whether
// none is left.
func (k *link) lost(err error, had bool) (none bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if had {
		k.up--
	}
	if k.up > 0 {
		return false
	}
	k.trouble = err
	k.end()
	return true
}

// end ends the first attempt. It needs the lock.
func (k *link) end() {
	if !k.attempted {
		k.attempted = true
		close(k.tried)
	}
}

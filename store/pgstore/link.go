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
	trouble   error // guarded by mu; of the last attempt to connect; nil: it has not failed, or there are connections
}

// errUnavailable is the error of calls before the first attempt to connect has ended.
var errUnavailable = errors.New("the server was not reached yet")

// unavailable returns why there is no connection, or nil when there is one, or an attempt to replace
// a lost one is under way.
func (k *link) unavailable() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.up == 0 && !k.attempted {
		return errUnavailable
	}
	return k.trouble
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

// lost counts a lane whose connection has ended, and that connects again.
func (k *link) lost() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.up--
}

// failed counts an attempt to connect that ended with err. It reports whether there is no connection.
func (k *link) failed(err error) (none bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
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

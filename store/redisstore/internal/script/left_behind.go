package script

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/weirhq/weir/store"
)

// leftBehind are keys of limits that neither hold nor ban, whose states have holds
// or a ban all the same: an earlier limit left them, or hits in the middle of a log
// were given back. Only the program for holds and bans reads these states. A step
// that meets one with another program is sent again; a step whose key is known runs
// the right program at once. The zero value is ready; it is safe for concurrent
// use.
type leftBehind struct {
	n    atomic.Int32
	mu   sync.Mutex
	keys map[uint64]struct{}
}

// mostLeftBehind is how many keys are known. When there are more, all are met
// again.
const mostLeftBehind = 1 << 14

var leftBehindSeed = maphash.MakeSeed()

func (l *leftBehind) any() bool { return l.n.Load() > 0 }

// hashOf returns a hash of op's key and space. Two keys with the same hash cost no
// more than time: the program for holds and bans reads all states.
func (l *leftBehind) hashOf(op *store.Op) uint64 {
	var h maphash.Hash
	h.SetSeed(leftBehindSeed)
	h.WriteString(op.Space.Namespace())
	h.WriteByte(0)
	h.WriteString(op.Space.ID())
	h.WriteByte(0)
	h.Write(op.Key)
	return h.Sum64()
}

func (l *leftBehind) has(op *store.Op) bool {
	h := l.hashOf(op)
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.keys[h]
	return ok
}

// set notes whether op's state has holds or a ban.
func (l *leftBehind) set(op *store.Op, is bool) {
	if !is && !l.any() {
		return
	}
	h := l.hashOf(op)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !is:
		delete(l.keys, h)
	case l.keys == nil || len(l.keys) >= mostLeftBehind:
		l.keys = map[uint64]struct{}{h: {}}
	default:
		l.keys[h] = struct{}{}
	}
	l.n.Store(int32(len(l.keys)))
}

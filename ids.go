package weir

import (
	"crypto/rand"

	"github.com/weirhq/weir/window"
)

// ids returns random ids. It reads many at once, because each read of random
// bytes costs as much as a take. Its zero value is ready for use.
type ids struct {
	bytes [32 * len(window.Hold{}.ID)]byte
	left  int // bytes that are not used
}

func (s *ids) next() (id [12]byte) {
	if s.left == 0 {
		_, _ = rand.Read(s.bytes[:]) // which never fails
		s.left = len(s.bytes)
	}
	used := s.bytes[s.left-len(id) : s.left]
	s.left -= copy(id[:], used)
	clear(used)
	return id
}

//go:build !linux

package measure

import "errors"

// Apart would give the server a core of its own.
func (s *Server) Apart() (together func(), err error) {
	return nil, errors.New("it needs Linux")
}

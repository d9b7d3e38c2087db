//go:build !linux

package measure

import "errors"

// Pause returns an error: only Linux pauses a server.
func (s *Server) Pause() error { return errors.New("only on Linux") }

package measure

import "golang.org/x/sys/unix"

// Pause stops the server without ending it. It accepts connections and answers nothing.
func (s *Server) Pause() error { return unix.Kill(s.PID(), unix.SIGSTOP) }

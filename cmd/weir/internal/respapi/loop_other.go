//go:build !linux

package respapi

// loop serves many connections on one goroutine. There is none on this system: each
// connection has a goroutine.
type loop struct{}

func openLoops(*Server) []*loop { return nil }

func (*loop) adopt(*conn) bool { return false }
func (*loop) stop()            {}

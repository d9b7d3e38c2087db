package redistest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// A process keeps its port when it is killed and restarted, so ports are below those that systems give
// to outgoing connections.
const lowestPort, highestPort = 15000, 32000

// given are the ports that this process has handed out.
var given struct {
	sync.Mutex
	ports map[int]bool // guarded by Mutex
}

// FreePort returns a port of the loopback without a listener.
func FreePort(t testing.TB) int {
	t.Helper()
	given.Lock()
	defer given.Unlock()
	for range 1000 {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		if given.ports[port] {
			continue
		}
		l, err := net.Listen("tcp", loopback(port))
		if err != nil {
			continue
		}
		l.Close()
		if given.ports == nil {
			given.ports = map[int]bool{}
		}
		given.ports[port] = true
		return port
	}
	t.Fatalf("found no free port between %d and %d", lowestPort, highestPort)
	return 0
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

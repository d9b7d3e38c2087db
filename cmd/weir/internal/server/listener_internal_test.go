package server

import (
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/config"
)

// A port below 1024 that the system refuses, and a socket in a directory of others, which has nothing to do with ports.
func TestRefusedListener(t *testing.T) {
	t.Parallel()
	denied := &net.OpError{Op: "listen", Err: &os.SyscallError{Syscall: "bind", Err: syscall.EACCES}}
	for scheme, want := range map[string]string{
		"http": "listen: listen: bind: permission denied; a port below 1024 needs root or the capability CAP_NET_BIND_SERVICE: choose another address with --listen",
		"unix": "listen: listen: bind: permission denied",
	} {
		if err := refused(config.Listener{Flag: "listen", Address: config.Address{Scheme: scheme}}, denied); err.Error() != want {
			t.Errorf("%s: got %v, want %s", scheme, err, want)
		}
	}
}

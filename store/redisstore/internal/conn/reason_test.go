package conn_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/conn"
	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/store/remote"
)

func TestReasons(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		want store.Reason
	}{
		{remote.ErrUnavailable, "circuit-open"},
		{context.DeadlineExceeded, "late"},
		{script.ErrStale, "late"},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, "late"},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, "refused"},
		{&tls.CertificateVerificationError{Err: errors.New("unknown authority")}, "refused"},
		{io.EOF, "closed"},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, "closed"},
		{script.ErrForeign, "foreign"},
		{&script.StateError{Key: "k"}, "foreign"},
		{&script.ServerError{Text: "READONLY You can't write against a read only replica."}, "read-only"},
		{errors.New("something else"), "unknown"},
	} {
		err := fmt.Errorf("127.0.0.1:6379: %w", test.err)
		if got := conn.ReasonOf(err); got != test.want {
			t.Errorf("%v: got %s, want %s", err, got, test.want)
		}
	}
}

// The servers' errors, by their first words.
func TestReasonsOfServers(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]store.Reason{
		"BUSY": "busy", "OOM": "full", "WRONGTYPE": "foreign",
		"LOADING": "loading", "TRYAGAIN": "moving", "MOVED": "moving", "READONLY": "read-only", "MISCONF": "read-only", "NOREPLICAS": "read-only", "NOAUTH": "refused",
		"ERR":                               "unknown",
		"ERR max number of clients reached": "refused",
		"ERR max number of clients + cluster connections reached":                           "refused",
		"ERR ACL failure in script: User weir has no permissions to run the 'zadd' command": "refused",
		"ERR The user executing the script can't run this command or subcommand script: …":  "refused",
	} {
		if got := conn.ReasonSaid(word); got != want {
			t.Errorf("%s: got %s, want %s", word, got, want)
		}
	}
}

package wire_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/store/redisstore/internal/wire"
)

func TestReasons(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		want store.Reason
	}{
		{wire.ErrUnavailable, store.ReasonCutOff},
		{context.DeadlineExceeded, store.ReasonLate},
		{script.ErrStale, store.ReasonLate},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, store.ReasonLate},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, store.ReasonRefused},
		{&tls.CertificateVerificationError{Err: errors.New("unknown authority")}, store.ReasonRefused},
		{io.EOF, store.ReasonClosed},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, store.ReasonClosed},
		{script.ErrForeign, store.ReasonForeign},
		{&script.StateError{Key: "k"}, store.ReasonForeign},
		{&script.ServerError{Text: "READONLY You can't write against a read only replica."}, store.ReasonReadOnly},
		{errors.New("something else"), store.ReasonUnknown},
	} {
		err := fmt.Errorf("127.0.0.1:6379: %w", test.err)
		if got := wire.ReasonOf(err); got != test.want {
			t.Errorf("%v: got %s, want %s", err, got, test.want)
		}
	}
}

// The servers' errors, by their first words.
func TestReasonsOfServers(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]store.Reason{
		"BUSY": store.ReasonBusy, "OOM": store.ReasonFull, "WRONGTYPE": store.ReasonForeign,
		"LOADING": store.ReasonLoading, "READONLY": store.ReasonReadOnly, "NOAUTH": store.ReasonRefused,
		"ERR":                               store.ReasonUnknown,
		"ERR max number of clients reached": store.ReasonRefused,
		"ERR max number of clients + cluster connections reached":                           store.ReasonRefused,
		"ERR ACL failure in script: User weir has no permissions to run the 'zadd' command": store.ReasonRefused,
		"ERR The user executing the script can't run this command or subcommand script: …":  store.ReasonRefused,
	} {
		if got := wire.ReasonSaid(word); got != want {
			t.Errorf("%s: got %s, want %s", word, got, want)
		}
	}
}

func TestTally(t *testing.T) {
	t.Parallel()
	var all wire.Tally
	for i, r := range store.Reasons() {
		for range i {
			all.Add(r)
		}
	}
	counts := all.Counts()
	for i, r := range store.Reasons() {
		if counts[r] != int64(i) {
			t.Errorf("%s: got %d, want %d", r, counts[r], i)
		}
	}
	if n := len(store.Reasons()); len(counts) != n-1 || all.Sum() != int64(n*(n-1)/2) {
		t.Errorf("got %v, in all %d", counts, all.Sum())
	}
	if !slices.Contains(store.Reasons(), store.ReasonUnknown) {
		t.Error("got no unknown reason")
	}
}

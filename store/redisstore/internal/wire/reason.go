package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/script"
)

// ReasonOf returns why a call ended with err, which is not nil.
func ReasonOf(err error) store.Reason {
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.reason
		}
	}
	var state *script.StateError
	var certificate *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	var mode *modeError
	var greeting *greetingError
	var network *net.OpError
	text, answered := said(err)
	switch {
	case errors.As(err, &state):
		return store.ReasonForeign
	case answered:
		return reasonSaid(text)
	case errors.As(err, &certificate), errors.As(err, &plain), errors.As(err, &mode), errors.As(err, &greeting):
		return store.ReasonRefused
	case errors.Is(err, os.ErrDeadlineExceeded):
		return store.ReasonLate
	case errors.As(err, &network):
		return store.ReasonClosed
	}
	return store.ReasonUnknown
}

// reasons are the reasons of errors that are values. A call can wrap several; the
// first one counts.
var reasons = []struct {
	err    error
	reason store.Reason
}{
	{ErrUnavailable, store.ReasonCutOff},
	{errNoNode, store.ReasonCutOff},
	{errBusy, store.ReasonBusy},
	{errReplicas, store.ReasonLate},
	{script.ErrStale, store.ReasonLate},
	{errTimeout, store.ReasonLate},
	{context.DeadlineExceeded, store.ReasonLate},
	{context.Canceled, store.ReasonLate}, // by the end of its decision
	{script.ErrForeign, store.ReasonForeign},
	{syscall.ECONNREFUSED, store.ReasonRefused},
	{syscall.ENOENT, store.ReasonRefused}, // a socket that no server has made
	{io.EOF, store.ReasonClosed},
	{io.ErrUnexpectedEOF, store.ReasonClosed},
	{net.ErrClosed, store.ReasonClosed},
	{errGone, store.ReasonClosed},
	{rueidis.ErrClosing, store.ReasonClosed},
}

// reasonSaid returns the reason of a server's error, by the first word of it, and
// for a right that a program lacks by what servers of several ages say of that.
func reasonSaid(text string) store.Reason {
	switch firstWord(text) {
	case "BUSY":
		return store.ReasonBusy
	case "OOM":
		return store.ReasonFull
	case "WRONGTYPE":
		return store.ReasonForeign
	case "LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK":
		return store.ReasonLoading
	case "READONLY", "MISCONF":
		return store.ReasonReadOnly
	case "NOAUTH", "WRONGPASS", "NOPERM", "DENIED", "NOSCRIPT":
		return store.ReasonRefused
	}
	if tooMany(text) || strings.Contains(text, "ACL failure in script") || strings.Contains(text, "user executing the script can't run") {
		return store.ReasonRefused
	}
	return store.ReasonUnknown
}

// tooMany reports whether a server says that it has too many clients, which it does to a
// new connection in place of an answer.
func tooMany(text string) bool { return strings.Contains(text, "max number of clients") }

// tally counts outages by reason. The zero value is ready; it is safe for
// concurrent use.
type tally [16]atomic.Int64

// add counts an outage.
func (t *tally) add(r store.Reason) {
	for i, known := range allReasons {
		if r == known {
			t[i].Add(1)
			return
		}
	}
}

// counts returns the reasons that have occurred, and how often.
func (t *tally) counts() map[store.Reason]int64 {
	all := map[store.Reason]int64{}
	for i, r := range allReasons {
		if n := t[i].Load(); n > 0 {
			all[r] = n
		}
	}
	return all
}

// sum returns the number of all outages.
func (t *tally) sum() (n int64) {
	for i := range allReasons {
		n += t[i].Load()
	}
	return n
}

var allReasons = store.Reasons()

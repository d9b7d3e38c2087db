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

// The reasons, which the documentation of redisstore explains.
const (
	reasonLate     store.Reason = "late"
	reasonRefused  store.Reason = "refused"
	reasonCutOff   store.Reason = "cut-off"
	reasonBusy     store.Reason = "busy"
	reasonFull     store.Reason = "full"
	reasonForeign  store.Reason = "foreign"
	reasonLoading  store.Reason = "loading"
	reasonReadOnly store.Reason = "read-only"
	reasonClosed   store.Reason = "closed"
	reasonUnknown  store.Reason = "unknown"
)

var allReasons = [...]store.Reason{
	reasonLate, reasonRefused, reasonCutOff, reasonBusy, reasonFull, reasonForeign,
	reasonLoading, reasonReadOnly, reasonClosed, reasonUnknown,
}

// Outage returns the outage of a call that ended with err, which is not nil.
func Outage(err error) *store.OutageError {
	out := &store.OutageError{Reason: ReasonOf(err), Err: err}
	switch out.Reason {
	case reasonCutOff, reasonBusy, reasonRefused, reasonLoading, reasonReadOnly, reasonFull:
		out.Uncounted = true
	}
	return out
}

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
		return reasonForeign
	case answered:
		return reasonSaid(text)
	case errors.As(err, &certificate), errors.As(err, &plain), errors.As(err, &mode), errors.As(err, &greeting):
		return reasonRefused
	case errors.Is(err, os.ErrDeadlineExceeded):
		return reasonLate
	case errors.As(err, &network):
		return reasonClosed
	}
	return reasonUnknown
}

// reasons are the reasons of errors that are values. A call can wrap several; the
// first one counts.
var reasons = []struct {
	err    error
	reason store.Reason
}{
	{ErrUnavailable, reasonCutOff},
	{errNoNode, reasonCutOff},
	{errBusy, reasonBusy},
	{errReplicas, reasonLate},
	{script.ErrStale, reasonLate},
	{errTimeout, reasonLate},
	{context.DeadlineExceeded, reasonLate},
	{context.Canceled, reasonLate}, // by the end of its decision
	{script.ErrForeign, reasonForeign},
	{syscall.ECONNREFUSED, reasonRefused},
	{syscall.ENOENT, reasonRefused}, // a socket that no server has made
	{io.EOF, reasonClosed},
	{io.ErrUnexpectedEOF, reasonClosed},
	{net.ErrClosed, reasonClosed},
	{errGone, reasonClosed},
	{rueidis.ErrClosing, reasonClosed},
}

// reasonSaid returns the reason of a server's error, by the first word of it, and
// for a right that a program lacks by what servers of several ages say of that.
func reasonSaid(text string) store.Reason {
	switch firstWord(text) {
	case "BUSY":
		return reasonBusy
	case "OOM":
		return reasonFull
	case "WRONGTYPE":
		return reasonForeign
	case "LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK":
		return reasonLoading
	case "READONLY", "MISCONF":
		return reasonReadOnly
	case "NOAUTH", "WRONGPASS", "NOPERM", "DENIED", "NOSCRIPT":
		return reasonRefused
	}
	if tooMany(text) || strings.Contains(text, "ACL failure in script") || strings.Contains(text, "user executing the script can't run") {
		return reasonRefused
	}
	return reasonUnknown
}

// tooMany reports whether a server says that it has too many clients, which it does to a
// new connection in place of an answer.
func tooMany(text string) bool { return strings.Contains(text, "max number of clients") }

// tally counts outages by reason. The zero value is ready; it is safe for
// concurrent use.
type tally [len(allReasons)]atomic.Int64

// add counts an outage.
func (t *tally) add(r store.Reason) {
	for i, known := range allReasons {
		if r == known {
			t[i].Add(1)
			return
		}
	}
}

// counts returns how often each reason has occurred.
func (t *tally) counts() map[store.Reason]int64 {
	all := make(map[store.Reason]int64, len(allReasons))
	for i, r := range allReasons {
		all[r] = t[i].Load()
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

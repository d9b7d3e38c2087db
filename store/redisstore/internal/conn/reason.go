package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/store/remote"
)

// Outage returns the outage of a call that ended with err, which is not nil.
func Outage(err error) *store.OutageError {
	out := &store.OutageError{Reason: ReasonOf(err), Err: err}
	switch out.Reason {
	case remote.CircuitOpen, remote.Busy, remote.Refused, remote.Loading, remote.Moving, remote.ReadOnly, remote.Full:
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
		return remote.Foreign
	case answered:
		return reasonSaid(text)
	case errors.As(err, &certificate), errors.As(err, &plain), errors.As(err, &mode), errors.As(err, &greeting):
		return remote.Refused
	case errors.Is(err, os.ErrDeadlineExceeded):
		return remote.Late
	case errors.As(err, &network):
		return remote.Closed
	}
	return remote.Unknown
}

// reasons are the reasons of errors that are values. A call can wrap several; the
// first one counts.
var reasons = []struct {
	err    error
	reason store.Reason
}{
	{remote.ErrUnavailable, remote.CircuitOpen},
	{errNoNode, remote.CircuitOpen},
	{remote.ErrBusy, remote.Busy},
	{errReplicas, remote.Unconfirmed},
	{script.ErrStale, remote.Late},
	{context.DeadlineExceeded, remote.Late},
	{context.Canceled, remote.Late}, // by the end of its decision
	{script.ErrForeign, remote.Foreign},
	{syscall.ECONNREFUSED, remote.Refused},
	{syscall.ENOENT, remote.Refused}, // a socket that no server has made
	{io.EOF, remote.Closed},
	{io.ErrUnexpectedEOF, remote.Closed},
	{net.ErrClosed, remote.Closed},
	{remote.ErrGone, remote.Closed},
	{rueidis.ErrClosing, remote.Closed},
}

// reasonSaid returns the reason of a server's error, by the first word of it, and
// for a right that a program lacks by what servers of several ages say of that.
func reasonSaid(text string) store.Reason {
	switch firstWord(text) {
	case "BUSY":
		return remote.Busy
	case "OOM":
		return remote.Full
	case "WRONGTYPE":
		return remote.Foreign
	case "LOADING", "MASTERDOWN", "CLUSTERDOWN":
		return remote.Loading
	case "TRYAGAIN", "MOVED", "ASK":
		return remote.Moving
	case "READONLY", "MISCONF", "NOREPLICAS":
		return remote.ReadOnly
	case "NOAUTH", "WRONGPASS", "NOPERM", "DENIED", "NOSCRIPT":
		return remote.Refused
	}
	if tooMany(text) || strings.Contains(text, "ACL failure in script") || strings.Contains(text, "user executing the script can't run") {
		return remote.Refused
	}
	return remote.Unknown
}

// tooMany reports whether a server says that it has too many clients, which it does to a
// new connection instead of an answer.
func tooMany(text string) bool { return strings.Contains(text, "max number of clients") }

// refusal returns err if a server refuses and will refuse again, or is not the
// right one, and nil for all other errors.
func refusal(err error) error {
	var certificate *tls.CertificateVerificationError
	var mode *modeError
	switch {
	case errors.As(err, &mode):
		return mode
	case errors.As(err, &certificate):
		return err
	}
	text, ok := said(err)
	if !ok || tooMany(text) {
		return nil
	}
	switch firstWord(text) {
	case "LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "READONLY", "MISCONF", "NOREPLICAS", "OOM", "TRYAGAIN":
		return nil
	}
	return err
}

// said returns the text of the error that a server has answered, and reports
// whether err is one: of the client's library, or of a call in a batch.
func said(err error) (text string, ok bool) {
	if err == nil {
		return "", false
	}
	var own *script.ServerError
	if errors.As(err, &own) {
		return own.Text, true
	}
	var library *rueidis.RedisError
	if errors.As(err, &library) {
		return library.Error(), true
	}
	return "", false
}

// wordOf returns the first word of the error that a server has answered, or nothing.
func wordOf(err error) string {
	text, _ := said(err)
	return firstWord(text)
}

func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

// answers reports whether a call that ended with err got an answer, or needs none.
func answers(err error) bool {
	if _, answered := said(err); answered || err == nil {
		return true
	}
	var state *script.StateError
	var off *script.CalendarError
	return errors.As(err, &state) || errors.As(err, &off) || errors.Is(err, errReplicas) || errors.Is(err, script.ErrStale) || errors.Is(err, script.ErrForeign) ||
		script.IsRefusal(err)
}

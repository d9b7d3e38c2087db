package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/script"
)

// The reasons, which the documentation of redisstore explains.
const (
	reasonLate        store.Reason = "late"
	reasonRefused     store.Reason = "refused"
	reasonCircuitOpen store.Reason = "circuit-open"
	reasonBusy        store.Reason = "busy"
	reasonFull        store.Reason = "full"
	reasonForeign     store.Reason = "foreign"
	reasonLoading     store.Reason = "loading"
	reasonMoving      store.Reason = "moving"
	reasonReadOnly    store.Reason = "read-only"
	reasonClosed      store.Reason = "closed"
	reasonUnknown     store.Reason = "unknown"
)

var allReasons = [...]store.Reason{
	reasonLate, reasonRefused, reasonCircuitOpen, reasonBusy, reasonFull, reasonForeign,
	reasonLoading, reasonMoving, reasonReadOnly, reasonClosed, reasonUnknown,
}

// Outage returns the outage of a call that ended with err, which is not nil.
func Outage(err error) *store.OutageError {
	out := &store.OutageError{Reason: ReasonOf(err), Err: err}
	switch out.Reason {
	case reasonCircuitOpen, reasonBusy, reasonRefused, reasonLoading, reasonMoving, reasonReadOnly, reasonFull:
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
	{ErrUnavailable, reasonCircuitOpen},
	{errNoNode, reasonCircuitOpen},
	{errBusy, reasonBusy},
	{errReplicas, reasonLate},
	{script.ErrStale, reasonLate},
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
	case "LOADING", "MASTERDOWN", "CLUSTERDOWN":
		return reasonLoading
	case "TRYAGAIN", "MOVED", "ASK":
		return reasonMoving
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
// new connection instead of an answer.
func tooMany(text string) bool { return strings.Contains(text, "max number of clients") }

// tally counts outages by reason. The zero value is ready; it is safe for
// concurrent use.
type tally struct {
	mu       sync.Mutex
	byReason map[store.Reason]int64 // guarded by mu
}

func (t *tally) add(r store.Reason) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byReason == nil {
		t.byReason = map[store.Reason]int64{}
	}
	t.byReason[r]++
}

// counts returns how often each reason has occurred, and the number of all outages.
func (t *tally) counts() (byReason map[store.Reason]int64, sum int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	byReason = map[store.Reason]int64{}
	for _, r := range allReasons {
		byReason[r] = t.byReason[r]
		sum += t.byReason[r]
	}
	return byReason, sum
}

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
	case "LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "READONLY", "MISCONF", "OOM", "TRYAGAIN":
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
	return errors.As(err, &state) || errors.Is(err, script.ErrStale) || errors.Is(err, script.ErrForeign) ||
		errors.Is(err, script.ErrCalendar) || errors.Is(err, store.ErrRepeated)
}

package pgstore

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/remote"
)

// errReadOnly is the error of an attempt to connect to a server that accepts no writes.
var errReadOnly = errors.New("the server accepts no writes")

// outage returns the outage of calls that ended with err, which is not nil. uncounted reports
// whether it is certain that they were not counted. An error of a statement means that, too, but not one
// that ends the connection: it may come after the commit.
func outage(err error, uncounted bool) *store.OutageError {
	var said *pgconn.PgError
	uncounted = uncounted || errors.As(err, &said) && said.SeverityUnlocalized == "ERROR"
	return &store.OutageError{Reason: reasonOf(err), Err: err, Uncounted: uncounted}
}

// reasonOf returns why a call ended with err, which is not nil.
func reasonOf(err error) store.Reason {
	var said *pgconn.PgError
	var connecting *pgconn.ConnectError
	var certificate *tls.CertificateVerificationError
	var network *net.OpError
	var state *stateError
	switch {
	case errors.As(err, &said):
		return reasonSaid(said)
	case errors.Is(err, remote.ErrBusy):
		return remote.Busy
	case errors.Is(err, errReadOnly):
		return remote.ReadOnly
	case errors.Is(err, remote.ErrUnavailable), errors.Is(err, errUnavailable):
		return remote.CircuitOpen
	case errors.As(err, &state), errors.Is(err, errVersion):
		return remote.Foreign
	case errors.As(err, &certificate), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		return remote.Refused
	case errors.Is(err, errTimeout), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, os.ErrDeadlineExceeded):
		return remote.Late
	case errors.As(err, &connecting):
		return remote.Refused
	case pgconn.SafeToRetry(err), errors.Is(err, pgconn.ErrConnClosed), errors.Is(err, remote.ErrGone), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.As(err, &network):
		return remote.Closed
	}
	return remote.Unknown
}

// reasonSaid returns the reason of a server's error, by its code:
// https://www.postgresql.org/docs/current/errcodes-appendix.html.
func reasonSaid(said *pgconn.PgError) store.Reason {
	switch said.Code {
	case "25006":
		return remote.ReadOnly
	case "53300", "55P03", "57014", "40001", "40P01":
		return remote.Busy // no more connections, locks, a cancelled or repeatable transaction
	case "57P01", "57P02", "57P03", "57P05":
		return remote.Loading // the server, or an operator, ends the connection
	case "25P03", "25P04":
		return remote.Closed // the transaction was idle, or took too long
	}
	switch class(said) {
	case "28", "3D", "42", "3F", "0A", "0L", "0P":
		return remote.Refused
	case "53", "54", "58":
		return remote.Full
	case "08":
		return remote.Closed
	}
	return remote.Unknown
}

// class returns the class of a server's error.
func class(said *pgconn.PgError) string { return said.Code[:min(2, len(said.Code))] }

// refusal returns err if a server refuses and will refuse again, and nil for all other errors.
func refusal(err error) error {
	var said *pgconn.PgError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate), errors.Is(err, errVersion):
		return err
	case errors.As(err, &said) && said.Code != "25006" && reasonSaid(said) == remote.Refused:
		return err
	}
	return nil
}

// refusesSettings reports whether a proxy refuses the settings of a session.
func refusesSettings(err error) bool {
	var said *pgconn.PgError
	return errors.As(err, &said) && class(said) == "08" && strings.Contains(said.Message, "startup parameter")
}

// lostStatement reports whether the server does not have a statement that was prepared on the
// connection, or has another one of its name: a proxy changes servers between transactions.
func lostStatement(err error) bool {
	var said *pgconn.PgError
	return errors.As(err, &said) && (said.Code == "26000" || said.Code == "42P05")
}

// noTable reports whether a table is missing.
func noTable(err error) bool {
	var said *pgconn.PgError
	return errors.As(err, &said) && said.Code == "42P01"
}

// answers reports whether a call that ended with err got an answer of the server.
func answers(err error) bool {
	var said *pgconn.PgError
	return err == nil || errors.As(err, &said)
}

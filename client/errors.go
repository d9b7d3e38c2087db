package client

import (
	"context"
	"errors"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/store"
)

// Error is the error of a call that was not decided, or whose answer did not arrive.
// For wrong input, a Client returns a [*fault.Fault] instead, as a [weir.Engine] does.
//
// An Error wraps the error that an engine returns in the same case, if there is one:
// [weir.ErrUnknownRule], [weir.ErrClosed], [context.Canceled],
// [context.DeadlineExceeded] or a [*store.OutageError]. Code and Reason tell other
// errors apart.
type Error struct {
	// Reason is the reason in the service's ErrorInfo, or empty.
	Reason string

	// RetryAfter is how long the service asks to wait before the next call, or 0.
	RetryAfter time.Duration

	code      codes.Code
	uncounted bool   // it is certain that nothing was counted
	call      string // such as take
	detail    string // what is wrong
	err       error  // that it wraps, or nil
}

// Error returns the call and the detail.
func (e *Error) Error() string {
	if e.err != nil && e.Reason != "" { // the text of the engine
		return "weir: " + e.detail
	}
	return "weir: " + e.call + ": " + e.detail
}

// Unwrap returns the error that an engine returns in the same case, or nil.
func (e *Error) Unwrap() error { return e.err }

// GRPCStatus returns e as a status of gRPC, without details.
func (e *Error) GRPCStatus() *status.Status { return status.New(e.code, e.detail) }

// Uncounted reports whether it is certain that the call with the error err counted
// nothing. Otherwise it may have counted. err must be an error of a [Client]. The call may then be made again, after
// the RetryAfter of an [*Error]. Uncounted also returns true for wrong input, with
// which another call would fail again.
func Uncounted(err error) bool {
	var e *Error
	if errors.As(err, &e) {
		return e.uncounted
	}
	var f *fault.Fault
	return errors.As(err, &f)
}

// closed returns the error of a call of a client that is closed.
func closed(call string) error {
	return &Error{call: call, code: codes.Canceled, detail: "the client is closed", err: weir.ErrClosed}
}

// contextError returns the error of a call whose context ended. unsent reports whether the
// call was never sent.
func contextError(call string, err error, unsent bool) error {
	code := codes.Canceled
	if errors.Is(err, context.DeadlineExceeded) {
		code = codes.DeadlineExceeded
	}
	return &Error{call: call, code: code, detail: err.Error(), uncounted: unsent, err: err}
}

// errLarge marks the error of a service whose answer would be too large.
var errLarge = errors.New("the answer would be too large")

// errorDomain is the domain of the reasons of a service, in the detail ErrorInfo of a status.
const errorDomain = "weir"

// sentinels has the error of an engine for each reason of a service.
var sentinels = map[string]error{
	weirv1.ErrorReason_UNKNOWN_RULE.String(): weir.ErrUnknownRule,
	weirv1.ErrorReason_TOO_LARGE.String():    errLarge,
	weirv1.ErrorReason_CLOSED.String():       weir.ErrClosed,

	weirv1.ErrorReason_IDEMPOTENCY_CONFLICT.String(): store.ErrConflict,
}

// errorOf returns err, that of a call of gRPC. unsent reports whether nothing was sent.
func errorOf(call string, err error, unsent bool) error {
	s := status.Convert(err)
	p := &weirv1.Problem{Code: int32(s.Code()), Detail: s.Message()} //nolint:gosec // codes are small
	for _, detail := range s.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			if d.GetDomain() == errorDomain {
				p.Reason = d.GetReason()
			}
		case *errdetails.BadRequest:
			for _, v := range d.GetFieldViolations() {
				p.Field, p.Detail = v.GetField(), v.GetDescription()
			}
		case *errdetails.RetryInfo:
			p.RetryAfter = d.GetRetryDelay()
		}
	}
	return problemError(call, p, unsent)
}

// problemError returns the error of a problem in a status, or in an answer of a batch or a stream. A
// problem with a reason was refused by the service itself, which has counted nothing then.
func problemError(call string, p *weirv1.Problem, unsent bool) error {
	if p.Reason == weirv1.ErrorReason_INVALID.String() {
		return &fault.Fault{Path: p.Field, Problem: p.Detail}
	}
	e := &Error{
		call: call, code: codes.Code(p.Code), detail: p.Detail, Reason: p.Reason, RetryAfter: durationOf(p.RetryAfter), //nolint:gosec // codes are small
		uncounted: unsent || p.Reason != "" && p.Reason != weirv1.ErrorReason_OUTAGE.String(),
		err:       sentinels[p.Reason],
	}
	switch {
	case p.Reason == weirv1.ErrorReason_OUTAGE.String():
		e.err = &store.OutageError{Err: errors.New(p.Detail), RetryAfter: e.RetryAfter, Uncounted: e.uncounted}
	case e.err != nil:
	case e.code == codes.Canceled:
		e.err = context.Canceled
	case e.code == codes.DeadlineExceeded:
		e.err = context.DeadlineExceeded
	}
	return e
}

package grpcserver

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/once"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/store"
)

// errorDomain is the domain of the reasons, in the detail ErrorInfo of a status.
const errorDomain = "weir"

// code is the table of codes: the one of each HTTP status that
// [answer.ProblemOf] gives an error. Any other is Internal.
var code = map[int]codes.Code{
	http.StatusBadRequest:            codes.InvalidArgument,
	http.StatusUnauthorized:          codes.Unauthenticated,
	http.StatusForbidden:             codes.PermissionDenied,
	http.StatusNotFound:              codes.NotFound,
	http.StatusConflict:              codes.FailedPrecondition,
	http.StatusRequestTimeout:        codes.DeadlineExceeded,
	http.StatusRequestEntityTooLarge: codes.ResourceExhausted,
	http.StatusTooManyRequests:       codes.ResourceExhausted,
	http.StatusServiceUnavailable:    codes.Unavailable,
}

// ErrStopping ends long calls when the server shuts down. Requests that such a call has not answered were
// not counted.
var ErrStopping = errors.New("the service is stopping; what it has not answered was not counted")

// errIdle ends streams of health and reflection beyond the limit.
var errIdle = errors.New("too many open streams of health and reflection")

// reasons is the table of reasons, by which programs distinguish errors with the same code. The last row
// that matches counts.
var reasons = []struct {
	err    error
	reason string
}{
	{weir.ErrUnknownRule, weirv1.ErrorReason_UNKNOWN_RULE.String()},
	{run.ErrLarge, weirv1.ErrorReason_TOO_LARGE.String()},
	{namespace.ErrUnknown, weirv1.ErrorReason_UNKNOWN_NAMESPACE.String()},
	{namespace.ErrNoRules, weirv1.ErrorReason_NO_RULES.String()},
	{store.ErrConflict, weirv1.ErrorReason_IDEMPOTENCY_CONFLICT.String()},
	{once.ErrFull, weirv1.ErrorReason_IDEMPOTENCY_FULL.String()},
	{store.ErrClosed, weirv1.ErrorReason_CLOSED.String()},
	{ErrStopping, weirv1.ErrorReason_STOPPING.String()},
}

// Failure is an error as gRPC reports it.
type Failure struct {
	Code   codes.Code
	Detail string

	// Field is the field of the request that is wrong, or empty.
	Field string

	// Reason is one of those of package weirv1, or empty.
	Reason string

	// Quota is the limit that was exceeded, or empty: a resource limit of the service, the tokens
	// that an address may try, or the size of an answer.
	Quota string

	// RetryAfter is the wait before the next call, or 0.
	RetryAfter time.Duration
}

// FailureOf returns err, which is not a status and not nil, as a Failure. The code
// follows from [answer.ProblemOf], so that calls over gRPC and over HTTP fail in the same way; a call that
// its caller gave up is Canceled or DeadlineExceeded. The code is never Unknown.
func FailureOf(err error) Failure {
	switch {
	case errors.Is(err, context.Canceled):
		return Failure{Code: codes.Canceled, Detail: err.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return Failure{Code: codes.DeadlineExceeded, Detail: err.Error()}
	case errors.Is(err, errIdle):
		return Failure{
			Code: codes.ResourceExhausted, Detail: err.Error(), Quota: "service", RetryAfter: access.OverloadRetry,
			Reason: weirv1.ErrorReason_OVERLOAD.String(),
		}
	case errors.Is(err, ErrStopping):
		return Failure{Code: codes.Unavailable, Detail: err.Error(), Reason: weirv1.ErrorReason_STOPPING.String()}
	}
	p := answer.ProblemOf(err)
	f := Failure{Code: codes.Internal, Detail: p.Detail, Field: p.Field, RetryAfter: p.RetryAfter}
	if c, ok := code[p.Status]; ok {
		f.Code = c
	}
	for _, row := range reasons {
		if errors.Is(err, row.err) {
			f.Reason = row.reason
		}
	}
	var busy *access.Overload
	var no *access.Refusal
	var out *store.OutageError
	var bad *fault.Fault
	switch {
	case errors.As(err, &busy):
		f.Reason, f.Quota = weirv1.ErrorReason_OVERLOAD.String(), "service"
	case errors.As(err, &no):
		f.Reason = "ACCESS_" + strings.ToUpper(string(no.Reason))
		if no.Reason == access.Slowed {
			f.Quota = "tokens"
		}
	case errors.As(err, &bad):
		f.Reason = weirv1.ErrorReason_INVALID.String()
	case errors.As(err, &out) && f.Reason == "":
		f.Reason, f.RetryAfter = weirv1.ErrorReason_OUTAGE.String(), out.RetryAfter
	}
	if f.Reason == weirv1.ErrorReason_TOO_LARGE.String() {
		f.Quota = "answer"
	}
	return f
}

// Status returns f as a status with details: an ErrorInfo with the reason, a
// BadRequest for input that is wrong, a QuotaFailure for what was exceeded, and a
// RetryInfo with the wait.
func (f *Failure) Status() *status.Status {
	text := f.Detail
	if f.Field != "" {
		text = f.Field + ": " + f.Detail
	}
	var details []protoadapt.MessageV1
	if f.Reason != "" {
		details = append(details, &errdetails.ErrorInfo{Reason: f.Reason, Domain: errorDomain})
	}
	if f.Reason == weirv1.ErrorReason_INVALID.String() {
		details = append(details, &errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: f.Field, Description: f.Detail}}})
	}
	if f.Quota != "" {
		details = append(details, &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{Subject: f.Quota, Description: f.Detail}}})
	}
	if f.RetryAfter > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(f.RetryAfter)})
	}
	s := status.New(f.Code, text)
	if full, err := s.WithDetails(details...); err == nil {
		s = full
	}
	return s
}

// Error returns err as a gRPC status. A status stays as it is, and so does nil; see
// [FailureOf] for others.
func Error(err error) error {
	if err == nil {
		return nil
	}
	if s, ok := status.FromError(err); ok {
		return s.Err()
	}
	f := FailureOf(err)
	return f.Status().Err()
}

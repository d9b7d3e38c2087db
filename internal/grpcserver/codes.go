package grpcserver

import (
	"context"
	"errors"
	"net/http"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weirhq/weir/internal/answer"
)

// code is the table of codes: the one of each HTTP status that
// [answer.ProblemOf] gives an error. Any other is Internal.
var code = map[int]codes.Code{
	http.StatusBadRequest:            codes.InvalidArgument,
	http.StatusUnauthorized:          codes.Unauthenticated,
	http.StatusForbidden:             codes.PermissionDenied,
	http.StatusNotFound:              codes.NotFound,
	http.StatusRequestTimeout:        codes.DeadlineExceeded,
	http.StatusRequestEntityTooLarge: codes.ResourceExhausted,
	http.StatusTooManyRequests:       codes.ResourceExhausted,
	http.StatusServiceUnavailable:    codes.Unavailable,
}

// Error returns err as a gRPC status. A status stays as it is, and so does nil.
// Otherwise the code follows from [answer.ProblemOf], so that a call over gRPC and
// one over HTTP fail alike; a call that its caller gave up is Canceled or
// DeadlineExceeded. A wait before the next call is a detail of type RetryInfo.
// The code is never Unknown.
func Error(err error) error {
	if err == nil {
		return nil
	}
	if s, ok := status.FromError(err); ok {
		return s.Err()
	}
	switch {
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, err.Error())
	}
	p := answer.ProblemOf(err)
	c, ok := code[p.Status]
	if !ok {
		c = codes.Internal
	}
	s := status.New(c, p.Error())
	if p.RetryAfter > 0 {
		s = withRetry(s, p.RetryAfter)
	}
	return s.Err()
}

// withRetry returns s with a wait.
func withRetry(s *status.Status, wait time.Duration) *status.Status {
	if with, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(wait)}); err == nil {
		return with
	}
	return s
}

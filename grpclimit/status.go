package grpclimit

import (
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weirhq/weir/guard"
)

// denied returns the error of a call that is denied; see [Options].
func denied(c *guard.Call) error {
	p := c.Problem()
	code, message := codes.ResourceExhausted, p.Detail
	if c.Limits.Degraded != "" && len(c.Limits.Policies) == 0 {
		code = codes.Unavailable
	}
	failure := &errdetails.QuotaFailure{}
	for _, name := range p.Policies {
		failure.Violations = append(failure.Violations, &errdetails.QuotaFailure_Violation{Subject: name, Description: "the limit " + name + " is exceeded"})
	}
	var details []protoadapt.MessageV1
	if c.Limits.RetryAfter > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(c.Limits.RetryAfter)})
	}
	if len(failure.Violations) > 0 {
		details = append(details, failure)
	}
	s := status.New(code, message)
	if full, err := s.WithDetails(details...); err == nil {
		s = full
	}
	return s.Err()
}

// undecided returns the error of a call that could not be decided; see [Options].
func undecided(err error) error {
	p := guard.ProblemOf(err)
	if p.Status == 400 {
		return status.Error(codes.InvalidArgument, p.Detail)
	}
	return status.Error(codes.Unavailable, p.Detail)
}

// Wait returns the wait that an error of a server states, in a RetryInfo. It reports
// false if there is none.
func Wait(err error) (wait time.Duration, ok bool) {
	s, ok := status.FromError(err)
	if !ok {
		return 0, false
	}
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok && info.RetryDelay.IsValid() {
			return info.RetryDelay.AsDuration(), true
		}
	}
	return 0, false
}

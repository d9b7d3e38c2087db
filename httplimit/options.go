package httplimit

import (
	"net/http"

	"github.com/weirhq/weir/guard"
	"github.com/weirhq/weir/headers"
)

// Option is an option of [Keys] and [Rules].
type Option func(*options)

type options struct {
	guard  guard.Options[*http.Request]
	denied func(http.ResponseWriter, *http.Request, *guard.Call)
	failed func(http.ResponseWriter, *http.Request, error)
}

func apply(list []Option) *options {
	o := &options{denied: answerDenied, failed: answerFailed}
	for _, option := range list {
		if option != nil {
			option(o)
		}
	}
	return o
}

// Name sets the name of the limit in headers and denials. [Rules] ignores it, because
// rules have names. Default: the name of the limiter, or "requests".
func Name(name string) Option { return func(o *options) { o.guard.Name = name } }

// Headers sets how answers state the limits. Default: the dialect [headers.Draft]
// without jitter.
func Headers(f headers.Format) Option { return func(o *options) { o.guard.Headers = f } }

// Cost sets the hits of a request. 0 means 1. Default: 1 hit.
func Cost(hits func(r *http.Request) int64) Option { return func(o *options) { o.guard.Cost = hits } }

// OnDenied sets the function that answers a request that is denied. The header already states the
// limits. The call is valid until answer returns. Default: the status and the body of
// the outcome that the rules define, otherwise 429 and a problem, or 503 if an outage
// policy denied.
func OnDenied(answer func(w http.ResponseWriter, r *http.Request, c *guard.Call)) Option {
	return func(o *options) {
		if answer != nil {
			o.denied = answer
		}
	}
}

// OnError sets the function that answers a request that could not be decided, with
// [guard.ErrNoKey], one about an empty attribute or an error of the limiter, the
// engine or the client. [guard.Middleware.Take] states whether the request may have counted. Default: the
// problem of [guard.ProblemOf].
//
// Clients can cause errors, for example with an empty key or a value that a rule cannot add up. A
// function that lets requests pass while the limiter fails must refuse those: [guard.ProblemOf] gives
// them the status 400.
func OnError(answer func(w http.ResponseWriter, r *http.Request, err error)) Option {
	return func(o *options) {
		if answer != nil {
			o.failed = answer
		}
	}
}

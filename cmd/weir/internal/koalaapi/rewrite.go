package koalaapi

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
)

// RulesError is an error in the text of a rule file.
type RulesError struct{ Err error }

func (e *RulesError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the rule file's reader.
func (e *RulesError) Unwrap() error { return e.Err }

// maxRules is the maximum size of the form that rewrite accepts, in bytes: about ten thousand
// rules.
const maxRules = 8 << 20

// refused answers a caller that an authenticator refuses, or that names an unknown namespace.
func refused(x *exchange, h http.Header, err error) reply {
	var no *access.Refusal
	if !errors.As(err, &no) {
		return reply{answer.ProblemOf(err).Status, problem(x.out, `{"errno": -3, "errmsg": `, err.Error())}
	}
	if no.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((no.RetryAfter+time.Second-1)/time.Second), 10))
		return reply{http.StatusTooManyRequests, problem(x.out, `{"errno": -3, "errmsg": `, no.Detail)}
	}
	if no.Reason == access.Missing || no.Reason == access.Unknown {
		return reply{http.StatusForbidden, []byte(`{"errno": -3, "errmsg": "wrong token"}`)}
	}
	return reply{http.StatusForbidden, problem(x.out, `{"errno": -3, "errmsg": `, no.Detail)}
}

// rewrite puts the rule file in the form value `rule_stream` in force. The
// caller has shown a token as `Authorization: Bearer TOKEN`, because queries
// appear in logs.
func (a *API) rewrite(x *exchange, r *http.Request) reply {
	form, err := io.ReadAll(io.LimitReader(r.Body, maxRules+1))
	if err != nil || len(form) > maxRules {
		return reply{http.StatusBadRequest, []byte(`{"errno": -1, "errmsg": "rule stream breaks off, or is longer than 8 MiB"}`)}
	}
	x.read(string(form))
	text := x.parameter("rule_stream")
	if text == "" {
		return reply{http.StatusBadRequest, []byte(`{"errno": -1, "errmsg": "no rule stream"}`)}
	}
	err = a.config.Rewrite([]byte(text))
	var wrong *RulesError
	switch {
	case err == nil:
		return reply{body: []byte(`{"errno": 0, "errmsg": "rule rewrite success!"}`)}
	case errors.As(err, &wrong):
		return reply{http.StatusBadRequest, problem(x.out, `{"errno": -2, "errmsg": `, "rule format error! ;"+err.Error())}
	}
	return reply{http.StatusInternalServerError, problem(x.out, `{"errno": -4, "errmsg": `, err.Error())}
}

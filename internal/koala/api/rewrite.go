package api

import (
	"crypto/subtle"
	"errors"
	"io"
	"net/http"
	"strings"
)

// RulesError is an error in the text of a rule file.
type RulesError struct{ Err error }

func (e *RulesError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the rule file's reader.
func (e *RulesError) Unwrap() error { return e.Err }

// maxRules is the longest form, in bytes, that rewrite accepts. It holds about
// ten thousand rules.
const maxRules = 8 << 20

// rewrite puts the rule file in the form value `rule_stream` in force. The
// caller sends the token as `Authorization: Bearer TOKEN`, because queries
// appear in logs.
func (a *API) rewrite(x *exchange, r *http.Request) reply {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || subtle.ConstantTimeCompare([]byte(token), []byte(a.config.Token)) != 1 {
		return reply{http.StatusForbidden, []byte(`{"errno": -3, "errmsg": "wrong token"}`)}
	}
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

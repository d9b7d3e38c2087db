package answer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/overrides"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/export"
	"github.com/weirhq/weir/internal/jsontext"
	"github.com/weirhq/weir/internal/once"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/store"
)

// Problem is an answer that states why there is no decision, as RFC 9457
// defines it. A request that is answered with a Problem was not counted.
type Problem struct {
	// Status is the HTTP status.
	Status int

	// Detail states what is wrong with Field, and what is expected instead. In
	// JSON it starts with the field.
	Detail string

	// Field is the part of the request that is wrong, such as attributes.user.
	// Place is its position in the body, as line:column. Both may be empty.
	Field string
	Place string

	// Errors are the errors in a rules file, one line each.
	Errors []string

	// Allow lists the methods that a path takes, for the header of this name.
	Allow string

	// RetryAfter is how long to wait before the request is sent again, for the
	// header of this name. 0: no header.
	RetryAfter time.Duration
}

// Error returns the field and the detail.
func (p *Problem) Error() string {
	if p.Field == "" {
		return p.Detail
	}
	return p.Field + ": " + p.Detail
}

// Write writes p as the answer to a request.
func (p *Problem) Write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	if p.Allow != "" {
		h.Set("Allow", p.Allow)
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	if p.RetryAfter > 0 {
		// Rounded up, so that a client does not return too early.
		h.Set("Retry-After", strconv.FormatInt(int64((p.RetryAfter+time.Second-1)/time.Second), 10))
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(p.Append(nil), '\n')) // the caller has gone if this fails
}

// Append appends p as a JSON object.
func (p *Problem) Append(b []byte) []byte {
	b = jsontext.AppendText(append(b, `{"type":"about:blank","title":`...), http.StatusText(p.Status))
	b = fmt.Appendf(b, `,"status":%d`, p.Status)
	b = jsontext.AppendText(append(b, `,"detail":`...), p.Error())
	if p.Field != "" {
		b = jsontext.AppendText(append(b, `,"field":`...), p.Field)
	}
	if p.Place != "" {
		b = jsontext.AppendText(append(b, `,"place":`...), p.Place)
	}
	if p.Errors != nil {
		b = jsontext.AppendTexts(append(b, `,"errors":`...), p.Errors)
	}
	return append(b, '}')
}

// statuses maps errors to status codes. If several match, the last one counts. Any other error is an
// internal server error.
var statuses = []struct {
	err    error
	status int
}{
	{weir.ErrUnknownRule, http.StatusNotFound},
	{export.ErrNotKept, http.StatusConflict},
	{export.ErrNoList, http.StatusConflict},
	{export.ErrNoLevel, http.StatusConflict},
	{store.ErrMoved, http.StatusConflict},
	{run.ErrLarge, http.StatusRequestEntityTooLarge},
	{overrides.ErrMeets, http.StatusConflict},
	{overrides.ErrFull, http.StatusConflict},
	{namespace.ErrUnknown, http.StatusNotFound},
	{namespace.ErrNoRules, http.StatusServiceUnavailable},
	{store.ErrClosed, http.StatusServiceUnavailable},
	{store.ErrConflict, http.StatusConflict},
	{once.ErrFull, http.StatusTooManyRequests},
	{context.Canceled, http.StatusServiceUnavailable},
	{context.DeadlineExceeded, http.StatusServiceUnavailable},
}

// roomAfter is how long to wait after [once.ErrFull]: answers under idempotency keys end by the minute.
const roomAfter = time.Minute

// refusals maps the reasons of [access.Refusal] to status codes.
var refusals = map[access.Reason]int{
	access.Missing:   http.StatusUnauthorized,
	access.Unknown:   http.StatusUnauthorized,
	access.Slowed:    http.StatusTooManyRequests,
	access.NoScope:   http.StatusForbidden,
	access.Elsewhere: http.StatusForbidden,
	access.Host:      http.StatusForbidden,
	access.Origin:    http.StatusForbidden,
}

// ProblemOf returns the answer to a request that ended in err: the [Problem] that err wraps, 401,
// 403 or 429 for an [access.Refusal], 400 for a [fault.Fault], 413 for [run.ErrLarge], 503 for an
// [access.Overload], an outage of the store or a cancelled request, 404 for an unknown rule or
// namespace, 409 for an override that cannot be set, an idempotency key of another request or an export that cannot go on, 429 for more keys
// than are kept, and otherwise 500.
func ProblemOf(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	var no *access.Refusal
	if errors.As(err, &no) {
		return &Problem{Status: refusals[no.Reason], Detail: no.Detail, RetryAfter: no.RetryAfter}
	}
	var busy *access.Overload
	if errors.As(err, &busy) {
		return &Problem{Status: http.StatusServiceUnavailable, Detail: busy.Detail, RetryAfter: access.OverloadRetry}
	}
	var f *fault.Fault
	if errors.As(err, &f) {
		return &Problem{Status: http.StatusBadRequest, Field: f.Path, Detail: f.Problem, Place: f.Place.String()}
	}
	status := http.StatusInternalServerError
	var out *store.OutageError
	wait := time.Duration(0)
	if errors.As(err, &out) {
		status, wait = http.StatusServiceUnavailable, out.RetryAfter
	}
	for _, row := range statuses {
		if errors.Is(err, row.err) {
			status = row.status
		}
	}
	p = &Problem{Status: status, Detail: strings.TrimPrefix(err.Error(), "weir: "), RetryAfter: wait}
	if status == http.StatusTooManyRequests {
		p.RetryAfter = roomAfter
	}
	return p
}

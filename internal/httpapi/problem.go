package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/store"
)

// Problem is an answer that says why there is no decision, as RFC 9457 writes
// it. Nothing was counted for a request that is answered with one.
type Problem struct {
	// Status is the HTTP status; Detail says what is wrong with Field, and
	// what was expected. The answer's detail names the field first.
	Status int
	Detail string

	// Field is the part of the request that is wrong, such as
	// attributes.user; Place is where it stands, as line:column. Both may be
	// empty.
	Field string
	Place string

	// Type is a URI that names the kind of problem; empty means about:blank.
	Type string

	// Policies are the rules that were over, where that is the problem.
	Policies []string

	// Faults are what is wrong with a rules file, one each.
	Faults []string

	// Allow are the methods that a path takes, where another one was used.
	Allow string
}

func (p *Problem) Error() string {
	if p.Field == "" {
		return p.Detail
	}
	return p.Field + ": " + p.Detail
}

// Write answers with p.
func (p *Problem) Write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	if p.Allow != "" {
		h.Set("Allow", p.Allow)
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(p.append(nil), '\n')) // the caller has gone if this fails
}

func (p *Problem) append(b []byte) []byte {
	kind := p.Type
	if kind == "" {
		kind = "about:blank"
	}
	b = appendText(append(b, `{"type":`...), kind)
	b = appendText(append(b, `,"title":`...), http.StatusText(p.Status))
	b = fmt.Appendf(b, `,"status":%d`, p.Status)
	b = appendText(append(b, `,"detail":`...), p.Error())
	if p.Field != "" {
		b = appendText(append(b, `,"field":`...), p.Field)
	}
	if p.Place != "" {
		b = appendText(append(b, `,"place":`...), p.Place)
	}
	if p.Policies != nil {
		b = appendTexts(append(b, `,"violated-policies":`...), p.Policies)
	}
	if p.Faults != nil {
		b = appendTexts(append(b, `,"faults":`...), p.Faults)
	}
	return append(b, '}')
}

// statuses is the one table from errors to status codes. What is not in it is
// a fault of the service.
var statuses = []struct {
	err    error
	status int
}{
	{weir.ErrUnknownRule, http.StatusNotFound},
	{store.ErrClosed, http.StatusServiceUnavailable},
	{context.Canceled, http.StatusServiceUnavailable},
	{context.DeadlineExceeded, http.StatusServiceUnavailable},
}

// problemOf is err as an answer.
func problemOf(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	var f *fault.Fault
	if errors.As(err, &f) {
		return &Problem{Status: http.StatusBadRequest, Field: f.Path, Detail: f.Problem, Place: f.Place.String()}
	}
	status := http.StatusInternalServerError
	var out *store.OutageError
	if errors.As(err, &out) {
		status = http.StatusServiceUnavailable
	}
	for _, row := range statuses {
		if errors.Is(err, row.err) {
			status = row.status
		}
	}
	return &Problem{Status: status, Detail: strings.TrimPrefix(err.Error(), "weir: ")}
}

package koalaapi

import (
	"errors"
	"net/http"

	"github.com/weirhq/weir/cmd/weir/internal/koalafile"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/store"
)

// browse decides whether an action may happen. With `_writeThrough=yes` it also
// counts the action, in the same step, if the action may happen.
func (a *API) browse(x *exchange, _ *http.Request) reply {
	d := &x.item[0].Decision
	if err := a.ask(x, verbOf(x)); err != nil {
		return reply{statusOf(err), oneRow(x.out[:0], failure(-1, err.Error()))}
	}
	r, _ := answerTo(d)
	return reply{body: r.appendTo(x.out[:0])}
}

func verbOf(x *exchange) store.Verb {
	if x.parameter("_writeThrough") == "yes" {
		return store.Take
	}
	return store.Check
}

// complete answers with the row of every rule that is over its limit, not only
// the first.
func (a *API) complete(x *exchange, _ *http.Request) reply {
	d := &x.item[0].Decision
	if err := a.ask(x, verbOf(x)); err != nil {
		return reply{statusOf(err), listOfRows(x.out[:0], failure(-1, err.Error()))}
	}
	out, told := append(x.out[:0], '['), d.Rule == ""
	for _, i := range over(d) {
		out = append(rowOfRule(d.Rules, i).appendTo(out), ',')
		told = told || d.Rules.Rule(i).Name == d.Rule
	}
	switch {
	case !told: // a rule that denies in an outage has no numbers
		r, _ := answerTo(d)
		out = r.appendTo(out)
	case len(out) > 1:
		out = out[:len(out)-1] // without the last comma
	default:
		out = rowOf(d.Rules, koalafile.OutcomeName(rowNone)).appendTo(out)
	}
	x.out = append(out, ']')
	return reply{body: x.out}
}

// update counts an action that has happened.
func (a *API) update(x *exchange, _ *http.Request) reply {
	return a.write(x, store.Record)
}

// feedback gives back the hits that rules state for `erase1` or `erase2`. As in
// koala, any other word means erase1. An outage is an error: the rules do not
// state what a refund does then.
func (a *API) feedback(x *exchange, _ *http.Request) reply {
	x.item[0].Request.Feedback = "erase1"
	if x.parameter("_feedbackType") == "erase2" {
		x.item[0].Request.Feedback = "erase2"
	}
	r := a.write(x, store.Refund)
	if x.item[0].Decision.Degraded {
		return reply{http.StatusInternalServerError, noRow(x.out[:0], failure(-1, "the store is unavailable: nothing was given back"))}
	}
	return r
}

func (a *API) write(x *exchange, verb store.Verb) reply {
	if err := a.ask(x, verb); err != nil {
		return reply{statusOf(err), noRow(x.out[:0], failure(-1, err.Error()))}
	}
	return reply{body: written}
}

var written = []byte(`{"err_no":0, "err_msg":"OK"}`)

// statusOf returns the HTTP status for a request that could not be decided.
func statusOf(err error) int {
	var input *fault.Fault
	if errors.As(err, &input) {
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

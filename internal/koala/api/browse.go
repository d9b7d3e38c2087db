package api

import (
	"errors"
	"net/http"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/fault"
)

// browse asks whether an action may happen. With `_writeThrough=yes` it is
// counted in the same step, when it may.
func (a *API) browse(x *exchange, _ *http.Request) reply {
	d := &x.decision
	if err := x.ask(a.engine, verbOf(x)); err != nil {
		return reply{statusOf(err), failed(err).appendTo(x.out[:0])}
	}
	t := a.table(d.Rules)
	a.count(t, d, false)
	return reply{body: t.answer(d, t.rows)}
}

func verbOf(x *exchange) weir.Verb {
	if x.parameter("_writeThrough") == "yes" {
		return weir.Take
	}
	return weir.Check
}

// complete is browse that tells every rule that is over, not the first alone.
func (a *API) complete(x *exchange, _ *http.Request) reply {
	d := &x.decision
	if err := x.ask(a.engine, verbOf(x)); err != nil {
		return reply{statusOf(err), append(failed(err).appendTo(append(x.out[:0], '[')), ']')}
	}
	t := a.table(d.Rules)
	a.count(t, d, true)
	out, told := append(x.out[:0], '['), d.Rule == ""
	t.visit(d, func(i int, over bool) bool {
		if over {
			out = append(append(out, t.lines[i].row...), ',')
			told = told || t.set.Rule(i).Name == d.Rule
		}
		return true
	})
	switch {
	case !told: // a rule that denies while the store is out of reach has no numbers
		out = append(out, t.answer(d, t.rows)...)
	case len(out) > 1:
		out = out[:len(out)-1] // the last comma
	default:
		out = append(out, t.rows.none...)
	}
	x.out = append(out, ']')
	return reply{body: x.out}
}

// update counts an action that has happened.
func (a *API) update(x *exchange, _ *http.Request) reply {
	return a.write(x, weir.Record)
}

// feedback gives back what rules state for `erase1` or `erase2`; koala takes
// any other word for erase1. A store that is out of reach is an error here: no
// rule says that hits are given back all the same.
func (a *API) feedback(x *exchange, _ *http.Request) reply {
	x.request.Feedback = "erase1"
	if x.parameter("_feedbackType") == "erase2" {
		x.request.Feedback = "erase2"
	}
	r := a.write(x, weir.Refund)
	if x.decision.Degraded {
		return reply{http.StatusInternalServerError, problem(x.out, `{"err_no":-1, "err_msg":`, "the store is out of reach: nothing was given back")}
	}
	return r
}

func (a *API) write(x *exchange, verb weir.Verb) reply {
	if err := x.ask(a.engine, verb); err != nil {
		return reply{statusOf(err), problem(x.out, `{"err_no":-1, "err_msg":`, err.Error())}
	}
	return reply{body: written}
}

var written = []byte(`{"err_no":0, "err_msg":"OK"}`)

// statusOf is the status for a request that could not be decided.
func statusOf(err error) int {
	var input *fault.Fault
	if errors.As(err, &input) {
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

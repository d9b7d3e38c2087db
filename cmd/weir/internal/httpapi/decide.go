package httpapi

import (
	"net/http"
	"strconv"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/internal/jsontext"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/store"
)

// decide returns the handler that decides one request.
func (a *API) decide(verb store.Verb) handler {
	return func(x *exchange, w http.ResponseWriter, r *http.Request) error {
		if err := x.read(r); err != nil {
			return err
		}
		if f := x.scan.decode(x.body, verb, &x.item[0]); f != nil {
			return f
		}
		if _, err := x.namespace.Run(answer.Context(r), x.item[:], x.options(x.admit)); err != nil {
			return err
		}
		return x.respond(w, appendDecision(x.out[:0], x.item[0].Verb, &x.item[0].Decision))
	}
}

// explain shows what a check would answer, and why. It counts nothing.
func (a *API) explain(x *exchange, w http.ResponseWriter, r *http.Request) error {
	if err := x.read(r); err != nil {
		return err
	}
	if f := x.scan.decode(x.body, store.Check, &x.item[0]); f != nil {
		return f
	}
	if err := x.reserveExplanations(x.namespace.Engine().Rules().Len()); err != nil {
		return err
	}
	d, why, err := x.namespace.Explain(answer.Context(r), x.item[0].Request, x.options(func(s run.Size) error {
		return x.admitOne(run.Size{Usages: 2 * s.Usages, Text: 2 * s.Text}) // the keys, and the decision with them as JSON
	}))
	if err != nil {
		return err
	}
	w.Header()["Content-Type"] = jsonType
	b := appendDecision(append(x.out[:0], `{"decision":`...), store.Check, &d)
	b = append(b, `,"rules":[`...)
	for i := range why {
		if i > 0 {
			b = append(b, ',')
		}
		if b = appendExplanation(b, &why[i]); len(b) >= rulesPart {
			x.endRequest()
			if _, err := w.Write(b); err != nil {
				break // the caller is gone
			}
			b = b[:0]
		}
	}
	return x.respond(w, append(b, ']', '}'))
}

// appendExplanation appends why a rule matched or did not, and its numbers.
func appendExplanation(b []byte, e *weir.RuleExplanation) []byte {
	b = jsontext.AppendText(append(b, `{"rule":`...), e.Rule)
	b = jsontext.AppendText(append(b, `,"kind":`...), e.Kind.String())
	b = strconv.AppendBool(append(b, `,"matched":`...), e.Matched)
	if e.Shadow {
		b = append(b, `,"shadow":true`...)
	}
	b = jsontext.AppendTexts(append(b, `,"reasons":`...), e.Reasons)
	if e.Usage != nil {
		b = append(appendUsage(append(b, `,"usage":{`...), e.Usage), '}')
	}
	return append(b, '}')
}

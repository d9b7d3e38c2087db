package httpapi

import (
	"net/http"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/jsontext"
	"github.com/weirhq/weir/store"
)

// decide returns the handler that decides one request.
func (a *API) decide(verb store.Verb) handler {
	return func(x *exchange, w http.ResponseWriter, r *http.Request) error {
		if err := x.read(r); err != nil {
			return err
		}
		verb, f := x.scan.decode(x.body, verb, &x.request)
		if f != nil {
			return f
		}
		if err := x.space.Engine().DoIf(r.Context(), verb, &x.request, &x.decision, x.admit); err != nil {
			return err
		}
		x.out = appendDecision(x.out[:0], verb, &x.decision)
		x.end()
		return respond(w, x.out)
	}
}

// explain shows what a check would answer, and why. It counts nothing.
func (a *API) explain(x *exchange, w http.ResponseWriter, r *http.Request) error {
	if err := x.read(r); err != nil {
		return err
	}
	if _, f := x.scan.decode(x.body, store.Check, &x.request); f != nil {
		return f
	}
	if err := x.reserveRules(x.space.Engine().Rules().Len()); err != nil {
		return err
	}
	why, err := x.space.Engine().Explain(r.Context(), x.request)
	if err != nil {
		return err
	}
	b := appendDecision(append(x.out[:0], `{"decision":`...), store.Check, &why.Decision)
	b = append(b, `,"rules":[`...)
	for i := range why.Rules {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendExplanation(b, &why.Rules[i])
	}
	x.out = append(b, ']', '}')
	return respond(w, x.out)
}

// appendExplanation appends why a rule matched or did not, and its numbers.
func appendExplanation(b []byte, e *weir.RuleExplanation) []byte {
	b = jsontext.AppendText(append(b, `{"rule":`...), e.Rule)
	b = jsontext.AppendText(append(b, `,"kind":`...), e.Kind.String())
	b = appendBool(append(b, `,"matched":`...), e.Matched)
	if e.Shadow {
		b = append(b, `,"shadow":true`...)
	}
	b = jsontext.AppendTexts(append(b, `,"reasons":`...), e.Reasons)
	if e.Usage != nil {
		b = append(appendUsage(append(b, `,"usage":{`...), e.Usage), '}')
	}
	return append(b, '}')
}

package httpapi

import (
	"net/http"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/internal/jsontext"
)

// rulesPart is the size, in bytes, from which on a part of an answer that lists rules is
// written.
const rulesPart = 32 << 10

// rules shows the rules in force and their source. It writes them in parts, so that the number
// of rules does not matter for the memory that it takes.
func (a *API) rules(x *exchange, w http.ResponseWriter, _ *http.Request) error {
	from, set := x.namespace.Source(), x.namespace.Engine().Rules()
	w.Header()["Content-Type"] = jsonType
	b := jsontext.AppendText(append(x.out[:0], `{"file":`...), from.File)
	b = jsontext.AppendText(append(b, `,"hash":`...), from.Hash)
	b = jsontext.AppendText(append(b, `,"loaded":`...), from.Loaded.UTC().Format(time.RFC3339))
	b = append(b, `,"rules":[`...)
	for i := range set.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		if b = appendJSON(b, answer.RuleOf(set.Rule(i))); len(b) >= rulesPart {
			x.endRequest()
			if _, err := w.Write(b); err != nil {
				break // the caller is gone
			}
			b = b[:0]
		}
	}
	return x.respond(w, append(b, ']', '}'))
}

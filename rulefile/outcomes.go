package rulefile

import (
	"encoding/json"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
)

var outcomeKeys = []string{"status", "body", "allow"}

// readOutcomes reads the table outcomes: names, and how answers show them.
func (p *pass) readOutcomes(n *node) {
	p.outcomes = map[string]rule.Outcome{}
	if n == nil || n.kind == nothing {
		return
	}
	if n.kind != aTable {
		p.fault(n, "outcomes is %s, want names with what callers are shown, such as captcha: {status: 429}", n)
		return
	}
	for _, e := range p.unique(n) {
		name := e.key.text
		p.outcomes[name] = rule.Outcome{}
		if e.value.kind != aTable {
			p.fault(e.value, "outcome %q is %s, want {status: 429, body: {...}}", name, e.value)
			continue
		}
		f := p.fields(e.value, outcomeKeys)
		o := rule.Outcome{Allow: p.yes(f["allow"]), Status: int(p.whole(f["status"], 200, 599))}
		if body := f["body"]; body != nil {
			o.Body = p.json(nil, body)
		}
		p.outcomes[name] = o
	}
}

// outcome returns the name of an outcome that exists.
func (p *pass) outcome(n *node) string {
	name := p.text(n)
	_, ok := p.outcomes[name]
	if ok || name == "" || name == rule.Allow || name == rule.Deny || len(p.faults) >= maxFaults {
		return name
	}
	problem := unknown("outcome", name, p.outcomeNames)
	switch {
	case name == "ban":
		problem += "; to ban a key, write ban: 1d in the rule"
	case fault.DidYouMean(name, p.outcomeNames) == "":
		problem += ", or define it under outcomes:"
	}
	p.fault(n, "%s", problem)
	return name
}

// json appends n as JSON, with keys in the file's order.
func (p *pass) json(b []byte, n *node) []byte {
	switch n.kind {
	case nothing:
		return append(b, "null"...)
	case aBoolean, aNumber:
		return append(b, n.text...)
	case aList:
		b = append(b, '[')
		for i, item := range n.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = p.json(b, item)
		}
		return append(b, ']')
	case aTable:
		b = append(b, '{')
		for i, e := range p.unique(n) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendText(b, e.key.text), ':')
			b = p.json(b, e.value)
		}
		return append(b, '}')
	}
	return appendText(b, n.text)
}

// appendText appends s as a JSON string. Marshalling a string cannot fail.
func appendText(b []byte, s string) []byte {
	text, _ := json.Marshal(s)
	return append(b, text...)
}

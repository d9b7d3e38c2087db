package koalafile

import (
	"fmt"
	"strings"

	"github.com/weirhq/weir/rule"
)

var methods = []string{"direct", "count", "base", "leak"}

// readRule reads one line of [rules]:
//
//	rule : [method] [conditions] [time=…; count=…] [result=…; return=…]
func (p *pass) readRule(s piece) {
	head, rest, ok := s.cut(":")
	if !ok || !strings.EqualFold(head.trim().text, "rule") {
		p.fault(s, "want a rule as rule : [method] [keys] [time=…; count=…] [result=…; return=…]")
		return
	}
	groups, ok := p.groups(rest)
	if !ok {
		return
	}
	method, conditions, values, ret := groups[0], groups[1], groups[2], groups[3]
	answer := p.settings(ret, "result", "return")
	code := p.returnCode(ret, answer)
	if code > 0 {
		p.rule = fmt.Sprintf("koala-%d", code)
	}
	r := rule.Rule{Name: p.rule, Code: code, OnOutage: rule.OutageAllow}
	var per []string
	r.When, per = p.conditions(conditions)
	row := p.resultRow(ret, answer)

	v := p.settings(values, "time", "count", "base", "erase1", "erase2")
	switch method.text {
	case "direct":
		r.Then, r.CountRest = OutcomeName(row), true
		p.warn(method, "koala skipped direct rules in multi/browse; weir does not")
	case "count", "base", "leak":
		r.Per, r.Then = per, p.over(ret, row)
		p.limit(&r, method, values, v)
	default:
		p.fault(method, "unknown method %q: want %s", method.text, strings.Join(methods, ", "))
	}
	p.file.Rules = append(p.file.Rules, r)
	if p.here.comment != "" {
		p.file.Comments[r.Name] = p.here.comment
	}
}

// groups returns the four brackets of a rule. A bracket ends where the next one
// begins, so that values may contain brackets.
func (p *pass) groups(s piece) (groups []piece, ok bool) {
	line := s
	for s = s.trim(); s.text != ""; s = s.trim() {
		if s.text[0] != '[' {
			p.fault(s, "want [ here; a comment needs a line of its own")
			return nil, false
		}
		end := closing(s.text)
		if end < 0 {
			p.fault(s, "the [ has no ]")
			return nil, false
		}
		groups = append(groups, s.to(end).from(1).trim())
		s = s.from(end + 1)
	}
	if len(groups) != 4 {
		p.fault(line.trim(), "the rule has %d brackets, want four: [method] [keys] [time=…; count=…] [result=…; return=…]", len(groups))
		return nil, false
	}
	return groups, true
}

// closing returns the index at which the bracket at the start of text ends, or
// -1.
func closing(text string) int {
	last := -1
	for i := range len(text) {
		if text[i] != ']' {
			continue
		}
		last = i
		if rest := strings.TrimSpace(text[i+1:]); rest == "" || rest[0] == '[' {
			return i
		}
	}
	return last
}

// returnCode returns the rule's return code, or 0 if it is wrong.
func (p *pass) returnCode(s piece, answer map[string]setting) int64 {
	code, ok := answer["return"]
	switch {
	case !ok:
		p.fault(s, "the rule has no return code: want return=NUMBER, a different one for each rule")
		return 0
	case code.value < 1 || code.wraps():
		p.fault(code.at, "return is %d: want 1 to 2147483647", code.value)
		return 0
	}
	if line, taken := p.returns[code.value]; taken {
		p.fault(code.at, "return code %d is also that of line %d: want a different one for each rule", code.value, line)
		return 0
	}
	p.returns[code.value] = p.here.number
	return code.value
}

// resultRow returns the number of the rule's row, or 0 if it is wrong.
func (p *pass) resultRow(s piece, answer map[string]setting) int64 {
	result, ok := answer["result"]
	switch {
	case !ok:
		p.fault(s, "the rule has no result: want result=NUMBER, a row of [result]")
		return 0
	case result.value < 1 || result.wraps():
		p.fault(result.at, "result is %d: want the number of a row of [result], 1 or more", result.value)
		return 0
	}
	if _, known := p.file.Outcomes[OutcomeName(result.value)]; !known {
		p.fault(result.at, "[result] has no row %d", result.value)
	}
	return result.value
}

// over returns the outcome of a counting rule that is over its limit. A row
// that lets the request pass is answered as it is, but the request counts as
// denied.
func (p *pass) over(s piece, n int64) string {
	name := OutcomeName(n)
	row := p.file.Outcomes[name]
	if !row.Allow {
		return name
	}
	p.warn(s, "over the limit, koala answers with row %d, which lets the request pass; weir answers with the same row and counts the request as denied", n)
	name += "-over"
	row.Allow = false
	p.file.Outcomes[name] = row
	return name
}

package koalafile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

var methods = []string{"direct", "count", "base", "leak"}

// readRule reads one line of [rules]:
//
//	rule : [method] [conditions] [time=…; count=…] [result=…; return=…]
func (p *pass) readRule(s piece) {
	head, rest, ok := s.cut(":")
	if !ok || !strings.EqualFold(head.text, "rule") {
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
			p.fault(s, "want [ here; a comment needs its own line")
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

// closing returns the index of the end of the bracket at the start of text, or -1.
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

// setting is a named number, such as time=5.
type setting struct {
	value int64
	at    piece
}

// wraps reports whether the number does not fit into 32 bits, in which koala
// keeps it.
func (n setting) wraps() bool { return int64(int32(n.value)) != n.value }

// settings reads `name=number; …`.
func (p *pass) settings(s piece, known ...string) map[string]setting {
	found := map[string]setting{}
	for _, part := range s.split(";") {
		name, number, ok := part.cut("=")
		if !ok || !slices.Contains(known, name.text) {
			p.fault(part, "%q is unknown here: want %s=NUMBER", part.text, strings.Join(known, "=NUMBER, "))
			continue
		}
		if _, twice := found[name.text]; twice {
			p.fault(part, "%s appears twice: want one", name.text)
		}
		value, err := strconv.ParseInt(number.text, 10, 64)
		if err != nil {
			p.fault(part, "%s is %q, want a whole number", name.text, number.text)
			value = 1 // harmless
		}
		found[name.text] = setting{value, part}
	}
	return found
}

const (
	// day is the `time` that means the natural day.
	day = 24 * 60 * 60

	// exact is the largest count up to which a leak rule is exact.
	exact = 1000
)

// limit sets the quota and the window of a count, base or leak rule.
func (p *pass) limit(r *rule.Rule, method, values piece, v map[string]setting) {
	seconds := p.number(values, v, "time", int64(window.MaxLength/time.Second))
	r.Quota = &rule.Quota{Value: p.number(values, v, "count", window.MaxHits)}
	r.Window = window.Fixed(time.Duration(seconds) * time.Second)
	natural := window.Calendar(window.Day, p.file.Zone)

	switch {
	case method.text == "leak":
		r.Window = window.Sliding(r.Window.Length)
		r.Window.Precision = int(min(r.Quota.Value, exact))
		r.Feedback = p.feedback(v)
		p.unused(v, "base")
		p.leakWarnings(method, r.Quota.Value, seconds)
		return
	case method.text == "base":
		r.After = window.After{Count: p.number(values, v, "base", window.MaxHits), Window: natural}
		p.baseWarnings(method, v, seconds)
	case seconds == day:
		p.warn(v["time"].at, "koala used the day of the machine's zone; weir uses the day of Shanghai on any machine")
	}
	if seconds == day {
		r.Window = natural
	}
	if method.text == "count" {
		p.unused(v, "base")
	}
	p.unused(v, "erase1", "erase2")
}

func (p *pass) leakWarnings(method piece, count, seconds int64) {
	p.warn(method, "koala admitted %d in %d to %d s, because it counted in whole seconds; weir admits %s in %d s",
		count+1, seconds, seconds+1, admitted(count), seconds)
	p.warn(method, "koala skipped leak rules in multi/browse and browse_complete; weir does not")
}

func (p *pass) baseWarnings(method piece, v map[string]setting, seconds int64) {
	p.warn(method, "koala ended the day of base at midnight UTC; weir ends it at midnight in Shanghai")
	p.warn(method, "koala skipped base rules in multi/browse; weir does not")
	if v["base"].value == 1 {
		p.warn(v["base"].at, "koala counted from the second hit of the day; weir counts from the first")
	}
	if seconds == day {
		p.warn(v["time"].at, "koala's second counter lasted %d s from its first hit; weir counts by the day in Shanghai, as count rules do", day)
	}
}

// admitted returns, in words, how many hits a leak rule admits.
func admitted(count int64) string {
	if count <= exact {
		return fmt.Sprintf("exactly %d", count)
	}
	group := (count + exact - 1) / exact // hits that share a date
	return fmt.Sprintf("at most %d, and at least %d", count, count-group+1)
}

// number returns a required setting, which must be from 1 to most. It returns 1
// for one that is wrong.
func (p *pass) number(s piece, v map[string]setting, name string, most int64) int64 {
	n, ok := v[name]
	switch {
	case !ok:
		p.fault(s, "the rule has no %s: want %s=NUMBER, 1 or more", name, name)
	case n.value < 1 && name == "count":
		p.fault(n.at, "count is %d: want 1 or more, or a [direct] rule to deny always", n.value)
	case n.value < 1 || n.value > most:
		p.fault(n.at, "%s is %d: want 1 to %d", name, n.value, most)
	default:
		if n.wraps() {
			p.warn(n.at, "koala read %s=%d as %d; weir uses it as written", name, n.value, int32(n.value))
		}
		return n.value
	}
	return 1
}

// feedback returns the hits that a leak rule gives back, by the name of the
// feedback.
func (p *pass) feedback(v map[string]setting) map[string]int64 {
	var back map[string]int64
	for _, name := range []string{"erase1", "erase2"} {
		n, ok := v[name]
		if !ok || n.value == 0 {
			continue
		}
		if n.value < 0 || n.value > window.MaxHits {
			p.fault(n.at, "%s is %d: want 0 to %d", name, n.value, window.MaxHits)
			continue
		}
		if back == nil {
			back = map[string]int64{}
		}
		back[name] = n.value
	}
	return back
}

// unused warns of settings that have no effect in this rule.
func (p *pass) unused(v map[string]setting, names ...string) {
	for _, name := range names {
		if n, ok := v[name]; ok && n.value != 0 {
			p.warn(n.at, "%s has no effect in a rule of this method, in koala and in weir", name)
		}
	}
}

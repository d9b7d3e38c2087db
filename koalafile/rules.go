package koalafile

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// day is the `time` that means the natural day.
const day = 24 * 60 * 60

// exact is up to which count a leak rule is exact.
const exact = 1000

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
	r := rule.Rule{Name: p.rule, OnOutage: rule.OutageAllow}
	var per []string
	r.When, per = p.conditions(conditions)
	row := p.resultRow(ret, answer)

	v := p.settings(values, "time", "count", "base", "erase1", "erase2")
	switch method.text {
	case "direct":
		r.Then, r.Rest = outcomeName(row), rule.RestCount
		p.warn(method, "koala passed over direct rules in multi/browse; weir does not")
	case "count", "base", "leak":
		r.Per = per
		r.Then = p.over(ret, row)
		p.limit(&r, method, values, v)
	default:
		p.fault(method, "unknown method %q: want %s", method.text, strings.Join(methods, ", "))
	}
	p.file.Rules = append(p.file.Rules, r)
	if p.here.comment != "" {
		p.file.Comments[r.Name] = p.here.comment
	}
}

// groups are the four brackets of a rule. A bracket ends where the next one
// begins, so that values may have brackets in them.
func (p *pass) groups(s piece) (groups []piece, ok bool) {
	line := s
	for s = s.trim(); s.text != ""; s = s.trim() {
		if s.text[0] != '[' {
			p.fault(s, "want [ here; a comment stands in a line of its own")
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

// closing is where the bracket that text starts with ends, -1 for nowhere.
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

// returnCode is the rule's number, 0 when it is not right.
func (p *pass) returnCode(s piece, answer map[string]setting) int64 {
	code, ok := answer["return"]
	switch {
	case !ok:
		p.fault(s, "the rule has no return code: want return=NUMBER, another one for each rule")
		return 0
	case code.value < 1 || code.wraps():
		p.fault(code.at, "return is %d: want 1 to 2147483647", code.value)
		return 0
	}
	if line, taken := p.returns[code.value]; taken {
		p.fault(code.at, "return code %d is line %d's too: want another one for each rule", code.value, line)
		return 0
	}
	p.returns[code.value] = p.here.number
	return code.value
}

// resultRow is the row that the rule answers with.
func (p *pass) resultRow(s piece, answer map[string]setting) int64 {
	result, ok := answer["result"]
	switch {
	case !ok:
		p.fault(s, "the rule has no result: want result=NUMBER, a row of [result]")
		return 0
	case result.value < 1 || result.wraps():
		p.fault(result.at, "result is %d: want a row of [result] from 1 on", result.value)
		return 0
	}
	if _, known := p.file.Outcomes[outcomeName(result.value)]; !known {
		p.fault(result.at, "there is no row %d in [result]", result.value)
	}
	return result.value
}

// over is the outcome of a rule that counts when it is over its limit. A row
// that lets pass is shown, but does not let pass.
func (p *pass) over(s piece, n int64) string {
	name := outcomeName(n)
	row := p.file.Outcomes[name]
	if !row.Allow {
		return name
	}
	p.warn(s, "koala answers with row %d, which lets pass, when the rule is out; weir answers with the same row and counts the request as denied", n)
	name += "-over"
	row.Allow = false
	p.file.Outcomes[name] = row
	return name
}

// limit fills in what a count, base or leak rule counts, in which window.
func (p *pass) limit(r *rule.Rule, method, values piece, v map[string]setting) {
	seconds := p.number(values, v, "time", int64(window.MaxLength/time.Second))
	r.Quota = &rule.Quota{Value: p.number(values, v, "count", window.MaxHits)}
	natural := window.Calendar(window.Day, p.file.Zone)
	length := time.Duration(seconds) * time.Second

	switch method.text {
	case "leak":
		r.Window = window.Sliding(length)
		r.Window.Precision = int(min(r.Quota.Value, exact))
		r.Feedback = p.feedback(v)
		p.warn(method, "koala's leak let %d pass in %d s, and more in the second of the edge; weir lets %s pass",
			r.Quota.Value+1, seconds, admitted(r.Quota.Value))
		p.warn(method, "koala passed over leak rules in multi/browse and browse_complete; weir does not")
		p.unused(v, "base")
		return
	case "base":
		r.After = window.After{Count: p.number(values, v, "base", window.MaxHits), Window: natural}
		p.warn(method, "koala ended the day of base at midnight UTC; weir ends it at midnight in Shanghai")
		p.warn(method, "koala passed over base rules in multi/browse; weir does not")
		if r.After.Count == 1 {
			p.warn(v["base"].at, "koala began to count at the second hit of the day; weir begins at the first")
		}
	default:
		p.unused(v, "base")
	}
	p.unused(v, "erase1", "erase2")
	r.Window = window.Fixed(length)
	if seconds != day {
		return
	}
	if method.text == "base" {
		p.warn(v["time"].at, "koala's second counter lasted %d s from its first hit; weir counts by the day in Shanghai, as count rules do", day)
	} else {
		p.warn(v["time"].at, "koala's day was that of the machine's zone; weir's is that of Shanghai on any machine")
	}
	r.Window = natural
}

// admitted is how many a leak rule lets pass, in words.
func admitted(count int64) string {
	if count <= exact {
		return fmt.Sprintf("exactly %d", count)
	}
	group := (count + exact - 1) / exact // hits that age together
	return fmt.Sprintf("at most %d, and at least %d,", count, count-group+1)
}

// number is a setting that must be there, 1 to most; 1 in place of one that is
// not right.
func (p *pass) number(s piece, v map[string]setting, name string, most int64) int64 {
	n, ok := v[name]
	switch {
	case !ok:
		p.fault(s, "the rule has no %s: want %s=NUMBER, 1 or more", name, name)
	case n.value < 1 && name == "count":
		p.fault(n.at, "count is %d: want 1 or more; a rule that only decides is a [direct] one", n.value)
	case n.value < 1 || n.value > most:
		p.fault(n.at, "%s is %d: want 1 to %d", name, n.value, most)
	default:
		if n.wraps() {
			p.warn(n.at, "koala read %s=%d as %d; weir takes it as written", name, n.value, int32(n.value))
		}
		return n.value
	}
	return 1
}

// feedback is what a leak rule gives back, by the feedback's name.
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

// unused tells of settings that do nothing in this rule.
func (p *pass) unused(v map[string]setting, names ...string) {
	for _, name := range names {
		if n, ok := v[name]; ok && n.value != 0 {
			p.warn(n.at, "%s does nothing in a rule of this method, neither in koala nor in weir", name)
		}
	}
}

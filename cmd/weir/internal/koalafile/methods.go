package koalafile

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

const (
	// day is the `time` that stands for the natural day.
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
	p.warn(method, "koala admitted %d in %d s, and more in the second at the edge; weir admits %s",
		count+1, seconds, admitted(count))
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
	group := (count + exact - 1) / exact // hits that age together
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

package rulefile

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// ruleTable returns a rule with its keys in reading order: for whom, what is
// counted, how much of it, and the consequence.
func (w *writer) ruleTable(r *rule.Rule) table {
	t := table{{"name", text(r.Name)}}
	add := func(set bool, key scalar, v value) {
		if set {
			t = append(t, pair{key, v})
		}
	}
	zone := w.zoneOf(r)
	when, trimmed := w.when(r.When)
	add(len(when) > 0, "when", when)
	add(trimmed, "trim", scalar("true"))
	add(len(r.Per) > 0, "per", perOf(r))
	add(r.Together != "", "together", text(r.Together))
	if r.After != (window.After{}) {
		add(true, "after", table{number("count", r.After.Count), {"window", w.window(r.After.Window)}})
	}
	add(r.Measure != window.Count, scalar(r.Measure.String()), text(r.Of))
	if r.Quota != nil {
		add(true, "limit", w.quota(r.Quota))
	}
	if r.Trigger > 0 {
		t = append(t, number("trigger", r.Trigger))
	}
	add(r.Once, "once", scalar("true"))
	if r.Window != (window.Window{}) {
		add(true, "window", w.window(r.Window))
	}
	add(zone != w.zone, "timezone", text(zone.String()))
	add(r.Hold != 0, "hold", scalar(duration(r.Hold)))
	add(r.Release, "unsettled", text("release"))
	if r.MaxHolds > 0 {
		t = append(t, number("max_holds", int64(r.MaxHolds)))
	}
	if r.Ban != (window.Ban{}) {
		add(true, "ban", ban(&r.Ban))
	}
	add(r.Then != "", "then", text(r.Then))
	if r.Code > 0 {
		t = append(t, number("code", r.Code))
	}
	add(r.CountRest, "rest", text("count"))
	add(len(r.Feedback) > 0, "feedback", numbers(r.Feedback))
	add(r.Mode != rule.Enforce, "mode", text(r.Mode.String()))
	add(r.OnOutage != rule.OutageLocal, "on_outage", text(r.OnOutage.String()))
	add(r.CountDenied, "count_denied", scalar("true"))
	if r.MaxKeys > 0 {
		t = append(t, number("max_keys", r.MaxKeys))
	}
	return t
}

// ban returns a length of time, or a table.
func ban(b *window.Ban) value {
	length := scalar(duration(b.For))
	t := table{{"for", length}}
	if b.Factor > 0 {
		t = append(t, number("factor", b.Factor))
	}
	if b.Most > 0 {
		t = append(t, pair{"most", scalar(duration(b.Most))})
	}
	if b.Forget > 0 {
		t = append(t, pair{"forget", scalar(duration(b.Forget))})
	}
	if len(t) == 1 {
		return length
	}
	return t
}

// numbers returns a table of names with a number, or all, each.
func numbers(of map[string]int64) (t table) {
	for _, name := range sorted(of) {
		if of[name] == window.All {
			t = append(t, pair{text(name), scalar(allHits)})
			continue
		}
		t = append(t, number(text(name), of[name]))
	}
	return t
}

// quota returns a number, or a table of numbers by the value of an attribute.
func (w *writer) quota(q *rule.Quota) value {
	if q.By == "" {
		return number("", q.Value).value
	}
	for _, word := range []string{"by", "else"} {
		if _, ok := q.Cases[word]; ok {
			w.cannot("limit", "a quota for %s %q cannot be told from the key %s", q.By, word, word)
		}
	}
	t := append(table{{"by", text(q.By)}}, numbers(q.Cases)...)
	if q.Else != nil {
		t = append(t, number("else", *q.Else))
	}
	return t
}

// zoneOf returns the time zone of a rule's calendar windows, and the file's
// when it has none.
func (w *writer) zoneOf(r *rule.Rule) *time.Location {
	var zone *time.Location
	for _, win := range []window.Window{r.Window, r.After.Window} {
		if win.Period == 0 {
			continue
		}
		its := win.Zone
		if its == nil {
			its = time.UTC
		}
		if zone != nil && zone.String() != its.String() {
			w.cannot("timezone", "its windows follow %s and %s, want one zone for both", zone, its)
		}
		zone = its
	}
	if zone == nil || zone.String() == w.zone.String() {
		return w.zone
	}
	return zone
}

// window returns win, in the short form where only its length or its period is
// set.
func (w *writer) window(win window.Window) value {
	if win.Kind == window.KindEver {
		return scalar(win.Kind.String())
	}
	length := scalar(duration(win.Length))
	short := win.Kind == window.KindSliding
	if win.Period != 0 {
		length, short = scalar(win.Period.String()), true
	}
	t := table{{scalar(win.Kind.String()), length}}
	for _, option := range []struct {
		key scalar
		n   int64
	}{
		{"precision", int64(win.Precision)},
		{"n", int64(win.N)},
		{"burst", win.Burst},
	} {
		if option.n > 0 {
			t = append(t, number(option.key, option.n))
		}
	}
	switch {
	case win.Anchor == 0:
	case win.Period == window.Week:
		t = append(t, pair{"starts", scalar(weekdays[win.Anchor-1])})
	default:
		t = append(t, number("starts", int64(win.Anchor)))
	}
	if short && len(t) == 1 {
		return length
	}
	return t
}

// units lists the units of a length of time, the longest first.
var units = []struct {
	name string
	unit time.Duration
}{
	{"d", 24 * time.Hour},
	{"h", time.Hour},
	{"m", time.Minute},
	{"s", time.Second},
	{"ms", time.Millisecond},
	{"us", time.Microsecond},
}

// duration returns d as a whole number of the longest possible unit.
func duration(d time.Duration) string {
	for _, u := range units {
		if d%u.unit == 0 {
			return string(number("", int64(d/u.unit)).value.(scalar)) + u.name
		}
	}
	return d.String()
}

// body returns JSON as YAML with the same keys in the same order.
func body(src []byte) value {
	d := json.NewDecoder(bytes.NewReader(src))
	d.UseNumber()
	return jsonValue(d)
}

// jsonValue returns the next value of d. [rule.New] has checked that there is
// one.
func jsonValue(d *json.Decoder) value {
	t, _ := d.Token()
	switch t := t.(type) {
	case json.Delim:
		if t == '[' {
			l := list{}
			for d.More() {
				l = append(l, jsonValue(d))
			}
			_, _ = d.Token()
			return l
		}
		of := table{}
		for d.More() {
			key, _ := d.Token()
			name, _ := key.(string)
			of = append(of, pair{jsonText(name), jsonValue(d)})
		}
		_, _ = d.Token()
		return of
	case string:
		return jsonText(t)
	case json.Number:
		return scalar(t)
	case bool:
		if t {
			return scalar("true")
		}
		return scalar("false")
	}
	return scalar("null")
}

// perOf returns the attributes of the key, with their networks.
func perOf(r *rule.Rule) value {
	if len(r.Networks) == 0 {
		return texts(r.Per)
	}
	var all list
	for _, name := range r.Per {
		n, ok := r.Networks[name]
		if !ok {
			all = append(all, text(name))
			continue
		}
		var bits table
		if n.V4 > 0 {
			bits = append(bits, number("v4", int64(n.V4)))
		}
		if n.V6 > 0 {
			bits = append(bits, number("v6", int64(n.V6)))
		}
		all = append(all, table{{text(name), bits}})
	}
	return all
}

// names returns a list of texts, also for one and for none.
func names(of []string) value {
	all := list{}
	for _, name := range of {
		all = append(all, text(name))
	}
	return all
}

package rulewriter

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// ruleTable returns a rule with its keys in reading order: for whom, what is
// counted, how much of it, and the consequence.
func (w *writer) ruleTable(r *rule.Rule) (t table) {
	when, trimmed := w.when(r.When)
	zone := w.zoneOf(r)
	t.add(true, "name", text(r.Name))
	t.add(len(when) > 0, "when", when)
	t.add(trimmed, "trim", scalar("true"))
	t.add(len(r.Per) > 0, "per", w.perOf(r))
	t.add(r.Together != "", "together", text(r.Together))
	if r.After != (window.After{}) {
		t.add(true, "after", table{{key: "count", value: number(r.After.Count)}, {key: "window", value: windowOf(r.After.Window)}})
	}
	t.add(r.Measure != window.Count, scalar(r.Measure.String()), text(r.Of))
	if r.Quota != nil {
		t.add(true, "limit", w.quota(r.Quota))
	}
	t.count("trigger", r.Trigger)
	t.add(r.Once, "once", scalar("true"))
	t.add(r.Near != 0, "near", scalar(strconv.Itoa(r.Near)+"%"))
	if r.Window != (window.Window{}) {
		t.add(true, "window", windowOf(r.Window))
	}
	t.add(zone != w.zone, "timezone", text(zone.String()))
	t.add(r.Hold != 0, "hold", length(r.Hold))
	t.add(r.Release, "unsettled", text("release"))
	t.count("max_holds", int64(r.MaxHolds))
	if r.Ban != (window.Ban{}) {
		t.add(true, "ban", banOf(&r.Ban))
	}
	t.add(r.Then != "", "then", text(r.Then))
	t.count("code", r.Code)
	t.add(r.CountRest, "rest", text("count"))
	t.add(len(r.Feedback) > 0, "feedback", numbers(r.Feedback))
	t.add(r.Mode != rule.Enforce, "mode", text(r.Mode.String()))
	t.add(r.OnOutage != rule.OutageLocal, "on_outage", text(r.OnOutage.String()))
	t.add(r.CountDenied, "count_denied", scalar("true"))
	t.count("max_keys", r.MaxKeys)
	t.add(r.Export, "export", scalar("true"))
	t.add(r.Lease == window.LeaseStrict, "lease", text("strict"))
	if r.Lease > 0 {
		var credit table
		credit.count("credit", r.Lease)
		t.add(true, "lease", credit)
	}
	return t
}

// perOf returns the attributes of the key, with their networks unless they are the default of a
// file: without a network, addresses in ip count by their first 64 bits.
func (w *writer) perOf(r *rule.Rule) list {
	all := texts(r.Per)
	for i, name := range r.Per {
		n, meant := r.Networks[name], rule.Network{}
		if name == "ip" && w.ipIsAddress {
			meant = rule.Network{V6: 64}
		}
		if n == meant {
			continue
		}
		if n == (rule.Network{}) {
			n.V6 = 128
		}
		var bits table
		bits.count("v4", int64(n.V4))
		bits.count("v6", int64(n.V6))
		all[i] = table{{key: text(name), value: bits}}
	}
	return all
}

// banOf returns a length of time, or a table.
func banOf(b *window.Ban) value {
	t := table{{key: "for", value: length(b.For)}}
	t.count("factor", b.Factor)
	t.add(b.Most > 0, "most", length(b.Most))
	t.add(b.Forget > 0, "forget", length(b.Forget))
	if len(t) == 1 {
		return t[0].value
	}
	return t
}

// numbers returns a table of names with a number, or all, each.
func numbers(of map[string]int64) (t table) {
	for _, name := range sorted(of) {
		n := number(of[name])
		if of[name] == window.All {
			n = "all"
		}
		t.add(true, text(name), n)
	}
	return t
}

// quota returns a number, or a table for a quota that depends on an attribute.
func (w *writer) quota(q *rule.Quota) value {
	if q.Attribute() == "" {
		return number(q.Value)
	}
	for _, word := range []string{"by", "else"} {
		if _, ok := q.Cases[word]; ok {
			w.cannot("limit", "a quota for %s %q cannot be told from the key %s", q.By, word, word)
		}
	}
	var t table
	if q.Of != "" {
		t = table{{key: "of", value: text(q.Of)}, {key: "most", value: number(q.Most)}}
	} else {
		t = append(table{{key: "by", value: text(q.By)}}, numbers(q.Cases)...)
	}
	if q.Else != nil {
		t.add(true, "else", number(*q.Else))
	}
	return t
}

// zoneOf returns the time zone of a rule's calendar windows, and the file's
// when it has none.
func (w *writer) zoneOf(r *rule.Rule) *time.Location {
	zone := w.zone
	for i, win := range []window.Window{r.Window, r.After.Window} {
		if win.Period == 0 {
			continue
		}
		its := cmp.Or(win.Zone, time.UTC)
		if i > 0 && r.Window.Period != 0 && zone.String() != its.String() {
			w.cannot("timezone", "its windows follow %s and %s, want one zone for both", zone, its)
		}
		if zone.String() != its.String() {
			zone = its
		}
	}
	return zone
}

// windowOf returns win, in the short form if only its length or its period is set.
func windowOf(win window.Window) value {
	kind := scalar(win.Kind.String())
	if win.Kind == window.KindEver {
		return kind
	}
	short, size := win.Kind == window.KindSliding, length(win.Length)
	if win.Period != 0 {
		short, size = true, scalar(win.Period.String())
	}
	t := table{{key: kind, value: size}}
	t.count("precision", int64(win.Precision))
	t.count("n", int64(win.N))
	t.count("burst", win.Burst)
	if win.Period == window.Week {
		t.add(win.Anchor > 0, "starts", scalar(strings.ToLower(time.Weekday(win.Anchor%7).String())))
	} else {
		t.count("starts", int64(win.Anchor))
	}
	if short && len(t) == 1 {
		return size
	}
	return t
}

// length returns d as a whole number of the longest possible unit.
func length(d time.Duration) scalar {
	for _, u := range []struct {
		name scalar
		unit time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}, {"us", time.Microsecond}} {
		if d%u.unit == 0 {
			return number(int64(d/u.unit)) + u.name
		}
	}
	return scalar(d.String())
}

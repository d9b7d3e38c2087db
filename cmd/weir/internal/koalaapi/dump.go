package koalaapi

import (
	"fmt"
	"html"
	"net/http"
	"strings"
	"time"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// dumpCounter answers with how often each rule has allowed and denied today, or
// only the rule `rule_no`.
func (a *API) dumpCounter(x *exchange, _ *http.Request) reply {
	t := a.tables.inForce(x.space)
	if code := x.parameter("rule_no"); code != "" && code != "0" {
		i := t.numbered(code)
		if i >= 0 {
			if text := a.counted(t, i); text != "" {
				return reply{body: []byte(text)}
			}
		}
		return reply{http.StatusBadRequest, []byte("rule no found or not used!")}
	}
	var all strings.Builder
	for i := range t.lines {
		if text := a.counted(t, i); text != "" {
			all.WriteString(text + " <br />")
		}
	}
	return reply{body: []byte(all.String())}
}

// counted returns the statistics of rule i in words, or an empty string if
// there are none.
func (a *API) counted(t *table, i int) string {
	allowed, denied, err := a.tally.today(t.lines[i].tally)
	if err != nil || t.lines[i].code == 0 || allowed+denied == 0 {
		return ""
	}
	return fmt.Sprintf("  rule_no:%d  allow:%d  deny:%d ", t.lines[i].code, allowed, denied)
}

// dumpPolicy answers with the rules in force.
func (a *API) dumpPolicy(x *exchange, _ *http.Request) reply {
	t := a.tables.inForce(x.space)
	var all strings.Builder
	for i := range t.lines {
		r := t.set.Rule(i)
		count := int64(0)
		if r.Quota != nil {
			count = r.Quota.Value
		}
		fmt.Fprintf(&all, "methord_ %s _keys_ %s _base_ %d _time_ %d _count_ %d _result_ %d _returnCode_ %d<br /><br />",
			method(r), keys(r), r.After.Count, seconds(&r.Window), count, t.lines[i].kind, t.lines[i].code)
	}
	return reply{body: []byte(all.String())}
}

// method returns koala's word for the kind of r.
func method(r *rule.Rule) string {
	switch {
	case r.Kind() == rule.KindVerdict:
		return "direct"
	case r.After.Count > 0:
		return "base"
	case r.Window.Kind == window.KindFixed, r.Window.Kind == window.KindCalendar, r.Window.Kind == window.KindAligned:
		return "count"
	}
	return "leak"
}

func keys(r *rule.Rule) string {
	var all strings.Builder
	for i := range r.When {
		fmt.Fprintf(&all, "%s %s;", r.When[i].Attribute, r.When[i].Test)
	}
	return html.EscapeString(all.String())
}

// seconds returns the length of w in koala's unit. A calendar period counts as
// a day, the only one that koala has.
func seconds(w *window.Window) int64 {
	if w.Kind == window.KindCalendar {
		return int64(24 * time.Hour / time.Second)
	}
	return int64(w.Length / time.Second)
}

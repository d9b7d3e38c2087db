package rulefile_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/rulefile"
	"github.com/weirhq/weir/window"
)

// dump returns a file's content in one form for the many ways of writing it.
func dump(f *rulefile.File) string {
	var b strings.Builder
	fmt.Fprintf(&b, "zone %v\n", f.Zone)
	if a := f.Set.Compiled().Addresses(); len(a) > 0 && !slices.Equal(a, []string{"ip"}) {
		fmt.Fprintf(&b, "addresses %v\n", a)
	}
	for i := range f.Set.Len() {
		dumpRule(&b, f.Set.Rule(i))
	}
	return b.String()
}

func dumpRule(b *strings.Builder, r *rule.Rule) {
	fmt.Fprintf(b, "%s: %s", r.Name, kinds[r.Kind()])
	if q := r.Quota; q != nil {
		fmt.Fprintf(b, " %s", dumpQuota(q))
	}
	if r.Trigger > 0 {
		fmt.Fprintf(b, " at %d", r.Trigger)
	}
	if r.Measure != window.Count {
		fmt.Fprintf(b, " %v of %s", r.Measure, r.Of)
	}
	if r.Window != (window.Window{}) {
		fmt.Fprintf(b, ", %s", dumpWindow(r.Window))
	}
	if len(r.Per) > 0 {
		fmt.Fprintf(b, ", per %s", strings.Join(r.Per, "+"))
		for _, name := range r.Per {
			if n, ok := r.Networks[name]; ok {
				fmt.Fprintf(b, " (%s%s%s)", name, bits(" v4/", n.V4), bits(" v6/", n.V6))
			}
		}
	}
	if r.Together != "" {
		fmt.Fprintf(b, ", together by %s", r.Together)
	}
	if r.After.Count > 0 {
		fmt.Fprintf(b, ", after %d in %s", r.After.Count, dumpWindow(r.After.Window))
	}
	for _, flag := range []struct {
		set  bool
		text string
	}{
		{r.Then != "", "then " + r.Then},
		{r.Code > 0, fmt.Sprintf("code %d", r.Code)},
		{r.CountRest, "rest count"},
		{len(r.Feedback) > 0, fmt.Sprintf("feedback %v", r.Feedback)},
		{r.Mode != rule.Enforce, "mode " + r.Mode.String()},
		{r.OnOutage != rule.OutageLocal, "on outage " + r.OnOutage.String()},
		{r.CountDenied, "counts denied"},
		{r.Once, "once"},
		{r.Near > 0, fmt.Sprintf("near at %d%%", r.Near)},
		{r.Hold > 0, fmt.Sprintf("holds %v, then %s", r.Hold, map[bool]string{false: "keep", true: "release"}[r.Release])},
		{r.MaxHolds > 0, fmt.Sprintf("at most %d holds", r.MaxHolds)},
		{r.Ban.For > 0, fmt.Sprintf("bans %v × %d, at most %v, forgets in %v", r.Ban.For, r.Ban.Factor, r.Ban.Most, r.Ban.Forget)},
		{r.MaxKeys > 0, fmt.Sprintf("at most %d keys", r.MaxKeys)},
	} {
		if flag.set {
			fmt.Fprintf(b, ", %s", flag.text)
		}
	}
	b.WriteByte('\n')
	for _, c := range r.When {
		fmt.Fprintf(b, "  %s %v", c.Attribute, c.Test)
		if c.Trim {
			b.WriteString(" (trimmed)")
		}
		b.WriteByte('\n')
	}
}

var kinds = map[rule.Kind]string{
	rule.KindLimit: "limit", rule.KindTrigger: "trigger", rule.KindCounter: "counter", rule.KindVerdict: "verdict",
}

func dumpQuota(q *rule.Quota) string {
	if q.Attribute() == "" {
		return fmt.Sprint(q.Value)
	}
	cases := make([]string, 0, len(q.Cases))
	for value, n := range q.Cases {
		cases = append(cases, fmt.Sprintf("%s:%d", value, n))
	}
	slices.Sort(cases)
	if q.Else != nil {
		cases = append(cases, fmt.Sprintf("else:%d", *q.Else))
	}
	if q.Of != "" {
		return fmt.Sprintf("of %s, most %d %v", q.Of, q.Most, cases)
	}
	return fmt.Sprintf("by %s %v", q.By, cases)
}

func dumpWindow(w window.Window) string {
	text := w.Kind.String()
	for _, part := range []struct {
		set  bool
		text string
	}{
		{w.Length > 0, w.Length.String()},
		{w.Period > 0, w.Period.String()},
		{w.Zone != nil, fmt.Sprint(w.Zone)},
		{w.Precision > 0, fmt.Sprintf("precision %d", w.Precision)},
		{w.N > 0, fmt.Sprintf("n %d", w.N)},
		{w.Burst > 0, fmt.Sprintf("burst %d", w.Burst)},
		{w.Anchor > 0, fmt.Sprintf("starts %d", w.Anchor)},
	} {
		if part.set {
			text += " " + part.text
		}
	}
	return text
}

// bits returns the length of a network after its family, and "" for the whole address.
func bits(family string, n int) string {
	if n == 0 {
		return ""
	}
	return family + strconv.Itoa(n)
}

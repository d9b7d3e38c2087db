package koalaapi

import (
	"slices"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// over returns the indexes, in the rules' order, of the verdicts of a decision and of
// the limits that the request is over. It skips rules in shadow mode, triggers and
// counters.
func over(d *weir.Decision) (all []int) {
	for _, name := range d.Verdicts {
		i, _ := d.Rules.Find(name)
		all = append(all, i)
	}
	first := d.Rules.Len() // the first verdict
	if len(all) > 0 {
		first = all[0]
	}
	for n := range d.Usages {
		u := &d.Usages[n]
		if u.Kind != rule.KindLimit || u.Shadow {
			continue
		}
		if i, _ := d.Rules.Find(u.Rule); !u.Allowed || first < i && wasOver(d, u, i) {
			all = append(all, i)
		}
	}
	slices.Sort(all)
	return all
}

// wasOver reports whether rule i, the rule of u, which stands behind a verdict, was over its
// limit before the request. Such a rule denies nothing: an allowed take counts
// in it past its limit, and a denied take does not count.
func wasOver(d *weir.Decision, u *weir.Usage, i int) bool {
	switch {
	case u.Quota == window.Unlimited:
		return false
	case d.Allowed && d.Rules.Rule(i).After.Count > 0 && u.Used == u.Before:
		return false // the limit does not hold yet
	}
	return u.Before >= u.Quota
}

package replay

import (
	"maps"
	"slices"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// newAlone returns a decider in which every limit is in shadow mode, so that it
// counts what it admits itself, and no limit keeps requests from another one.
// Verdicts stay.
func newAlone(rules *rule.Set, f *feed) (*decider, error) {
	return newChanged(rules, f, func(r *rule.Rule) {
		if r.Kind() == rule.KindLimit && r.Mode == rule.Enforce {
			r.Mode = rule.Shadow
		}
	})
}

// newChanged returns a decider of rules with what change makes of each.
func newChanged(rules *rule.Set, f *feed, change func(r *rule.Rule)) (*decider, error) {
	list := make([]rule.Rule, rules.Len())
	outcomes := map[string]rule.Outcome{}
	for i := range list {
		list[i] = *rules.Rule(i)
		r := &list[i]
		if o, ok := rules.Outcome(r.Then); ok && r.Then != rule.Allow && r.Then != rule.Deny {
			outcomes[r.Then] = o
		}
		change(r)
	}
	set, err := like(rules, list, outcomes)
	if err != nil {
		return nil, err
	}
	return newDecider(set, f)
}

// like compiles list into a set with the addresses of rules.
func like(rules *rule.Set, list []rule.Rule, outcomes map[string]rule.Outcome) (*rule.Set, error) {
	set, err := rule.New(list, outcomes)
	if err != nil {
		return nil, err
	}
	return set.WithAddresses(rules.Compiled().Addresses()...)
}

// addAlone counts what each limit decides alone about a request that was decided
// as real.
func (ts *tallies) addAlone(alone, real *weir.Decision) {
	for i := range alone.Usages {
		u := &alone.Usages[i]
		if u.Allowed || u.Kind != rule.KindLimit {
			continue
		}
		t := ts.named[u.Rule]
		t.alone++
		if real.Allowed || real.Rule == u.Rule {
			continue
		}
		denies := slices.ContainsFunc(real.Usages, func(o weir.Usage) bool { return o.Rule == u.Rule && !o.Allowed })
		if !denies && real.Rule != "" {
			t.maskedBy[real.Rule]++
		}
	}
}

// masks returns by which rules a rule is masked, the most important one first.
func (t *tally) masks() []Mask {
	list := []Mask{} // not null in the JSON
	for _, name := range slices.Sorted(maps.Keys(t.maskedBy)) {
		list = append(list, Mask{name, t.maskedBy[name]})
	}
	slices.SortStableFunc(list, func(a, b Mask) int { return int(b.Denied - a.Denied) })
	return list
}

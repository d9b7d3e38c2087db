package replay

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// tallies counts decisions, in total and by rule.
type tallies struct {
	rules []*tally
	named map[string]*tally
	seed  maphash.Seed

	// last has the tallies of the decision before, by the index of the usage. Most
	// decisions have the same rules at the same indexes, which saves a lookup.
	last []*tally

	allowed, denied     int64
	unmatched, degraded int64
	outcomes            map[string]int64
	outcome             string // the last one, with its count in outcomes not yet added
	outcomeCount        int64
	over                *timeline
	hours               *timeline
}

type tally struct {
	Tally
	verdict     bool
	seen        map[uint64]struct{} // hashes of keys
	byKey       keyDenials
	first, last window.Instant // of denials
	over        *timeline

	alone    int64
	maskedBy map[string]int64
}

// keyDenials are the denied requests of each key.
type keyDenials map[string]*denials

type denials struct {
	n           int64
	first, last window.Instant
}

// add counts a denied request.
func (ks keyDenials) add(key string, now window.Instant) {
	d := ks[key]
	if d == nil {
		d = &denials{first: now, last: now}
		ks[strings.Clone(key)] = d // key shares memory with a block
	}
	d.n++
	d.first, d.last = min(d.first, now), max(d.last, now)
}

// top returns the n keys with the most denials, most first.
func (ks keyDenials) top(n int) []DeniedKey {
	keys := make([]DeniedKey, 0, len(ks)) // an empty list in the JSON, not null
	for key, d := range ks {
		keys = append(keys, DeniedKey{key, d.n, d.first.Time(), d.last.Time()})
	}
	slices.SortFunc(keys, func(a, b DeniedKey) int {
		return cmp.Or(cmp.Compare(b.Denied, a.Denied), cmp.Compare(a.Key, b.Key))
	})
	return keys[:min(max(n, 0), len(keys))]
}

// hourly is the index of an hour in widths.
var hourly = slices.Index(widths, 3600)

func newTallies(rules *rule.Set) *tallies {
	ts := &tallies{
		named: make(map[string]*tally, rules.Len()), seed: maphash.MakeSeed(),
		outcomes: map[string]int64{}, over: newTimeline(0, mostBuckets), hours: newTimeline(hourly, mostHours),
	}
	for i := range rules.Len() {
		r := rules.Rule(i)
		t := &tally{
			Tally:    Tally{Name: r.Name, Kind: r.Kind().String(), Mode: r.Mode.String()},
			verdict:  r.Kind() == rule.KindVerdict,
			seen:     make(map[uint64]struct{}),
			byKey:    keyDenials{},
			over:     newTimeline(0, mostBuckets),
			maskedBy: make(map[string]int64),
		}
		ts.rules = append(ts.rules, t)
		ts.named[r.Name] = t
	}
	return ts
}

// add counts the decision of e.
func (ts *tallies) add(d *weir.Decision, e *Entry) {
	now, decides := e.Time, e.Verb != Record
	if decides {
		ts.total(d, now)
	}
	for i := range d.Usages {
		u := &d.Usages[i]
		t := ts.of(i, u.Rule)
		// A key with earlier hits in its window is in seen already.
		if u.Before == 0 {
			t.seen[maphash.String(ts.seed, u.Key)] = struct{}{}
		}
		if !decides {
			continue
		}
		t.Matched++
		within := u.Allowed || u.Kind != rule.KindLimit // triggers and counters admit everything
		t.over.add(now, within)
		if u.Held {
			t.Held++
		}
		if within {
			t.Allowed++
			continue
		}
		if u.Banned {
			t.Banned++
		}
		t.deny(now)
		t.byKey.add(u.Key, now)
		if u.Shadow {
			t.Shadowed++
		}
	}
	for _, name := range d.Triggered {
		ts.named[name].Triggered++
	}
	if d.Rule == "" {
		return
	}
	t := ts.named[d.Rule]
	t.Decided++
	if t.verdict {
		t.Matched++
		t.over.add(now, d.Allowed)
		if d.Allowed {
			t.Allowed++
		} else {
			t.deny(now)
		}
	}
}

// total counts a decision in the totals.
func (ts *tallies) total(d *weir.Decision, now window.Instant) {
	if d.Degraded {
		ts.degraded++
	}
	if d.Unmatched {
		ts.unmatched++
	}
	if d.Allowed {
		ts.allowed++
	} else {
		ts.denied++
	}
	if d.Outcome != ts.outcome {
		ts.outcomes[ts.outcome] += ts.outcomeCount
		ts.outcome, ts.outcomeCount = d.Outcome, 0
	}
	ts.outcomeCount++
	ts.over.add(now, d.Allowed)
	ts.hours.add(now, d.Allowed)
}

// of returns the tally of the rule of usage i.
func (ts *tallies) of(i int, rule string) *tally {
	if i == len(ts.last) {
		ts.last = append(ts.last, ts.named[rule])
	}
	if ts.last[i].Name != rule {
		ts.last[i] = ts.named[rule]
	}
	return ts.last[i]
}

func (t *tally) deny(now window.Instant) {
	if t.Denied == 0 {
		t.first, t.last = now, now
	}
	t.first, t.last = min(t.first, now), max(t.last, now)
	t.Denied++
}

// report returns the report of a replay.
func (r *run) report(f *feed, o *options) *Report {
	ts := r.tallies
	ts.outcomes[ts.outcome] += ts.outcomeCount
	delete(ts.outcomes, "")
	ts.outcome, ts.outcomeCount = "", 0
	report := &Report{
		Lines: f.lines, Bad: f.bad, Skipped: skippedOf(f.reader), Records: f.records, Ends: f.ends, Requests: ts.allowed + ts.denied, Allowed: ts.allowed, Denied: ts.denied,
		Unmatched: ts.unmatched, Degraded: ts.degraded, Outcomes: ts.outcomes, BadLines: f.badLines, Missing: f.missing(),
		Rules: make([]Tally, len(ts.rules)), Timeline: ts.over.report(), Hours: ts.hours.report(),
	}
	report.From, report.To = f.span()
	for i, t := range ts.rules {
		final := t.Tally
		final.Keys, final.KeysDenied = int64(len(t.seen)), int64(len(t.byKey))
		final.TopDenied = t.byKey.top(o.top)
		final.Timeline = t.over.report()
		final.Peaks = r.peaks.of(final.Name)
		if t.Denied > 0 {
			first, last := t.first.Time(), t.last.Time()
			final.FirstDenied, final.LastDenied = &first, &last
		}
		if o.alone && final.Kind == rule.KindLimit.String() {
			alone := t.alone
			final.Alone, final.MaskedBy = &alone, t.masks()
		}
		report.Rules[i] = final
	}
	return report
}

// newAlone returns a decider in which every limit is in shadow mode, so that it counts what it
// admits, and no limit hides requests from another one. Verdicts stay.
func newAlone(rules *rule.Set, f *feed) (*decider, error) {
	return newChanged(rules, f, func(r *rule.Rule) {
		if r.Kind() == rule.KindLimit && r.Mode == rule.Enforce {
			r.Mode = rule.Shadow
		}
	})
}

// newChanged returns a decider of rules after applying change to each.
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

// like compiles list into a set with the address attributes of rules.
func like(rules *rule.Set, list []rule.Rule, outcomes map[string]rule.Outcome) (*rule.Set, error) {
	set, err := rule.New(list, outcomes)
	if err != nil {
		return nil, err
	}
	return set.WithAddresses(rules.Compiled().Addresses()...)
}

// addAlone counts what each limit would decide without the others, for a request whose decision
// is real.
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

// masks returns the rules that mask a rule, the most important one first.
func (t *tally) masks() []Mask {
	list := []Mask{} // not null in the JSON
	for _, name := range slices.Sorted(maps.Keys(t.maskedBy)) {
		list = append(list, Mask{name, t.maskedBy[name]})
	}
	slices.SortStableFunc(list, func(a, b Mask) int { return int(b.Denied - a.Denied) })
	return list
}

package replay

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// tallies counts decisions by rule.
type tallies struct {
	rules []*tally
	named map[string]*tally
	seed  maphash.Seed

	// last has the tallies of the decision before, by the index of the usage. Most
	// decisions have the same rules at the same indexes, which saves a lookup.
	last []*tally
}

type tally struct {
	Tally
	verdict     bool
	seen        map[uint64]struct{} // hashes of keys
	denied      map[string]*int64   // by key
	first, last window.Instant      // of denials
}

func newTallies(rules *rule.Set) tallies {
	ts := tallies{named: make(map[string]*tally, rules.Len()), seed: maphash.MakeSeed()}
	for i := range rules.Len() {
		r := rules.Rule(i)
		t := &tally{
			Tally:   Tally{Name: r.Name},
			verdict: r.Kind() == rule.KindVerdict,
			seen:    make(map[uint64]struct{}),
			denied:  make(map[string]*int64),
		}
		ts.rules = append(ts.rules, t)
		ts.named[r.Name] = t
	}
	return ts
}

// add counts a decision made at now.
func (ts *tallies) add(d *weir.Decision, now window.Instant) {
	for i := range d.Usages {
		u := &d.Usages[i]
		t := ts.of(i, u.Rule)
		t.Matched++
		// A key with earlier hits in its window is in seen already.
		if u.Before == 0 {
			t.seen[maphash.String(ts.seed, u.Key)] = struct{}{}
		}
		if u.Allowed {
			t.Allowed++
		} else {
			t.deny(now)
			t.denyKey(u.Key)
		}
	}
	if d.Rule == "" {
		return
	}
	t := ts.named[d.Rule]
	t.Decided++
	if t.verdict {
		t.Matched++
		if d.Allowed {
			t.Allowed++
		} else {
			t.deny(now)
		}
	}
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

func (t *tally) denyKey(key string) {
	n := t.denied[key]
	if n == nil {
		n = new(int64)
		t.denied[strings.Clone(key)] = n // key shares memory with a block
	}
	*n++
}

// report returns the tallies, each with its top keys.
func (ts *tallies) report(top int) []Tally {
	report := make([]Tally, len(ts.rules))
	for i, t := range ts.rules {
		final := t.Tally
		final.Keys = int64(len(t.seen))
		final.TopDenied = t.topDenied(top)
		if t.Denied > 0 {
			final.FirstDenied, final.LastDenied = t.first.Time(), t.last.Time()
		}
		report[i] = final
	}
	return report
}

func (t *tally) topDenied(top int) []DeniedKey {
	keys := make([]DeniedKey, 0, len(t.denied)) // an empty list in the JSON, not null
	for key, n := range t.denied {
		keys = append(keys, DeniedKey{key, *n})
	}
	slices.SortFunc(keys, func(a, b DeniedKey) int {
		return cmp.Or(cmp.Compare(b.Denied, a.Denied), cmp.Compare(a.Key, b.Key))
	})
	return keys[:min(max(top, 0), len(keys))]
}

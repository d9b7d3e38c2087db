package replay

import (
	"context"
	"hash/maphash"
	"math"
	"slices"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// Distribution describes the peaks of the keys of a limit: the highest use of each
// key in the window, if no limit denied any request. A limit that depends on an
// attribute is 100, and peaks are in percent of it.
//
// Peaks are counted as the limit counts, in groups above its precision, up to ten
// times the limit, or up to the limit if that is the value of an attribute. The use of a bucket is that of a sliding window of its length.
type Distribution struct {
	// Quota is the limit. It is one of Bounds. Percent reports whether all numbers
	// are percent of the limit, because that depends on an attribute.
	Quota   int64 `json:"quota"`
	Percent bool  `json:"percent,omitempty"`

	// Keys[i] keys have a peak of at most Bounds[i] and more than Bounds[i-1].
	// Above keys have a higher one.
	Bounds []int64 `json:"bounds"`
	Keys   []int64 `json:"keys"`
	Above  int64   `json:"above"`
}

// WithPeaks makes [Run] and [Compare] also measure the peaks of keys, for
// [Tally.Peaks] and [Comparison.Peaks]. It about doubles the time for each set
// of rules. The memory for a key is bounded.
func WithPeaks() Option { return func(o *options) { o.peaks = true } }

// beyond is the multiple of the limit up to which peaks are measured.
const beyond = 10

// measuring measures the peaks of the keys of all limits of a set of rules.
type measuring struct {
	decider *decider
	named   map[string]*measured
	last    []*measured // by the index of the usage, as in tallies
	seed    maphash.Seed
}

// measured is one limit whose peaks are measured.
type measured struct {
	Distribution
	name   string
	factor int64            // the multiplied quota divided by the limit
	keys   map[uint64]uint8 // by the hash of a key: the index of its range
}

// newMeasuring returns a measuring for rules. The bounds of a limit contain the
// quotas of the limit with the same name in other, which can be nil.
func newMeasuring(rules, other *rule.Set, f *feed) (*measuring, error) {
	m := &measuring{named: map[string]*measured{}, seed: maphash.MakeSeed()}
	decider, err := newChanged(rules, f, func(r *rule.Rule) {
		if r.Kind() != rule.KindLimit || r.Mode == rule.Off {
			return
		}
		quotas := []int64{r.Quota.Value}
		if other != nil && r.Quota.Attribute() == "" {
			if i, ok := other.Find(r.Name); ok {
				if o := other.Rule(i); o.Kind() == rule.KindLimit && o.Quota.Attribute() == "" {
					quotas = append(quotas, o.Quota.Value)
				}
			}
		}
		m.named[r.Name] = newMeasured(r, quotas, f.endsHolds)
	})
	m.decider = decider
	return m, err
}

// newMeasured changes r to measure instead of limit, and returns the measurement.
// quotas[0] is the quota of r, if that is one number. ends is as for loosen.
func newMeasured(r *rule.Rule, quotas []int64, ends bool) *measured {
	t := &measured{name: r.Name, keys: map[uint64]uint8{}}
	t.Quota, t.Percent = quotas[0], r.Quota.Attribute() != ""
	base := max(1, slices.Max(quotas))
	if t.Percent {
		t.Quota, quotas = 100, []int64{100}
		base = max(base, r.Quota.Highest())
	}
	t.factor = loosen(r, base, ends)
	top := base * t.factor
	if t.Percent {
		top = 100 * t.factor
	}
	t.Bounds = boundsOf(quotas, top)
	t.Keys = make([]int64, len(t.Bounds))
	return t
}

// loosen multiplies the limit of r, whose highest quota is base, by a factor, and returns the
// factor. It drops conditions and bans. ends reports whether the log has the ends of holds.
func loosen(r *rule.Rule, base int64, ends bool) (factor int64) {
	most := window.MaxHits
	switch {
	case r.Measure == window.Distinct:
		most = window.MaxEntries
	case r.Window.Kind == window.KindHeld && r.Measure == window.Count:
		most = window.MaxEntries
	case r.Window.Kind == window.KindHeld:
		most = 1 << 40 // the largest quota of such a window
	}
	factor = max(1, min(beyond, most/base))
	if r.Quota.Of != "" { // a quota that comes with the request cannot be multiplied
		factor = 1
	}
	r.Mode, r.After, r.Ban, r.CountDenied = rule.Shadow, window.After{}, window.Ban{}, false
	if r.Hold > 0 && !r.Release && !ends { // counts like a hit without a hold
		r.Hold = 0
	}
	r.MaxHolds = 0
	if r.Hold > 0 || r.Window.Kind == window.KindHeld {
		r.MaxHolds = window.MaxEntries
	}
	if r.Window.Kind == window.KindBucket {
		r.Window = window.Sliding(r.Window.Length)
	}
	if r.Window.Kind == window.KindSliding && r.Measure != window.Distinct {
		precision := int64(window.Limit{Window: r.Window}.WithDefaults().Window.Precision)
		r.Window.Precision = int(min(precision*factor, window.MaxEntries)) // the size of groups does not change
	}
	loose := *r.Quota
	loose.Cases = map[string]int64{}
	for value, q := range r.Quota.Cases {
		loose.Cases[value] = q * factor
	}
	if r.Quota.Else != nil {
		q := *r.Quota.Else * factor
		loose.Else = &q
	}
	if loose.Attribute() == "" {
		loose.Value = base * factor
	}
	r.Quota = &loose
	return factor
}

// boundsOf returns ranges for peaks up to top: 1, 2, 3, 5, 7, 10 and so on, from a
// hundredth of the lowest quota, with all quotas among them.
func boundsOf(quotas []int64, top int64) []int64 {
	bounds := append(slices.Clone(quotas), top)
	least := slices.Min(quotas) / 100
	for tens := int64(1); tens <= top && tens <= math.MaxInt64/100; tens *= 10 {
		for _, n := range []int64{1, 2, 3, 5, 7} {
			if n *= tens; n >= least && n < top {
				bounds = append(bounds, n)
			}
		}
	}
	slices.Sort(bounds)
	return slices.Compact(bounds)
}

// take measures e. m can be nil.
func (m *measuring) take(ctx context.Context, e *Entry) error {
	if m == nil || e.Verb == Check { // which uses nothing
		return nil
	}
	use, err := m.decider.do(ctx, e, Take)
	if err == nil {
		m.add(use)
	}
	return err
}

// add counts a decision of the measuring rules.
func (m *measuring) add(d *weir.Decision) {
	for i := range d.Usages {
		u := &d.Usages[i]
		if i == len(m.last) {
			m.last = append(m.last, m.named[u.Rule])
		} else if m.last[i] == nil || m.last[i].name != u.Rule {
			m.last[i] = m.named[u.Rule]
		}
		t := m.last[i]
		if t == nil { // no limit
			continue
		}
		in := uint8(len(t.Bounds)) // above
		if u.Allowed {
			at, _ := slices.BinarySearch(t.Bounds, t.scale(u.Used, u.Quota))
			in = uint8(at)
		}
		key := maphash.String(m.seed, u.Key)
		if before, known := t.keys[key]; !known || before < in {
			t.keys[key] = in
		}
	}
}

// scale returns a use in the unit of the bounds. quota is the multiplied one.
func (t *measured) scale(used, quota int64) int64 {
	if !t.Percent {
		return used
	}
	return int64(math.Ceil(100 * float64(used) / float64(max(1, quota/t.factor))))
}

// of returns the peaks of the rule called name, or nil.
func (m *measuring) of(name string) *Distribution {
	if m == nil || m.named[name] == nil {
		return nil
	}
	t := m.named[name]
	d := t.Distribution
	d.Keys = make([]int64, len(t.Bounds)+1)
	for _, in := range t.keys {
		d.Keys[in]++
	}
	d.Keys, d.Above = d.Keys[:len(t.Bounds)], d.Keys[len(t.Bounds)]
	return &d
}

// ComparedPeaks has the peaks of a limit that is in the old rules, in the new ones, or
// in both. What is missing is nil. In both, the bounds are the same if both quotas are
// numbers.
type ComparedPeaks struct {
	Rule string        `json:"rule"`
	Old  *Distribution `json:"old,omitempty"`
	New  *Distribution `json:"new,omitempty"`
}

// comparedPeaks returns the peaks in the order of the new rules; those that only the
// old rules have follow.
func comparedPeaks(before, after *rule.Set, old, current *measuring) []ComparedPeaks {
	var list []ComparedPeaks
	for i := range after.Len() {
		name := after.Rule(i).Name
		if p := (ComparedPeaks{name, old.of(name), current.of(name)}); p.Old != nil || p.New != nil {
			list = append(list, p)
		}
	}
	for i := range before.Len() {
		name := before.Rule(i).Name
		if _, both := after.Find(name); !both && old.of(name) != nil {
			list = append(list, ComparedPeaks{Rule: name, Old: old.of(name)})
		}
	}
	return list
}

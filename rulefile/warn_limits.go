package rulefile

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// missingElse warns of a limit that depends on an attribute, without a limit for other requests.
func (l *linter) missingElse(i int) {
	r := &l.rules[i]
	if r.Quota == nil || r.Quota.Attribute() == "" || r.Quota.Else != nil {
		return
	}
	if of := r.Quota.Of; of != "" {
		if !slices.ContainsFunc(r.When, func(c rule.Condition) bool { return c.Attribute == of && !c.Test.Holds("") }) {
			l.warn(i, "missing-else", l.field(i, "limit"), "limit has no else: requests without %s are not limited", of)
		}
		return
	}
	for _, c := range r.When {
		values, ok := l.compare.valuesOf(c.Test)
		if ok && c.Attribute == r.Quota.By && !slices.ContainsFunc(values, func(v string) bool { _, has := r.Quota.Cases[v]; return !has }) {
			return // the rule does not match other values anyway
		}
	}
	if l.compare.left <= 0 {
		return
	}
	hint := ""
	for _, v := range slices.Sorted(maps.Keys(r.Quota.Cases)) {
		if fault.DidYouMean(v, []string{"else"}) != "" {
			hint = fmt.Sprintf(" (%q is a value of %s: did you mean \"else\"?)", v, r.Quota.By)
		}
	}
	l.warn(i, "missing-else", l.field(i, "limit"), "limit has no else: requests with another %s, or without one, are not limited%s", r.Quota.By, hint)
}

// outage warns of on_outage in a rule that does not decide.
func (l *linter) outage(i int) {
	r := &l.rules[i]
	n := l.nodes[i].get("on_outage")
	switch {
	case n == nil:
	case r.Kind() != rule.KindLimit:
		l.warn(i, "outage-without-effect", n, "on_outage has no effect: a %s does not deny because of its count", r.Kind())
	case r.Mode == rule.Shadow:
		l.warn(i, "outage-without-effect", n, "on_outage has no effect in shadow mode: the rule does not deny")
	}
}

// unreachable warns of a trigger in a bucket that never holds so many hits.
func (l *linter) unreachable(i int) {
	r := &l.rules[i]
	if burst := r.Window.Burst; r.Window.Kind == window.KindBucket && burst > 0 && burst < r.Trigger {
		l.warn(i, "never-reports", l.field(i, "trigger"), "the trigger never reports: its bucket holds at most %s, and the threshold is %d", count(burst, "hit"), r.Trigger)
	}
}

// quotas returns the numbers that a rule can compare its count with, or their bounds.
func quotas(r *rule.Rule) []int64 {
	switch {
	case r.Quota == nil && r.Trigger > 0:
		return []int64{r.Trigger}
	case r.Quota == nil:
		return nil
	case r.Quota.Attribute() == "":
		return []int64{r.Quota.Value}
	}
	all := slices.Collect(maps.Values(r.Quota.Cases))
	if r.Quota.Of != "" {
		all = []int64{0, r.Quota.Most}
	}
	if r.Quota.Else != nil {
		all = append(all, *r.Quota.Else)
	}
	return all
}

// groups warns of a sliding window that counts in groups of hits.
func (l *linter) groups(i int) {
	r := &l.rules[i]
	all := quotas(r)
	if r.Window.Kind != window.KindSliding || r.Measure == window.Distinct || len(all) == 0 {
		return
	}
	most := slices.Max(all)
	group := groupOf(r, most)
	if group <= 1 {
		return
	}
	effect := fmt.Sprintf("deny up to %s early", count(group-1, "hit"))
	if r.Kind() == rule.KindTrigger {
		effect = fmt.Sprintf("report up to %s early", count(group-1, "hit"))
	}
	advice := ""
	if most <= window.MaxEntries {
		advice = fmt.Sprintf(": for an exact count write {sliding: %s, precision: %d}", lengthText(r.Window.Length), most)
	}
	l.warn(i, "grouped-quota", l.field(i, "window"), "%d is counted in groups of %d, and can %s%s", most, group, effect, advice)
}

// groupOf returns the number of hits that share a date in the sliding window of r
// with a quota.
func groupOf(r *rule.Rule, quota int64) int64 {
	precision := precisionOf(r)
	if r.Window.Precision == 0 && r.Kind() == rule.KindTrigger {
		precision = window.MaxEntries
	}
	return max(1, (quota+precision-1)/precision)
}

// precisionOf returns the most dates of the sliding window of r.
func precisionOf(r *rule.Rule) int64 {
	return int64(window.Limit{Window: r.Window}.WithDefaults().Window.Precision)
}

func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

const (
	defaultMaxKeys = 10_000_000 // of a store in memory
	tooLarge       = 256 << 30  // bytes of all keys of a rule
	entryBytes     = 64         // overhead of a key, about
)

// size warns of a rule whose keys together may not fit into memory.
func (l *linter) size(i int) {
	r := &l.rules[i]
	if r.Kind() == rule.KindVerdict || len(r.Per) == 0 {
		return
	}
	keys := int64(defaultMaxKeys)
	if r.MaxKeys > 0 {
		keys = r.MaxKeys
	}
	state := stateBytes(r)
	if all := keys * (state + entryBytes); all > tooLarge {
		l.warn(i, "state-too-large", l.field(i, "window"), "a key can take %d KB, and %d keys %d GB: set max_keys, or choose a smaller state",
			(state+999)/1000, keys, all/1e9)
	}
}

// stateBytes returns about how many bytes the largest state of a key takes.
func stateBytes(r *rule.Rule) int64 {
	const word = 8
	most := window.MaxHits
	if all := quotas(r); len(all) > 0 {
		most = slices.Max(all)
	}
	w := r.Window
	switch {
	case r.Measure == window.Distinct:
		return 2 * word * min(most, window.MaxEntries)
	case w.Kind == window.KindSliding && r.Kind() != rule.KindCounter:
		return word * min(most, precisionOf(r))
	case w.Kind == window.KindCells:
		return word * int64(max(w.N, 60))
	}
	return 60 * word
}

// pointless warns of limits that another limit makes pointless.
func (l *linter) pointless() {
	limits := newIndex(l.rules, l.compare, l.decides)
	verdicts := make([]int, len(l.rules)) // how many are before each rule
	var all []int
	for i, n := 0, 0; i < len(l.rules); i++ {
		r := &l.rules[i]
		if l.decides(i) {
			limits.add(i)
			all = append(all, i)
		}
		verdicts[i] = n
		if r.Kind() == rule.KindVerdict && r.Mode != rule.Off {
			n++
		}
	}
	for _, i := range all {
		for _, j := range limits.find(&l.rules[i]) {
			// A verdict between them can end the evaluation before the second one.
			if i == j || verdicts[i] != verdicts[j] || !l.covers(j, i) || i < j && l.covers(i, j) {
				continue
			}
			by := &l.rules[j]
			l.warn(i, "pointless-limit", l.field(i, "limit"), "the limit never decides: %q, %s, is exceeded first", by.Name, limitOf(by))
			break
		}
	}
}

// decides reports whether rule i is a limit that can deny a request by itself.
func (l *linter) decides(i int) bool {
	r := &l.rules[i]
	return r.Kind() == rule.KindLimit && r.Mode == rule.Enforce && r.After == (window.After{}) && !l.never[i]
}

// covers reports whether requests that limit j admits never exceed limit i.
func (l *linter) covers(j, i int) bool {
	a, b := &l.rules[i], &l.rules[j]
	if a.Hold > 0 || b.Hold > 0 || a.Ban != (window.Ban{}) || b.Ban != (window.Ban{}) {
		return false // what is held can be corrected or last longer, and a ban empties a window
	}
	if a.Measure != b.Measure || a.Of != b.Of || a.CountDenied || len(b.Feedback) > 0 || b.Quota.Attribute() != "" {
		return false
	}
	if !l.compare.spend(len(a.Per)*len(b.Per)/16+len(a.Quota.Cases)/4) || slices.ContainsFunc(b.Per, func(name string) bool { return !slices.Contains(a.Per, name) }) {
		return false
	}
	most := slices.Min(quotas(a))
	if a.Window.Kind == window.KindSliding && a.Measure != window.Distinct {
		most -= groupOf(a, most) - 1 // a can deny early by a group
	}
	times := windowsIn(b.Window, a.Window)
	return times > 0 && b.Quota.Value <= most/times && l.compare.implies(a, b.When)
}

// longestPeriod holds the greatest length of each calendar period, with changes of
// clocks and leap years.
var longestPeriod = map[window.Period]time.Duration{
	window.Minute: time.Minute, window.Hour: 2 * time.Hour, window.Day: 25 * time.Hour,
	window.Week: (7*24 + 1) * time.Hour, window.Month: (31*24 + 1) * time.Hour, window.Year: (366*24 + 1) * time.Hour,
}

// windowsIn returns how many windows b contain the hits in any one window a, or 0 if that
// is not known. No window b admits more than its quota.
func windowsIn(b, a window.Window) int64 {
	length := a.Length
	switch {
	case b.Kind != window.KindSliding && b.Kind != window.KindCells:
		if b.Kind == a.Kind && b == a {
			return 1
		}
		return 0
	case a.Kind == window.KindSliding || a.Kind == window.KindFixed || a.Kind == window.KindAligned:
	case a.Kind == window.KindCells: // the oldest cell counts as a whole
		length += a.Length / time.Duration(max(a.N, 1))
	case a.Kind == window.KindCalendar:
		length = longestPeriod[a.Period]
	default:
		return 0
	}
	return int64((length + b.Length - 1) / b.Length)
}

// limitOf returns a limit in words, such as "5 in 1h".
func limitOf(r *rule.Rule) string {
	length := r.Window.Period.String()
	if r.Window.Period == 0 {
		length = lengthText(r.Window.Length)
	}
	return fmt.Sprintf("%d in %s", r.Quota.Value, length)
}

// lengthText returns d in days if it is whole days.
func lengthText(d time.Duration) string {
	const day = 24 * time.Hour
	if d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	return window.Length(d)
}

// estimates warns of a sum that a settle does not correct, although it corrects
// that of another rule.
func (l *linter) estimates(i int) {
	r := &l.rules[i]
	if r.Measure != window.Sum || r.Holds() || r.Kind() == rule.KindVerdict {
		return
	}
	if j, ok := l.held[r.Of]; ok {
		l.warn(i, "sum-of-estimates", l.field(i, "sum"), "counts the %s of the take: a settle corrects %q, which holds them, and not this rule", r.Of, l.rules[j].Name)
	}
}

// forgotten warns of hits that count forever in a store that does not outlive the process.
func (l *linter) forgotten(i int) {
	if r := &l.rules[i]; r.Kind() == rule.KindLimit && r.Window.Kind == window.KindEver {
		l.warn(i, "restart-forgets", l.field(i, "window"), "without a store or a data directory, a restart of the service forgets what counts forever")
	}
}

// leastLease is the smallest quota that one instance leases.
const leastLease = 128

// leased warns of a limit that asks for leases and is too small for the instances, or that admits more with a credit.
func (l *linter) leased(i int) {
	r := &l.rules[i]
	if r.Lease == 0 || r.Quota == nil {
		return
	}
	most, instances := slices.Max(quotas(r)), "several"
	if l.many > 2 {
		instances = strconv.FormatInt(l.many, 10)
	}
	switch {
	case most < l.many*leastLease:
		l.warn(i, "never-leased", l.field(i, "lease"), "a quota of %d is never leased by %s instances: each of them needs %d of it", most, instances, leastLease)
	case r.Lease > 0 && l.many > 2:
		l.warn(i, "past-quota", l.field(i, "lease"), "a window can have %d hits, with a quota of %d: %s instances have a credit of %d each", most+l.many*r.Lease, most, instances, r.Lease)
	case r.Lease > 0:
		l.warn(i, "past-quota", l.field(i, "lease"), "a window can have more hits than the quota of %d: %d for each instance", most, r.Lease)
	}
}

// noteWanted notes without which attributes rule i denies a request.
func (l *linter) noteWanted(i int) {
	r := &l.rules[i]
	if r.Kind() != rule.KindVerdict || r.Mode != rule.Enforce || r.Then == rule.Allow || l.pass.outcomes[r.Then].Allow {
		return
	}
	for _, c := range r.When {
		l.wanted[c.Attribute] = l.wanted[c.Attribute] || c.Test.Holds("")
	}
}

// banned warns of a ban that requests without an attribute do not meet.
func (l *linter) banned(i int) {
	r := &l.rules[i]
	if r.Ban == (window.Ban{}) || r.Measure == window.Count || r.Mode == rule.Shadow {
		return
	}
	if !l.wanted[r.Of] {
		l.warn(i, "ban-needs-attribute", l.field(i, "ban"), "a request without %s does not match the rule, and passes while the key is banned", r.Of)
	}
}

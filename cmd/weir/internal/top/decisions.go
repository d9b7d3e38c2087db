package top

import (
	"context"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
)

const (
	// maxDecisions and maxDecisionBytes bound the decisions that are kept, of all namespaces, and
	// decisionPace is how many are kept in a second.
	maxDecisions, maxDecisionBytes = 1000, 4 << 20
	decisionPace                   = 100

	// maxAttributes and maxJudged bound what is kept of one decision.
	maxAttributes, maxJudged = 16, 32

	// watchedMost is how many decisions a watcher gets at once.
	watchedMost = 100
)

// Decision is a take that some rule denied, or would have denied in shadow mode, as it was decided. It is
// immutable.
type Decision struct {
	Number uint64 // grows from each decision to the next
	Time   time.Time

	Allowed    bool
	Outcome    string
	Rule       string // that set the outcome; empty: none did
	RetryAfter time.Duration
	RetryRule  string
	Unmatched  bool
	Cause      store.Reason // of an outage; empty without one

	Hits int64 // that the request asked for

	// Attributes are those of the request that some rule uses, with their values as keys are shown.
	// They are missing if keys are not shown. Cut reports whether some are missing or shortened.
	Attributes []weir.Attribute
	Cut        bool

	// Judged are the answers of the rules that matched, in their order; not more than the first 32.
	Judged []Judged

	space string
	size  int
}

// Judged is the answer of one rule in a [Decision].
type Judged struct {
	Denial // Reason is empty if the rule allowed. Time and Outcome are not set.

	Kind       rule.Kind
	Remaining  int64
	ResetAfter time.Duration
	Limit      string // the window, as rules files write it
	Unit       string // what is summed or distinct; empty: hits
}

// DecisionFilter selects decisions. Its zero value selects all.
type DecisionFilter struct {
	Rule    string // that denied
	Reason  Reason // why it did
	Outcome string
	Text    string // is in a key or in the value of an attribute

	// Enforced leaves out decisions that only rules in shadow mode would have changed.
	Enforced bool
}

func (f *DecisionFilter) matches(d *Decision) bool {
	if f.Enforced && d.Allowed || f.Outcome != "" && f.Outcome != d.Outcome {
		return false
	}
	if f.Rule != "" || f.Reason != "" {
		if !slices.ContainsFunc(d.Judged, func(j Judged) bool {
			return j.Reason != "" && (f.Rule == "" || f.Rule == j.Rule) && (f.Reason == "" || f.Reason == j.Reason)
		}) {
			return false
		}
	}
	return f.Text == "" ||
		slices.ContainsFunc(d.Judged, func(j Judged) bool { return strings.Contains(j.Key, f.Text) }) ||
		slices.ContainsFunc(d.Attributes, func(a weir.Attribute) bool { return strings.Contains(a.Value, f.Text) })
}

// Selects reports whether f selects a decision about which only l is known.
func (f *DecisionFilter) Selects(l *Denial) bool {
	return f.matches(&Decision{Allowed: l.Shadow, Outcome: l.Outcome, Judged: []Judged{{Denial: *l}}})
}

// decisions has the newest decisions. Those of a key that is denied constantly do not displace others.
type decisions struct {
	seed maphash.Seed
	loud [1 << 12]atomic.Uint64 // by the hash of a key: the minute, and how many there were in it

	dropped atomic.Int64 // that were not kept

	mu       sync.Mutex
	list     []*Decision   // the oldest first; guarded by mu
	bytes    int           // guarded by mu
	number   uint64        // of the last one; guarded by mu
	second   int64         // guarded by mu
	inSecond int           // decisions in it; guarded by mu
	watchers int           // guarded by mu
	changed  chan struct{} // is closed when there are more and somebody watches; guarded by mu
}

// isLoud reports whether the key of the first rule that denied in d was denied keyDenials times in this minute already, and
// counts d otherwise.
func (k *decisions) isLoud(d *weir.Decision, now time.Time) bool {
	name, key := d.Rule, ""
	for i := range d.Usages {
		if u := &d.Usages[i]; u.Rule == name || name == "" && !u.Allowed {
			name, key = u.Rule, u.Key
			break
		}
	}
	hash := maphash.String(k.seed, name)*31 + maphash.String(k.seed, key)
	at := &k.loud[hash%uint64(len(k.loud))]
	minute := uint64(now.Unix()/60) << 32
	for {
		was := at.Load()
		next := was + 1
		switch {
		case was&^0xffff_ffff != minute:
			next = minute + 1
		case was&0xffff_ffff >= keyDenials:
			return true
		}
		if at.CompareAndSwap(was, next) {
			return false
		}
	}
}

// admits reports whether one more decision is kept in this second.
func (k *decisions) admits(now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if second := now.Unix(); second != k.second {
		k.second, k.inSecond = second, 0
	}
	k.inSecond++
	return k.inSecond <= decisionPace
}

func (k *decisions) add(d *Decision) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.number++
	d.Number = k.number
	k.list = append(k.list, d)
	k.bytes += d.size
	for len(k.list) > maxDecisions || k.bytes > maxDecisionBytes {
		k.bytes -= k.list[0].size
		k.list[0] = nil
		k.list = k.list[1:]
	}
	if k.watchers > 0 {
		close(k.changed)
		k.changed = make(chan struct{})
	}
}

// expire drops decisions that are older than journalAge.
func (k *decisions) expire(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dropLocked(func(d *Decision) bool { return now.Sub(d.Time) > journalAge })
}

// forget drops the decisions of a namespace.
func (k *decisions) forget(space string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dropLocked(func(d *Decision) bool { return d.space == space })
}

func (k *decisions) dropLocked(drop func(*Decision) bool) {
	k.list = slices.DeleteFunc(k.list, func(d *Decision) bool {
		gone := drop(d)
		if gone {
			k.bytes -= d.size
		}
		return gone
	})
}

// Requested keeps a take that some rule denies, in shadow mode or not. An engine calls it before Decided. It
// never waits for a reader.
func (c *Collector) Requested(verb store.Verb, r *weir.Request, d *weir.Decision, _ []int, _ []string, _ time.Time) {
	if c == nil || verb != store.Take || !denies(d) {
		return
	}
	if mask := c.lanes[1].mask.Load(); mask != 0 { // there are too many to look at each
		if rand.Uint64()&mask != 0 {
			return
		}
		c.kept.dropped.Add(int64(mask))
	}
	now := c.now()
	if c.kept.isLoud(d, now) || !c.kept.admits(now) {
		c.kept.dropped.Add(1)
		return
	}
	c.kept.add(c.decision(r, d, now))
}

// decision returns what is kept of d.
func (c *Collector) decision(r *weir.Request, d *weir.Decision, now time.Time) *Decision {
	k := &Decision{
		Time: now.Truncate(time.Microsecond), space: c.space, Allowed: d.Allowed, Outcome: strings.Clone(d.Outcome), Rule: strings.Clone(d.Rule),
		RetryAfter: d.RetryAfter, RetryRule: strings.Clone(d.RetryRule), Unmatched: d.Unmatched, Cause: d.DegradedReason, Hits: max(r.Hits, 1),
	}
	if d.Rules != nil {
		c.attributes(k, r, d.Rules)
	}
	for i := range d.Usages {
		if len(k.Judged) == maxJudged {
			k.Cut = true
			break
		}
		j := JudgedOf(d.Rules, &d.Usages[i])
		j.Key, _ = c.text.Of(j.Key)
		j.Rule, j.Unit = strings.Clone(j.Rule), strings.Clone(j.Unit) // not the text of the rules file
		k.size += len(j.Key) + len(j.Limit)
		k.Judged = append(k.Judged, j)
	}
	if !d.Allowed && d.Rule != "" && UsageOf(d, d.Rule) == nil {
		j := Judged{Denial: Denial{Rule: k.Rule, Reason: ReasonVerdict, RetryAfter: d.RetryAfter}}
		at := len(k.Judged)
		if ru := RuleOf(d.Rules, d.Rule); ru != nil {
			if j.Kind = ru.Kind(); j.Kind != rule.KindVerdict {
				j.Reason, j.Cause = ReasonOutage, d.DegradedReason
			}
			place, _ := d.Rules.Find(d.Rule)
			after := slices.IndexFunc(k.Judged, func(other Judged) bool { i, _ := d.Rules.Find(other.Rule); return i > place })
			if after >= 0 {
				at = after
			}
		}
		k.Judged = slices.Insert(k.Judged, at, j)
	}
	const fixed, each = 256, 256 // bytes of a decision and of a rule's answer
	k.size += fixed + each*len(k.Judged)
	return k
}

// JudgedOf returns the answer of the rule of u, one of rules.
func JudgedOf(rules *rule.Set, u *weir.Usage) Judged {
	j := Judged{Kind: u.Kind, Remaining: u.Remaining, ResetAfter: u.ResetAfter, Denial: Denial{
		Rule: u.Rule, Key: u.Key, Shadow: u.Shadow, Override: u.Overridden, Hits: u.Hits, Used: u.Before, Quota: u.Quota, RetryAfter: u.RetryAfter,
	}}
	if !u.Allowed {
		j.Reason = reason(rules, u)
	}
	if u.BannedUntil != 0 {
		j.BannedUntil = u.BannedUntil.Time()
	}
	if r := RuleOf(rules, u.Rule); r != nil {
		j.Limit, j.Unit = r.Window.String(), r.Of
	}
	return j
}

// attributes sets the attributes of k to those of r that rules use.
func (c *Collector) attributes(k *Decision, r *weir.Request, rules *rule.Set) {
	for _, a := range r.Attributes {
		if _, used := rules.Compiled().Attribute(a.Name); !used {
			continue
		}
		value, shown := c.text.Of(a.Value)
		if !shown || len(k.Attributes) == maxAttributes {
			k.Cut = true
			continue
		}
		k.Cut = k.Cut || len(a.Value) > maxKey
		value = strings.Clone(value) // which the caller's memory is reused for
		k.Attributes = append(k.Attributes, weir.Attribute{Name: strings.Clone(a.Name), Value: value})
		k.size += len(a.Name) + len(value) + 32
	}
}

// RuleOf returns the rule called name, or nil.
func RuleOf(rules *rule.Set, name string) *rule.Rule {
	if rules == nil {
		return nil
	}
	if i, ok := rules.Find(name); ok {
		return rules.Rule(i)
	}
	return nil
}

// UsageOf returns the numbers of a rule in d, or nil.
func UsageOf(d *weir.Decision, rule string) *weir.Usage {
	for i := range d.Usages {
		if d.Usages[i].Rule == rule {
			return &d.Usages[i]
		}
	}
	return nil
}

// ShowsKeys returns how keys are shown, and so the values of attributes.
func (c *Collector) ShowsKeys() KeyForm {
	if c == nil || c.text.form == "" {
		return KeyPlain
	}
	return c.text.form
}

// Decisions returns the newest n decisions that f selects, the newest one first, of this process, and
// the time of the oldest that is kept: the zero time if none is. dropped is how many were
// not kept, because there were too many of one key in a minute, or too many at a time.
func (c *Collector) Decisions(f DecisionFilter, n int) (list []*Decision, oldest time.Time, dropped int64) {
	if c == nil {
		return nil, oldest, 0
	}
	k := &c.kept
	k.mu.Lock()
	all := slices.Clone(k.list)
	k.mu.Unlock()
	for _, d := range slices.Backward(all) {
		if d.space != c.space {
			continue
		}
		if oldest = d.Time; len(list) < n && f.matches(d) {
			list = append(list, d)
		}
	}
	return list, oldest, k.dropped.Load()
}

// Watcher follows decisions. It is not safe for concurrent use.
type Watcher struct {
	c      *Collector
	filter DecisionFilter
	number uint64 // of the last decision that was looked at
	lost   int64  // dropped decisions that were told
}

// Watch begins to follow decisions that f selects, from now on. The caller closes the watcher.
func (c *Collector) Watch(f DecisionFilter) *Watcher {
	k := &c.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	k.watchers++
	return &Watcher{c: c, filter: f, number: k.number, lost: k.dropped.Load()}
}

// Close ends w.
func (w *Watcher) Close() {
	k := &w.c.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	k.watchers--
}

// Next waits for decisions, and returns them, the oldest one first. missed is how many w does not get,
// at most: the newest ones displaced them, or they were not kept. The error is that of ctx.
func (w *Watcher) Next(ctx context.Context) (list []*Decision, missed int64, err error) {
	k := &w.c.kept
	for {
		k.mu.Lock()
		from := len(k.list)
		for from > 0 && k.list[from-1].Number > w.number {
			from--
		}
		fresh, last, changed := slices.Clone(k.list[from:]), k.number, k.changed
		if len(k.list) > 0 {
			missed += int64(max(k.list[0].Number, w.number+1) - w.number - 1)
		}
		k.mu.Unlock()
		w.number = last
		for _, d := range slices.Backward(fresh) {
			if d.space != w.c.space || !w.filter.matches(d) {
				continue
			}
			if len(list) == watchedMost {
				missed++
				continue
			}
			list = append(list, d)
		}
		if len(list) > 0 {
			dropped := k.dropped.Load()
			missed, w.lost = missed+dropped-w.lost, dropped
			slices.Reverse(list)
			return list, missed, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
}

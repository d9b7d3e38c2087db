package top

import (
	"context"
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"sync"
	"time"
	"weak"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/sharedlog"
	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
)

const (
	// DefaultKeys is the default of [Config.Keys].
	DefaultKeys = 1000

	// MaxAsked is the most keys that a caller may ask for.
	MaxAsked = 1000

	// allListed is how many keys an answer about many rules lists of each kind.
	allListed = 10_000

	// period is the length of a period of counts.
	period = 5 * time.Minute

	// allKeys is how many keys the rules of all engines together keep in one kind of list and
	// one period. If there are too many rules for that, each keeps fewer, but at least
	// leastKeys.
	allKeys, leastKeys = 50_000, 16

	// tick is how long a lane may take to fill up before its sample is made
	// smaller, and idle the interval at which exact lanes are emptied.
	tick, idle = 100 * time.Millisecond, time.Second
)

// PerRule returns how many keys of each kind an answer lists for each of its rules, if a
// caller asks for n: fewer if there are many rules, and at least one.
func PerRule(n, rules int) int { return min(n, max(allListed/max(rules, 1), 1)) }

// Config configures a [Collector]. Its zero value counts nothing.
type Config struct {
	// Keys is the number of keys for each rule and kind of list. 0 counts
	// nothing.
	Keys int

	// Text states how keys are shown. If they are not shown, only the sums of all
	// keys are kept.
	Text KeyText

	// Side stores the denials for the next process, and Remote sends them to a log that
	// instances share. At most one of them is set. If neither is, the denials are lost when
	// the process ends.
	Side   hook.SideStore
	Remote sharedlog.Log

	// Now returns the time. Nil: time.Now.
	Now func() time.Time
}

// Collector counts decisions of one engine by rule and key. Make one with [New] or
// [Collector.ForNamespace]. It is safe for concurrent use. The methods of a nil Collector
// return nothing.
type Collector struct {
	*shared
	space   string                 // the name of its namespace
	inForce func() *rule.Set       // of the engine; guarded by mu; nil: not known
	rules   map[string]*ruleStats  // guarded by mu; nil: dropped
	set     weak.Pointer[rule.Set] // guarded by mu; in force when the counts of other rules were last dropped
}

// shared is the state that the collectors of several engines share.
type shared struct {
	now   func() time.Time
	keys  int
	text  KeyText
	lanes [2]lane // of decisions without and with a denial
	kept  decisions
	wake  chan struct{}

	side     hook.SideStore // or nil
	unfollow func()         // ends the calls by side; nil: there are none yet
	remote   sharedlog.Log  // or nil
	sending  sync.Mutex     // held while denials are sent to remote
	readers  sync.Map       // one caller of each share at a time reads from remote; see [remote.Turn]

	mu       sync.Mutex
	journal  journal                 // guarded by mu
	savedAt  time.Time               // when changes were last written to side; guarded by mu
	ended    bool                    // guarded by mu
	shown    []byte                  // guarded by mu; scratch buffer for the text of a key
	encoded  []byte                  // guarded by mu; scratch buffer for a denial
	members  map[*Collector]struct{} // guarded by mu
	capacity int                     // guarded by mu; the keys of one list; a smaller one applies from the next period on
	began    time.Time               // guarded by mu; of the current period
	since    time.Time               // guarded by mu; of the period before
	dropped  int64                   // guarded by mu
}

var _ weir.Observer = (*Collector)(nil)

// ruleStats is what is kept of one rule.
type ruleStats struct {
	used, denied recent
}

// New returns a collector for the engine of the namespace called space, or nil if c counts
// nothing. A collector counts only while [Collector.Run] runs, except that each read counts
// the decisions that wait.
func New(c Config, space string) *Collector {
	if c.Keys <= 0 {
		return nil
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	now := c.Now()
	s := &shared{
		now: c.Now, keys: c.Keys, text: c.Text, wake: make(chan struct{}, 1),
		side: c.Side, remote: c.Remote, journal: newJournal(c.Text.form),
		members: map[*Collector]struct{}{}, capacity: c.Keys, began: now, since: now,
		kept: decisions{seed: maphash.MakeSeed(), changed: make(chan struct{})},
	}
	return s.join(space)
}

// ForNamespace returns a collector for the engine of another namespace, which shares the memory
// and the goroutine of c.
func (c *Collector) ForNamespace(space string) *Collector {
	if c == nil {
		return nil
	}
	return c.join(space)
}

func (s *shared) join(space string) *Collector {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &Collector{shared: s, space: space, rules: map[string]*ruleStats{}}
	s.members[c] = struct{}{}
	return c
}

// Follow makes c drop the counts of rules that are not in force any more. inForce returns those that are,
// as [weir.Engine.Rules] does: decisions do not say, because a request can bring its own rules.
func (c *Collector) Follow(inForce func() *rule.Set) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inForce = inForce
}

// Drop frees the memory of what c has counted, and of its denials. From then on c counts
// nothing.
func (c *Collector) Drop() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.members, c)
	c.rules, c.set = nil, weak.Pointer[rule.Set]{}
	c.journal.forget(c.space)
	c.kept.forget(c.space)
	c.share()
}

// Decided implements [weir.Observer]. It does not keep d, and never waits for a reader.
func (c *Collector) Decided(_ context.Context, verb store.Verb, d *weir.Decision, _ time.Duration) {
	if c == nil || verb != store.Take && verb != store.Record || d.Replayed {
		return
	}
	l := &c.lanes[0]
	if denies(d) {
		l = &c.lanes[1]
	}
	mask := l.mask.Load()
	if mask != 0 && rand.Uint64()&mask != 0 {
		return
	}
	if l.read(c, verb, d, int64(mask)+1) {
		select {
		case c.wake <- struct{}{}:
		default: // it is woken already
		}
	}
}

// Failed implements [weir.Observer]. It does nothing.
func (c *Collector) Failed(context.Context, store.Verb, error) {}

// Outage implements [weir.Observer]. It does nothing, because the decisions have the
// effects.
func (c *Collector) Outage(context.Context, store.Verb, error) {}

// denies reports whether some rule of d denies, including rules in shadow mode.
func denies(d *weir.Decision) bool {
	if !d.Allowed {
		return true
	}
	for i := range d.Usages {
		if !d.Usages[i].Allowed {
			return true
		}
	}
	return false
}

// Run counts decisions of c, and of all that share its memory, until ctx is done.
func (c *Collector) Run(ctx context.Context) {
	if c == nil {
		return
	}
	var loaded <-chan struct{}
	if c.side != nil {
		loaded = c.side.Loaded()
	}
	if c.remote != nil {
		var sender sync.WaitGroup
		defer sender.Wait()
		sender.Go(func() { c.sendAll(ctx) })
	}
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-loaded:
			loaded = nil
			c.load()
			continue
		case <-c.wake:
			c.count()
			timer.Reset(min(tick, c.pace())) // the sample has just changed
			continue
		case <-timer.C:
		}
		c.count()
		for i := range c.lanes {
			c.lanes[i].relax()
		}
		timer.Reset(c.pace())
	}
}

// Close saves or sends the denials that wait. It must be called after Run has returned and
// before the side store or the remote log is closed.
func (c *Collector) Close() {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	if c.unfollow != nil {
		c.unfollow()
	}
	if c.remote != nil {
		_ = c.send(context.Background()) // denials that cannot be sent are lost
	}
}

// pace returns the time until the next tick.
func (s *shared) pace() time.Duration {
	if s.lanes[0].mask.Load() != 0 || s.lanes[1].mask.Load() != 0 {
		return tick
	}
	return idle
}

// count counts the decisions that wait.
func (s *shared) count() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.countLocked()
}

func (s *shared) countLocked() {
	s.rotate()
	for m := range s.members {
		if m.inForce == nil {
			continue
		}
		if rules := m.inForce(); rules != nil && weak.Make(rules) != m.set {
			m.renew(rules)
		}
	}
	for i := range s.lanes {
		l := &s.lanes[i]
		b, dropped := l.take()
		s.dropped += dropped
		if l == &s.lanes[1] {
			s.journal.dropped += dropped
			s.journal.missed += dropped
		}
		for i := range b.rows {
			r := &b.rows[i]
			s.shown = s.text.append(s.shown[:0], b.text[r.from:r.to])
			r.of.add(r, s.shown)
		}
		clear(b.rows)
		l.spare = b
	}
}

// add counts one row.
func (c *Collector) add(r *row, key []byte) {
	if c.rules == nil {
		return
	}
	s := c.rules[r.rule]
	if s == nil {
		s = &ruleStats{}
		c.rules[r.rule] = s
	}
	if r.counted > 0 {
		s.used.add(key, r.counted, r.sample, c.capacity, r.override)
	}
	if r.denial {
		r.what.Rule = r.rule
		s.denied.add(key, 1, r.sample, c.capacity, r.override)
		c.addDenial(c.space, &r.what, key, r.sample)
	}
}

// rotate ends the periods that are over.
func (s *shared) rotate() {
	now, turns := s.now(), 0
	switch lasted := now.Sub(s.began); {
	case 0 <= lasted && lasted < period:
		return
	case period <= lasted && lasted < 2*period:
		turns, s.since, s.began = 1, s.began, s.began.Add(period)
	default:
		turns, s.since, s.began = 2, now, now
	}
	s.journal.expire(now)
	s.kept.expire(now)
	for m := range s.members {
		for _, r := range m.rules {
			for range turns {
				r.used.rotate(s.capacity)
				r.denied.rotate(s.capacity)
			}
		}
	}
}

// renew makes rules the rules in force, and drops the counts of other rules.
func (c *Collector) renew(rules *rule.Set) {
	c.set = weak.Make(rules)
	maps.DeleteFunc(c.rules, func(name string, _ *ruleStats) bool {
		_, known := rules.Find(name)
		return !known
	})
	c.share()
}

// share computes how many keys each rule may keep.
func (s *shared) share() {
	n := 0
	for m := range s.members {
		if rules := m.set.Value(); rules != nil {
			n += rules.Len()
		}
	}
	s.capacity = min(s.keys, max(allKeys/max(n, 1), leastKeys))
}

// Rule has the counts of one rule.
type Rule struct {
	// Since is when the older of the two periods began.
	Since time.Time

	// Used lists hits that were admitted or recorded. Denied lists takes that
	// the rule denied, or would have denied in shadow mode; its counts are takes.
	Used, Denied List
}

// Top returns the n most frequent keys of the rule called name.
func (c *Collector) Top(name string, n int) Rule {
	if c == nil {
		return Rule{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.countLocked()
	s := c.rules[name]
	if s == nil {
		s = &ruleStats{}
	}
	r := Rule{Since: c.since, Used: s.used.list(n), Denied: s.denied.list(n)}
	if c.text.form == KeyNone { // one entry stands for all keys
		r.Used.Entries, r.Denied.Entries = nil, nil
	}
	return r
}

// Missed returns the number of decisions that were not counted, because rows
// were full.
func (c *Collector) Missed() int64 {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.countLocked()
	return c.dropped
}

// Dropped returns the number of denials that the journals lack because there were too many of
// one key in a minute, or too many at a time, or because a shared store refused them.
func (c *Collector) Dropped() int64 {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.countLocked()
	return c.journal.dropped
}

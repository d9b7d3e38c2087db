package weir_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// countedHits are hits that one call has counted in a rule.
type countedHits struct {
	take   int // its number; 0: not a take, or one that was denied
	at     time.Time
	n      int64
	member string
}

// countedRule is what one rule has counted, by the definition: who has counted each hit,
// and when.
type countedRule struct {
	*rule.Rule
	hits  []countedHits
	began time.Time // of a fixed window
	until time.Time // up to which a bucket has drained

	vague bool  // a cancel may have to give back less
	past  bool  // it has counted past its quota, so that a refund gives back others' hits first
	least int64 // the smallest quota since it was empty: what it had past that may be forgotten
}

// cancelModel is the model of rules beside a hold.
type cancelModel struct {
	*rand.Rand
	t     *testing.T
	e     *weir.Engine
	pool  []rule.Rule
	now   []rule.Rule // in force
	rules map[string]*countedRule
	takes []weir.Request // which held, by number
	given []weir.Receipt

	cancelled, behind, shadowed, reloads int
}

// TestCancelsLikeAModel compares rules beside a hold with a model, over takes, records,
// refunds, strikes, reloads and cancels. No cancel may give back hits of others: a rule
// never says less than the model, up to its quota. And unless hits were refunded or went
// past the quota it says exactly as much.
func TestCancelsLikeAModel(t *testing.T) {
	t.Parallel()
	var all cancelModel
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			m := newCancelModel(t, seed)
			for step := range 120 {
				m.step()
				m.compare(fmt.Sprintf("seed %d, step %d", seed, step))
			}
			all.cancelled += m.cancelled
			all.behind += m.behind
			all.shadowed += m.shadowed
			all.reloads += m.reloads
		})
	}
	if all.cancelled < 500 || all.behind < 500 || all.shadowed < 500 || all.reloads < 500 {
		t.Errorf("got %d cancels, %d hits after a verdict, %d in shadow rules and %d reloads, want many", all.cancelled, all.behind, all.shadowed, all.reloads)
	}
}

func newCancelModel(t *testing.T, seed uint64) *cancelModel {
	m := &cancelModel{Rand: rand.New(rand.NewPCG(seed, 28)), t: t, rules: map[string]*countedRule{}}
	m.pool = []rule.Rule{
		{Name: "flight", Per: []string{"user"}, Quota: &rule.Quota{Value: 100}, Window: window.Held(10 * time.Minute)},
		{Name: "vip", When: equals("plan", "vip"), Then: rule.Allow, CountRest: true},
	}
	groups := window.Sliding(time.Hour)
	groups.Precision = 2
	for i, w := range []window.Window{
		window.Sliding(time.Hour), groups, window.Calendar(window.Day, nil), window.Aligned(time.Hour), window.Ever(),
		window.Cells(time.Hour, 6), window.Fixed(time.Hour), window.Bucket(time.Hour, 0),
	} {
		r := rule.Rule{
			Name: fmt.Sprint("r", i), Per: []string{"user"}, Window: w,
			CountDenied: m.IntN(3) == 0, Feedback: map[string]int64{"solved": window.All, "one": 1},
		}
		if m.IntN(4) == 0 {
			r.Mode = rule.Shadow
		}
		if m.IntN(4) == 0 {
			r.Ban = window.Ban{For: time.Second, Most: time.Minute, Forget: 5 * time.Second}
		}
		m.pool = append(m.pool, r)
	}
	for i, w := range []window.Window{window.Sliding(time.Hour), window.Fixed(time.Hour)} {
		m.pool = append(m.pool, rule.Rule{
			Name: fmt.Sprint("peers", i), Per: []string{"user"}, Measure: window.Distinct, Of: "peer", Quota: &rule.Quota{Value: 9}, Window: w,
		})
	}
	m.requota()
	m.now = m.pool
	m.e = engine(t, m.pool)
	return m
}

// requota gives limits other quotas.
func (m *cancelModel) requota() {
	for i := range m.pool {
		if r := &m.pool[i]; r.Name[0] == 'r' {
			r.Quota = &rule.Quota{Value: 2 + m.Int64N(8)}
		}
	}
}

func (m *cancelModel) step() {
	time.Sleep(time.Microsecond + time.Duration(m.Int64N(int64([]time.Duration{time.Second, time.Minute, 40 * time.Minute}[min(m.IntN(12), 11)/5]))))
	for _, c := range m.rules {
		c.drain()
	}
	r := weir.Request{Attributes: weir.Attributes("user", "ann", "peer", fmt.Sprint(m.IntN(4)), "plan", []string{"", "", "vip"}[m.IntN(3)]), Hits: 1 + m.Int64N(2)}
	switch m.IntN(18) {
	case 0:
		m.do(store.Record, r)
	case 1:
		m.reload()
	case 2, 3:
		if slices.ContainsFunc(m.now, hasFeedback) {
			r.Hits, r.Feedback = 0, []string{"solved", "one"}[m.IntN(2)]
		}
		m.do(store.Refund, r)
	case 4:
		m.do(store.Refund, r)
	case 5, 6, 7, 8:
		if n := len(m.takes); n > 0 {
			m.cancel(max(0, n-1-m.IntN(6)))
		}
	default:
		m.do(store.Take, r)
	}
}

// reload puts some of the rules in force, in any order.
func (m *cancelModel) reload() {
	m.reloads++
	if m.IntN(2) == 0 {
		m.requota()
	}
	m.now = slices.Clone(m.pool[:1])
	for _, i := range m.Perm(len(m.pool) - 1)[:m.IntN(len(m.pool))] {
		m.now = append(m.now, m.pool[1+i])
	}
	m.Shuffle(len(m.now), func(i, j int) { m.now[i], m.now[j] = m.now[j], m.now[i] })
	if err := m.e.SetRules(compile(m.t, m.now)); err != nil {
		m.t.Fatal(err)
	}
}

// ruleOf returns a rule in force, and whether r passes a verdict before it.
func (m *cancelModel) ruleOf(name string, r *weir.Request) (c *countedRule, behind bool) {
	at := slices.IndexFunc(m.now, func(ru rule.Rule) bool { return ru.Name == name })
	if c = m.rules[name]; c == nil {
		c = &countedRule{least: window.MaxHits, until: time.Now()}
		m.rules[name] = c
	}
	c.Rule = &m.now[at]
	c.least = min(c.least, c.Quota.Value)
	verdict := slices.IndexFunc(m.now, func(ru rule.Rule) bool { return ru.Name == "vip" })
	return c, r != nil && r.Attributes[2].Value == "vip" && verdict >= 0 && verdict < at
}

func (m *cancelModel) do(verb store.Verb, r weir.Request) {
	var d weir.Decision
	if err := m.e.Do(m.t.Context(), verb, &r, &d); err != nil {
		m.t.Fatal(err)
	}
	take := 0
	if !d.Receipt.IsZero() {
		m.takes, m.given = append(m.takes, r), append(m.given, d.Receipt)
		take = len(m.takes)
	}
	for i := range d.Usages {
		u := &d.Usages[i]
		if u.Rule == "flight" {
			continue
		}
		c, behind := m.ruleOf(u.Rule, &r)
		switch {
		case r.Feedback != "" && c.Measure == window.Distinct: // which has none
		case u.Struck, r.Feedback == "solved":
			c.empty()
		case u.Banned:
		case verb == store.Refund:
			c.refund(u, max(r.Hits, 1), &r)
		case verb == store.Record:
			c.count(u, 0, &r)
		case behind:
			if d.Allowed {
				c.count(u, take, &r)
				m.behind++
			}
		case c.Mode == rule.Shadow && u.Allowed:
			c.count(u, take, &r)
			m.shadowed++
		case d.Allowed && c.Mode != rule.Shadow:
			c.count(u, take, &r)
		case c.CountDenied && d.Allowed:
			c.count(u, take, &r)
		case c.CountDenied:
			c.count(u, 0, &r)
		}
	}
}

func (c *countedRule) empty() { *c = countedRule{Rule: c.Rule, least: c.Quota.Value, until: c.until} }

func (c *countedRule) count(u *weir.Usage, take int, r *weir.Request) {
	now := time.Now()
	if c.began.IsZero() || now.Sub(c.began) >= c.Window.Length {
		c.began = now
	}
	h := countedHits{take, now, r.Hits, ""}
	if c.Measure == window.Distinct {
		h.n, h.member = 1, r.Attributes[1].Value
	}
	if c.Window.Kind == window.KindBucket {
		h.n = c.drains(h.n)
	}
	c.hits = append(c.hits, h)
	if u.Used >= u.Quota {
		c.vague, c.past = true, true // perhaps, where a window forgets the oldest
	}
}

// refund gives back the newest hits that count. In a sliding window the hits past the quota
// go first, and nobody can tell whose they are, so the refund gives back ones that no take has.
func (c *countedRule) refund(u *weir.Usage, n int64, r *weir.Request) {
	c.vague = true
	switch {
	case u.Before == 0:
	case c.Measure == window.Distinct:
		for i := len(c.hits) - 1; i >= 0; i-- {
			if h := &c.hits[i]; h.member == r.Attributes[1].Value && h.n > 0 && c.inside(h) {
				h.n = 0
				return
			}
		}
	case c.past && c.Window.Kind == window.KindSliding:
		if len(c.hits) > 0 {
			c.hits = append(c.hits, countedHits{at: c.hits[0].at, n: -n})
		}
	default:
		if c.Window.Kind == window.KindBucket {
			n = c.drains(n)
		}
		for i := len(c.hits) - 1; i >= 0; i-- {
			if h := &c.hits[i]; c.inside(h) {
				part := min(h.n, n)
				h.n, n = h.n-part, n-part
			}
		}
	}
}

func (m *cancelModel) cancel(i int) {
	r := m.takes[i]
	d, err := m.e.Cancel(m.t.Context(), m.given[i], r)
	if err != nil {
		m.t.Fatal(err)
	}
	if !slices.ContainsFunc(d.Usages, func(u weir.Usage) bool { return u.Held }) {
		return
	}
	m.cancelled++
	for _, u := range d.Usages {
		if u.Banned || u.Rule == "flight" { // nothing is left, or nothing given back
			continue
		}
		c, _ := m.ruleOf(u.Rule, nil)
		c.hits = slices.DeleteFunc(c.hits, func(h countedHits) bool { return h.take == i+1 })
		c.vague = c.vague || c.Measure == window.Distinct || c.Window.Kind == window.KindBucket
	}
}

func (m *cancelModel) compare(when string) {
	for i := range m.now {
		name := m.now[i].Name
		if name == "vip" || name == "flight" {
			continue
		}
		c, _ := m.ruleOf(name, nil)
		u, err := m.e.Usage(m.t.Context(), name, weir.Attributes("user", "ann"))
		if err != nil {
			m.t.Fatal(err)
		}
		want := c.used()
		if vague := c.vague && c.Ban.For > 0; want+u.Used == 0 {
			c.empty()
			c.vague = vague // a key with strikes does not note when its hits were refunded
		}
		least := want
		if c.Window.Kind == window.KindSliding || c.Window.Kind == window.KindBucket {
			least = min(want, c.least)
		}
		exact := !c.vague && c.Window.Kind != window.KindCells && c.Window.Precision == 0
		if u.Used < least || exact && u.Used != want && !u.Banned {
			m.t.Fatalf("%s: %+v: got %d used, want %d (exactly: %v) of %+v", when, *c.Rule, u.Used, want, exact, c.hits)
		}
	}
}

// drains returns the microseconds in which hits drain from a bucket. They are what it holds.
func (c *countedRule) drains(hits int64) int64 {
	return hits * c.Window.Length.Microseconds() / c.Quota.Value
}

// drain takes out of a bucket what has drained, the oldest hits first.
func (c *countedRule) drain() {
	n := time.Since(c.until).Microseconds()
	if c.until = time.Now(); c.Window.Kind != window.KindBucket {
		return
	}
	for i := range c.hits {
		part := min(c.hits[i].n, n)
		c.hits[i].n, n = c.hits[i].n-part, n-part
	}
}

func (c *countedRule) used() (n int64) {
	members := map[string]bool{}
	for i := range c.hits {
		h := &c.hits[i]
		if h.n < 0 || c.inside(h) {
			n += h.n
			members[h.member] = members[h.member] || h.n > 0
		}
	}
	switch {
	case c.Measure == window.Distinct:
		n = 0
		for _, inside := range members {
			if inside {
				n++
			}
		}
	case c.Window.Kind == window.KindBucket:
		length := c.Window.Length.Microseconds()
		n = (n*c.Quota.Value + length - 1) / length
	}
	return max(0, n)
}

// inside reports whether hits count now.
func (c *countedRule) inside(h *countedHits) bool {
	now := time.Now()
	switch w := &c.Window; w.Kind {
	case window.KindSliding, window.KindCells:
		return now.Sub(h.at) < w.Length
	case window.KindFixed:
		return now.Sub(c.began) < w.Length && !h.at.Before(c.began)
	case window.KindEver, window.KindBucket:
		return true
	default:
		start, _ := w.PeriodBounds(window.At(now))
		return window.At(h.at) >= start
	}
}

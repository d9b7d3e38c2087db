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
	take int // its number; 0: not a take, or one that was denied
	at   time.Time
	n    int64
}

// cancelModel is what rules beside a hold have counted, by the definition: who has counted
// each hit, and when.
type cancelModel struct {
	*rand.Rand
	t     *testing.T
	e     *weir.Engine
	pool  []rule.Rule
	now   []rule.Rule // in force
	hits  map[string][]countedHits
	vague map[string]bool // rules in which a cancel may have to give back less
	past  map[string]bool // rules that have counted past their quota: see refund
	takes []weir.Request  // which held, by number
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
		t.Errorf("got %d cancels, %d hits behind a verdict, %d in shadow rules and %d reloads, want many", all.cancelled, all.behind, all.shadowed, all.reloads)
	}
}

func newCancelModel(t *testing.T, seed uint64) *cancelModel {
	m := &cancelModel{Rand: rand.New(rand.NewPCG(seed, 28)), t: t, hits: map[string][]countedHits{}, vague: map[string]bool{}, past: map[string]bool{}}
	m.pool = []rule.Rule{
		{Name: "flight", Per: []string{"user"}, Quota: &rule.Quota{Value: 100}, Window: window.Held(10 * time.Minute)},
		{Name: "vip", When: equals("plan", "vip"), Then: rule.Allow, CountRest: true},
	}
	for i, w := range []window.Window{
		window.Sliding(time.Hour), window.Sliding(time.Hour), window.Calendar(window.Day, nil), window.Aligned(time.Hour), window.Ever(), window.Cells(time.Hour, 6),
	} {
		r := rule.Rule{
			Name: fmt.Sprint("r", i), Per: []string{"user"}, Quota: &rule.Quota{Value: 2 + m.Int64N(8)}, Window: w,
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
	m.now = m.pool
	m.e = engine(t, m.pool)
	return m
}

func (m *cancelModel) step() {
	time.Sleep(time.Microsecond + time.Duration(m.Int64N(int64([]time.Duration{time.Second, time.Minute, 40 * time.Minute}[min(m.IntN(12), 11)/5]))))
	r := weir.Request{Attributes: weir.Attributes("user", "ann"), Hits: 1 + m.Int64N(2)}
	if m.IntN(3) == 0 {
		r.Attributes = weir.Attributes("user", "ann", "plan", "vip")
	}
	switch m.IntN(16) {
	case 0:
		m.do(store.Record, r)
	case 1:
		m.reload()
	case 2:
		r.Hits, r.Feedback = 0, "solved"
		m.do(store.Refund, r)
	case 3:
		r.Hits, r.Feedback = 0, "one"
		m.do(store.Refund, r)
	case 4, 5, 6, 7:
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
func (m *cancelModel) ruleOf(name string, r *weir.Request) (ru *rule.Rule, behind bool) {
	at := slices.IndexFunc(m.now, func(ru rule.Rule) bool { return ru.Name == name })
	verdict := slices.IndexFunc(m.now, func(ru rule.Rule) bool { return ru.Name == "vip" })
	return &m.now[at], len(r.Attributes) > 1 && verdict >= 0 && verdict < at
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
		ru, behind := m.ruleOf(u.Rule, &r)
		switch {
		case u.Struck:
			m.hits[u.Rule], m.vague[u.Rule], m.past[u.Rule] = nil, false, false
		case verb == store.Refund && r.Feedback == "solved":
			m.hits[u.Rule], m.vague[u.Rule], m.past[u.Rule] = nil, false, false
		case verb == store.Refund:
			m.refund(u, ru)
		case u.Banned:
		case verb == store.Record:
			m.count(u, 0, r.Hits)
		case behind:
			if d.Allowed {
				m.count(u, take, r.Hits)
				m.behind++
			}
		case ru.Mode == rule.Shadow && u.Allowed:
			m.count(u, take, r.Hits)
			m.shadowed++
		case d.Allowed && ru.Mode != rule.Shadow:
			m.count(u, take, r.Hits)
		case ru.CountDenied && d.Allowed:
			m.count(u, take, r.Hits)
		case ru.CountDenied:
			m.count(u, 0, r.Hits)
		}
	}
}

func (m *cancelModel) count(u *weir.Usage, take int, n int64) {
	m.hits[u.Rule] = append(m.hits[u.Rule], countedHits{take, time.Now(), n})
	if u.Used >= u.Quota {
		m.vague[u.Rule], m.past[u.Rule] = true, true // perhaps, where a window forgets the oldest
	}
}

// refund gives back the newest hit that counts. In a sliding window the hits past the quota
// go first, and nobody can tell whose they are, so the refund gives back one that no take has.
func (m *cancelModel) refund(u *weir.Usage, ru *rule.Rule) {
	m.vague[u.Rule] = true
	list := m.hits[u.Rule]
	for i := len(list) - 1; i >= 0 && u.Before > 0; i-- {
		if list[i].n == 0 || !inside(&ru.Window, list[i].at, time.Now()) {
			continue
		}
		if m.past[u.Rule] && ru.Window.Kind == window.KindSliding {
			m.hits[u.Rule] = append(list, countedHits{0, list[0].at, -1})
		} else {
			list[i].n--
		}
		return
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
		if !u.Banned { // where nothing is left, or nothing given back
			m.hits[u.Rule] = slices.DeleteFunc(m.hits[u.Rule], func(h countedHits) bool { return h.take == i+1 })
		}
	}
}

func (m *cancelModel) compare(when string) {
	now := time.Now()
	for i := range m.now {
		ru := &m.now[i]
		if ru.Name == "vip" || ru.Name == "flight" {
			continue
		}
		u, err := m.e.Usage(m.t.Context(), ru.Name, weir.Attributes("user", "ann"))
		if err != nil {
			m.t.Fatal(err)
		}
		var want int64
		for _, h := range m.hits[ru.Name] {
			if h.n < 0 || inside(&ru.Window, h.at, now) {
				want += h.n
			}
		}
		if want = max(0, want); want+u.Used == 0 {
			m.hits[ru.Name] = nil
			m.vague[ru.Name], m.past[ru.Name] = false, false
		}
		least := want
		if ru.Window.Kind == window.KindSliding {
			least = min(want, ru.Quota.Value)
		}
		exact := !m.vague[ru.Name] && ru.Window.Kind != window.KindCells
		if u.Used < least || exact && u.Used != want && !u.Banned {
			m.t.Fatalf("%s: %+v: got %d used, want %d (exactly: %v) of %+v", when, *ru, u.Used, want, exact, m.hits[ru.Name])
		}
	}
}

// inside reports whether a hit counts in a window.
func inside(w *window.Window, at, now time.Time) bool {
	switch w.Kind {
	case window.KindSliding, window.KindCells:
		return now.Sub(at) < w.Length
	case window.KindEver:
		return true
	}
	start, _ := w.PeriodBounds(window.At(now))
	return window.At(at) >= start
}

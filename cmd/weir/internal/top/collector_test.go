package top_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

const someRules = `
outcomes: {blocked: {status: 403}}
rules:
  - {name: bad, when: {ip: 192.0.2.9}, then: blocked}
  - {name: posts, per: [user], limit: 3, window: 1h}
  - {name: trial, per: [user], limit: 1, window: 1h, mode: shadow}
  - {name: bytes, when: {bytes: "*"}, per: [user], sum: bytes, limit: 100, window: 1h}
  - {name: views, when: {page: "*"}, per: [page], window: {cells: 1h, n: 4}}
`

// engine returns an engine that c watches.
func engine(t testing.TB, rules string, c *top.Collector) *weir.Engine {
	t.Helper()
	e := scripttest.Engine(t, scripttest.Rules(t, rules), weir.WithObserver(c))
	c.Follow(e.Rules)
	return e
}

func do(t testing.TB, e *weir.Engine, verb store.Verb, hits int64, attributes ...string) {
	t.Helper()
	var d weir.Decision
	err := e.Do(t.Context(), verb, &weir.Request{Attributes: weir.Attributes(attributes...), Hits: hits}, &d)
	if err != nil {
		t.Fatal(err)
	}
}

// text returns a list in a short form.
func text(l top.List) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d", l.Total)
	for _, e := range l.Entries {
		fmt.Fprintf(&b, " %s:%d", e.Key, e.Count)
		if e.Error > 0 {
			fmt.Fprintf(&b, "-%d", e.Error)
		}
	}
	if l.Error > 0 {
		fmt.Fprintf(&b, ", others at most %d", l.Error)
	}
	if l.Sample != 1 {
		fmt.Fprintf(&b, ", one in %d", l.Sample)
	}
	return b.String()
}

// denials returns the n newest denials of rules.
func denials(t testing.TB, c *top.Collector, n int, rules ...string) []top.Denial {
	t.Helper()
	q := top.Query{N: n}
	for _, rule := range rules {
		q.Rules = append(q.Rules, top.Selected{Rule: rule})
	}
	d, err := c.Denials(t.Context(), q)
	if err != nil {
		t.Error(err)
	}
	return d.List
}

func wants(t *testing.T, what string, got, want any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestWhatIsCounted(t *testing.T) {
	t.Parallel()
	c := top.New(top.Config{Keys: 10}, "default")
	e := engine(t, someRules, c)
	do(t, e, store.Take, 1, "user", "ann")                               // trial is full then
	do(t, e, store.Take, 2, "user", "ann")                               // trial would deny
	do(t, e, store.Take, 1, "user", "ann", "page", "/a")                 // posts denies; the counter counts
	do(t, e, store.Take, 1, "user", "bob", "bytes", "70")                // a sum
	do(t, e, store.Take, 1, "user", "bob", "bytes", "70")                // bytes denies, posts admits
	do(t, e, store.Record, 4, "user", "cid")                             // past the quota
	do(t, e, store.Check, 9, "user", "dan")                              // a check is no use and no denial
	do(t, e, store.Refund, 1, "user", "ann")                             // nor is a refund
	do(t, e, store.Take, 5, "user", "ann", "page", "/b", "bytes", "900") // two rules deny
	do(t, e, store.Take, 1, "user", "eve", "ip", "192.0.2.9")            // a verdict denies

	for _, row := range []struct{ rule, used, denied string }{
		{"bad", "0", "1 :1"},
		{"posts", "8 cid:4 ann:3 bob:1", "2 ann:2"},
		{"trial", "6 cid:4 ann:1 bob:1", "4 ann:3 bob:1"},
		{"bytes", "70 bob:70", "2 ann:1 bob:1"},
		{"views", "6 /b:5 /a:1", "0"},
		{"nope", "0", "0"},
	} {
		r := c.Top(row.rule, 10)
		wants(t, row.rule+" used", text(r.Used), row.used)
		wants(t, row.rule+" denied", text(r.Denied), row.denied)
	}
	if got := text(c.Top("posts", 1).Used); got != "8 cid:4" {
		t.Errorf("got %s, want one key", got)
	}
	wants(t, "missed", c.Missed(), int64(0))

	want := []string{
		"bad  verdict blocked false hits 0, used 0 of 0, never true",
		"posts ann limit deny false hits 5, used 2 of 3, never true",
		"bytes ann limit deny false hits 900, used 0 of 100, never true",
		"bytes bob limit deny false hits 70, used 70 of 100, never false",
		"posts ann limit deny false hits 1, used 3 of 3, never false",
	}
	var got []string
	for _, d := range denials(t, c, 9, "bad", "posts", "bytes", "gone") {
		got = append(got, fmt.Sprintf("%s %s %s %s %v hits %d, used %d of %d, never %v",
			d.Rule, d.Key, d.Reason, d.Outcome, d.Shadow, d.Hits, d.Used, d.Quota, d.RetryAfter == window.Never))
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("denials: got\n%s\nwant\n%s", g, w)
	}
	shadow := denials(t, c, 1, "trial")
	if len(shadow) != 1 || !shadow[0].Shadow || shadow[0].Key != "ann" {
		t.Errorf("got %+v, want the newest denial in shadow mode", shadow)
	}
}

// An answer that was given before is no use. A denial that keeps no answer is one each time.
func TestReplays(t *testing.T) {
	t.Parallel()
	c := top.New(top.Config{Keys: 10}, "default")
	e := engine(t, someRules, c)
	for _, key := range []string{"1", "1", "2", "2"} {
		if _, err := e.Take(t.Context(), weir.Request{Attributes: weir.Attributes("user", "ann"), Hits: 2, IdempotencyKey: key}); err != nil {
			t.Fatal(err)
		}
	}
	r := c.Top("posts", 10)
	wants(t, "used", text(r.Used), "2 ann:2")
	wants(t, "denied", text(r.Denied), "2 ann:2")
}

func TestBansAndHolds(t *testing.T) {
	t.Parallel()
	c := top.New(top.Config{Keys: 10}, "default")
	e := engine(t, `
rules:
  - {name: logins, when: {action: login}, per: [user], limit: 2, window: 1h, ban: 1h}
  - {name: slots, when: {action: export}, per: [user], limit: 5, window: 1h, hold: 1m, max_holds: 2}
  - {name: flights, when: {action: fly}, per: [user], limit: 1, window: {held: 1m}}
`, c)
	for range 4 {
		do(t, e, store.Take, 1, "user", "ann", "action", "login")
		do(t, e, store.Take, 1, "user", "ann", "action", "export")
	}
	do(t, e, store.Take, 3, "user", "bob", "action", "login")
	do(t, e, store.Record, 1, "user", "bob", "action", "login")
	do(t, e, store.Record, 1, "user", "bob", "action", "fly")
	do(t, e, store.Take, 2, "user", "bob", "action", "fly")
	var got []string
	for _, d := range denials(t, c, 9, "logins", "slots", "flights") {
		got = append(got, fmt.Sprintf("%s %s %s used %d, banned %v", d.Rule, d.Key, d.Reason, d.Used, !d.BannedUntil.IsZero()))
	}
	slices.Sort(got)
	want := []string{
		"flights bob limit used 0, banned false",
		"logins ann ban used 0, banned true",
		"logins ann limit used 2, banned true",
		"logins bob limit used 0, banned true",
		"slots ann holds used 2, banned false",
		"slots ann holds used 2, banned false",
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
	wants(t, "used", text(c.Top("logins", 9).Used), "2 ann:2")
	wants(t, "in flight", text(c.Top("flights", 9).Used), "0")
}

func TestOutage(t *testing.T) {
	t.Parallel()
	c := top.New(top.Config{Keys: 10}, "default")
	rules := scripttest.Rules(t, someRules)
	c.Decided(t.Context(), store.Take, &weir.Decision{
		Outcome: "deny", Rule: "posts", RetryRule: "posts", RetryAfter: time.Second,
		Degraded: true, DegradedReason: "late", Rules: rules,
	}, 0)
	c.Decided(t.Context(), store.Take, &weir.Decision{Outcome: "deny", Unmatched: true, Rules: rules}, 0) // by no rule
	got := denials(t, c, 5, "posts", "")
	if len(got) != 1 || got[0].Reason != top.ReasonOutage || got[0].Cause != "late" || got[0].RetryAfter != time.Second {
		t.Errorf("got %+v, want a denial by the outage policy", got)
	}
}

// Counts leave after two periods, with the keys that had them. Denials stay.
func TestPeriods(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	start := now
	c := top.New(top.Config{Keys: 2, Now: func() time.Time { return now }}, "default")
	e := engine(t, someRules, c)
	used := func(want string, since time.Duration) {
		t.Helper()
		r := c.Top("posts", 9)
		wants(t, "used", text(r.Used), want)
		wants(t, "since", r.Since.Sub(start), since)
	}
	for range 4 {
		do(t, e, store.Take, 1, "user", "ann")
	}
	do(t, e, store.Record, 2, "user", "bob")
	used("5 ann:3 bob:2, others at most 2", 0)
	now = start.Add(6 * time.Minute)
	do(t, e, store.Record, 1, "user", "cid")
	do(t, e, store.Record, 1, "user", "ann")
	used("7 ann:4 bob:3-1 cid:3-2, others at most 3", 0)
	now = start.Add(10*time.Minute - 1)
	used("7 ann:4 bob:3-1 cid:3-2, others at most 3", 0)
	now = start.Add(10 * time.Minute)
	used("2 ann:1 cid:1, others at most 1", 5*time.Minute)
	now = start.Add(time.Hour)
	used("0", time.Hour)
	if got := denials(t, c, 9, "posts"); len(got) != 1 || !got[0].Time.Equal(start) {
		t.Errorf("got %+v, want the denial of an hour ago", got)
	}
}

// A rule that a reload removed is dropped. With very many rules each keeps less.
func TestReload(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_020, 0)
	c := top.New(top.Config{Keys: 1000, Now: func() time.Time { return now }}, "default")
	e := engine(t, "rules: [{name: a, per: [user], limit: 1, window: 1h}, {name: b, per: [user], limit: 1, window: 1h}]", c)
	for i := range 1000 {
		do(t, e, store.Take, 2, "user", "ann")
		do(t, e, store.Take, 1, "user", fmt.Sprint(i))
		do(t, e, store.Take, 1, "user", fmt.Sprint(i))
		c.Missed() // counts
	}
	wants(t, "keys", len(c.Top("b", 2000).Used.Entries), 1000)
	wants(t, "denials", len(denials(t, c, 5000, "b")), 1010)
	wants(t, "dropped", c.Dropped(), int64(2*990)) // of ann, who is denied all the time

	many := "rules: [{name: a, per: [user], limit: 1, window: 1h}"
	for i := range 249 {
		many += fmt.Sprintf(", {name: rule-%d, per: [user], limit: 1, window: 1h}", i)
	}
	if err := e.SetRules(scripttest.Rules(t, many+"]")); err != nil {
		t.Fatal(err)
	}
	for range 210 {
		do(t, e, store.Take, 1, "user", "new")
		wants(t, "keys of a rule that is gone", len(c.Top("b", 1000).Used.Entries), 0)
	}
	wants(t, "keys of one that stays", len(c.Top("a", 2000).Used.Entries), 1000)
	if n := len(denials(t, c, 5000, "a")); n > 400 || n < 350 { // of 100,000 for 251 rules
		t.Errorf("got %d denials of a rule, want up to 398", n)
	}
	newest := denials(t, c, 1, "a")
	wants(t, "its newest denial", newest[0].Key, "new")
	for i := range 210 {
		do(t, e, store.Record, 1, "user", fmt.Sprint("x", i))
		wants(t, "missed", c.Missed(), int64(0))
	}
	wants(t, "keys of a new one", len(c.Top("rule-7", 1000).Used.Entries), 200)
}

// Requests that bring their own rules drop no counts of the rules in force.
func TestOtherRules(t *testing.T) {
	t.Parallel()
	c := top.New(top.Config{Keys: 10}, "default")
	e := engine(t, someRules, c)
	do(t, e, store.Take, 1, "user", "ann")
	wants(t, "posts", text(c.Top("posts", 10).Used), "1 ann:1")
	var d weir.Decision
	own := scripttest.Rules(t, "rules: [{name: own, per: [user], limit: 1, window: 1h}]")
	if err := e.Do(t.Context(), store.Take, &weir.Request{Attributes: weir.Attributes("user", "ann"), Rules: own}, &d); err != nil {
		t.Fatal(err)
	}
	wants(t, "own", text(c.Top("own", 10).Used), "1 ann:1")
	wants(t, "posts after that", text(c.Top("posts", 10).Used), "1 ann:1")
}

func TestLongKeys(t *testing.T) {
	t.Parallel()
	c := top.New(top.Config{Keys: 10}, "default")
	e := engine(t, someRules, c)
	for _, end := range []string{"a", "b", "b"} {
		do(t, e, store.Record, 1, "user", strings.Repeat("é", 400)+end)
	}
	l := c.Top("posts", 10).Used.Entries
	if len(l) != 2 || l[0].Count != 2 || l[1].Count != 1 || len(l[0].Key) > 200 || !strings.HasPrefix(l[0].Key, "éé") || !strings.Contains(l[0].Key, "é…") {
		t.Errorf("got %+v, want two keys that are cut", l)
	}
}

func TestNothing(t *testing.T) {
	t.Parallel()
	c := top.New(top.Config{}, "default")
	c.Decided(t.Context(), store.Take, &weir.Decision{}, 0)
	c.Run(t.Context())
	if c != nil || c.Missed() != 0 || denials(t, c, 1, "a") != nil || c.Top("a", 1).Used.Entries != nil {
		t.Errorf("got %v, want a collector that counts nothing", c)
	}
}

// A busy collector counts a sample, whose sum is right within a few standard
// deviations. A quiet one is exact again. Rare denials stay exact all the time.
func TestSample(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := top.New(top.Config{Keys: 10}, "default")
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { c.Run(ctx) })
		rules := scripttest.Rules(t, someRules)
		busy := decision(rules, true)
		const seconds, each = 5, 500_000
		denied := decision(rules, false)
		for range seconds * 100 {
			for range each / 100 {
				c.Decided(t.Context(), store.Take, busy, 0)
			}
			c.Decided(t.Context(), store.Take, denied, 0)
			time.Sleep(10 * time.Millisecond)
		}
		r := c.Top("posts", 10)
		if r.Used.Sample < 8 || r.Used.Sample > 256 {
			t.Errorf("got a sample of one in %d, want one in some 12 to 50", r.Used.Sample)
		}
		n := float64(seconds * each)
		if off := math.Abs(float64(r.Used.Total+c.Missed()) - n); off > 6*math.Sqrt(n*float64(r.Used.Sample)) {
			t.Errorf("got %d of %.0f counted and %d missed", r.Used.Total, n, c.Missed())
		}
		if got := text(r.Denied); got != "500 eve:500" {
			t.Errorf("denied: got %s, want each", got)
		}
		time.Sleep(11 * time.Minute) // the periods with a sample leave
		c.Decided(t.Context(), store.Take, busy, 0)
		if got := text(c.Top("posts", 10).Used); got != "1 ann:1" {
			t.Errorf("after a pause: got %s, want an exact count", got)
		}
		cancel()
		group.Wait()
	})
}

// decision returns what an engine decides for one key of the rule posts.
func decision(rules *rule.Set, allowed bool) *weir.Decision {
	d := &weir.Decision{Allowed: allowed, Outcome: "allow", Rules: rules}
	u := weir.Usage{Rule: "posts", Key: "ann", Hits: 1, Result: window.Result{Allowed: allowed, Quota: 5, Used: 2, Before: 2, ResetAfter: time.Hour}}
	if !allowed {
		d.Outcome, d.Rule, u.Key = "deny", "posts", "eve"
	}
	d.Usages = []weir.Usage{u}
	return d
}

// Decisions, readers and the goroutine that counts run at the same time.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	c := top.New(top.Config{Keys: 10}, "default")
	e := engine(t, someRules, c)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { c.Run(ctx) })
	var callers sync.WaitGroup
	for g := range 4 {
		callers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			for i := range 3000 {
				do(t, e, store.Take, 1, "user", fmt.Sprint(r.IntN(30)), "page", "/a")
				if i%100 == 0 {
					c.Top("posts", 5)
					denials(t, c, 5, "posts", "views")
				}
			}
		})
	}
	callers.Wait()
	cancel()
	group.Wait()
	if views := c.Top("views", 5).Used; views.Total+c.Missed() < 9000 || views.Sample == 1 && c.Missed() == 0 && views.Total != 12000 {
		t.Errorf("got %s with %d missed, want 12000", text(views), c.Missed())
	}
}

func TestDecidedAllocatesNothing(t *testing.T) {
	c := top.New(top.Config{Keys: 10}, "default")
	d := decision(scripttest.Rules(t, someRules), false)
	for range 5000 {
		c.Decided(t.Context(), store.Take, d, 0) // fills the rows
	}
	c.Top("posts", 1)
	for range 5000 {
		c.Decided(t.Context(), store.Take, d, 0)
	}
	c.Top("posts", 1)
	if n := testing.AllocsPerRun(1000, func() { c.Decided(t.Context(), store.Take, d, 0) }); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}

func BenchmarkDecided(b *testing.B) {
	rules := scripttest.Rules(b, someRules)
	for _, allowed := range []bool{true, false} {
		b.Run(fmt.Sprintf("allowed=%v", allowed), func(b *testing.B) {
			c := top.New(top.Config{Keys: top.DefaultKeys}, "default")
			ctx, cancel := context.WithCancel(b.Context())
			var group sync.WaitGroup
			group.Go(func() { c.Run(ctx) })
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				d := decision(rules, allowed)
				for pb.Next() {
					c.Decided(b.Context(), store.Take, d, 0)
				}
			})
			cancel()
			group.Wait()
		})
	}
}

// BenchmarkDenial measures all that a denial costs: telling the collector, and counting and
// keeping it later. The keys are many, so that none is denied too often to be kept.
func BenchmarkDenial(b *testing.B) {
	now := time.Unix(1_000_020, 0)
	c := top.New(top.Config{Keys: top.DefaultKeys, Now: func() time.Time { return now }}, "default")
	rules := scripttest.Rules(b, someRules)
	var denied [1000]*weir.Decision
	for i := range denied {
		denied[i] = decision(rules, false)
		denied[i].Usages[0].Key = fmt.Sprint("user-", i)
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		c.Decided(b.Context(), store.Take, denied[n%len(denied)], 0)
		if n%len(denied) == 0 {
			c.Missed() // counts
			now = now.Add(time.Minute)
		}
	}
	if n := c.Dropped(); n > 0 {
		b.Errorf("%d were dropped", n)
	}
}

// BenchmarkTake compares takes that a collector counts with takes that it does
// not.
func BenchmarkTake(b *testing.B) {
	for _, keys := range []int{0, top.DefaultKeys} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			c := top.New(top.Config{Keys: keys}, "default")
			e := engine(b, "rules: [{name: posts, per: [user], limit: 1000000, window: {fixed: 1h}}]", c)
			ctx, cancel := context.WithCancel(b.Context())
			var group sync.WaitGroup
			group.Go(func() { c.Run(ctx) })
			var requests [1024]weir.Request
			for i := range requests {
				requests[i].Attributes = weir.Attributes("user", fmt.Sprint("user-", i))
			}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				var d weir.Decision
				for i := 0; pb.Next(); i++ {
					if err := e.Do(ctx, store.Take, &requests[i%len(requests)], &d); err != nil {
						b.Fatal(err)
					}
				}
			})
			cancel()
			group.Wait()
		})
	}
}

// Collectors of several engines share their room, and mix nothing. One that is
// dropped frees its part.
func TestForNamespace(t *testing.T) {
	t.Parallel()
	rules := func(n int) string {
		text := "rules: ["
		for i := range n {
			text += fmt.Sprintf("{name: rule-%d, per: [user], limit: 1, window: 1h},", i)
		}
		return text + "]"
	}
	now := time.Unix(1_000_000, 0)
	a := top.New(top.Config{Keys: 1000, Now: func() time.Time { return now }}, "default")
	b := a.ForNamespace("other")
	ofA, ofB := engine(t, rules(1), a), engine(t, rules(249), b)
	do(t, ofA, store.Take, 1, "user", "ann")
	do(t, ofA, store.Take, 1, "user", "ann") // is denied
	do(t, ofB, store.Take, 1, "user", "bob")
	for _, row := range []struct {
		c            *top.Collector
		used, denied string
		denials      int
	}{{a, "1 ann:1", "1 ann:1", 1}, {b, "1 bob:1", "0", 0}} {
		r := row.c.Top("rule-0", 10)
		wants(t, "used", text(r.Used), row.used)
		wants(t, "denied", text(r.Denied), row.denied)
		wants(t, "denials", len(denials(t, row.c, 9, "rule-0")), row.denials)
	}
	for i := range 300 {
		do(t, ofB, store.Record, 1, "user", fmt.Sprint("x", i))
		b.Missed() // counts
	}
	wants(t, "keys of one of 250 rules", len(b.Top("rule-7", 1000).Used.Entries), 200)
	b.Drop()
	do(t, ofB, store.Record, 1, "user", "late")
	wants(t, "keys after the drop", len(b.Top("rule-7", 1000).Used.Entries), 0)
	now = now.Add(time.Hour) // a period begins, with more room
	for i := range 300 {
		do(t, ofA, store.Record, 1, "user", fmt.Sprint("x", i))
	}
	wants(t, "keys of the only rule", len(a.Top("rule-0", 1000).Used.Entries), 300)
}

// Keys are shown as they are, hashed with a secret, or not at all. Sums stay.
func TestKeyText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	for _, row := range []struct {
		form                 top.KeyForm
		used, denied, newest string
	}{
		{top.KeyPlain, "4 ann:3 bob:1", "1 ann:1", "ann"},
		{top.KeyHashed, "4 " + hashed("ann") + ":3 " + hashed("bob") + ":1", "1 " + hashed("ann") + ":1", hashed("ann")},
		{top.KeyNone, "4", "1", ""},
	} {
		keys, err := top.NewKeyText(row.form, "secret")
		if err != nil {
			t.Fatal(err)
		}
		c := top.New(top.Config{Keys: 10, Text: keys}, "default")
		e := engine(t, someRules, c)
		for range 4 {
			do(t, e, store.Take, 1, "user", "ann")
		}
		do(t, e, store.Take, 1, "user", "bob")
		r := c.Top("posts", 10)
		wants(t, "used", text(r.Used), row.used)
		wants(t, "denied", text(r.Denied), row.denied)
		wants(t, "newest", denials(t, c, 1, "posts")[0].Key, row.newest)
		got, shown := keys.Of("ann")
		wants(t, "text", got, row.newest)
		wants(t, "shown", shown, row.form != top.KeyNone)
		if got, _ := keys.Of(long); len(got) > 200 || strings.Contains(got, "xx") != (row.form == top.KeyPlain) {
			t.Errorf("got %s for a long key", got)
		}
	}
	one, _ := top.NewKeyText(top.KeyHashed, "")
	two, _ := top.NewKeyText(top.KeyHashed, "")
	first, _ := one.Of("ann")
	if other, _ := two.Of("ann"); first == other || len(first) != 16 {
		t.Errorf("got %s and %s, want secrets of their own", first, other)
	}
	if _, err := top.NewKeyText("clear", ""); err == nil {
		t.Error("got no error for another form")
	}
}

// hashed returns what docs/guides/personal-data.md says that a hashed key is.
func hashed(key string) string {
	h := hmac.New(sha256.New, []byte("secret"))
	h.Write([]byte(key))
	return hex.EncodeToString(h.Sum(nil))[:16]
}

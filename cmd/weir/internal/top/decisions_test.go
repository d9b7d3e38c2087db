package top_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/store"
)

// kept returns the newest decisions of c that f selects, one line each.
func kept(c *top.Collector, f top.DecisionFilter) string {
	list, _, _ := c.Decisions(f, 100)
	var b strings.Builder
	for _, d := range list {
		fmt.Fprintf(&b, "%v %s by %q", d.Allowed, d.Outcome, d.Rule)
		for _, a := range d.Attributes {
			fmt.Fprintf(&b, " %s=%s", a.Name, a.Value)
		}
		for _, j := range d.Judged {
			fmt.Fprintf(&b, "; %s %s %s %d+%d/%d %s", j.Rule, j.Key, j.Limit, j.Used, j.Hits, j.Quota, j.Reason)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

const judgedRules = `
rules:
  - {name: bad, when: {ip: 192.0.2.9}, then: deny, rest: count}
  - {name: posts, when: {action: post}, per: [user], limit: 2, window: 1h}
  - {name: trial, per: [user], limit: 1, window: 1h, mode: shadow}
  - {name: bytes, when: {bytes: "*"}, per: [user], sum: bytes, limit: 100, window: {fixed: 1m}}
`

func TestDecisionsAreKeptWhole(t *testing.T) {
	t.Parallel()
	c := top.New(top.Config{Keys: 10}, "default")
	e := engine(t, judgedRules, c)
	do(t, e, store.Take, 2, "action", "post", "user", "ann", "other", "secret") // trial would deny
	do(t, e, store.Take, 1, "action", "post", "user", "ann", "bytes", "70")     // posts and trial deny
	do(t, e, store.Take, 1, "user", "bob", "ip", "192.0.2.9")                   // a verdict denies
	do(t, e, store.Check, 9, "action", "post", "user", "ann")                   // a check is no denial
	const verdict = "false deny by \"bad\" user=bob ip=192.0.2.9; bad   0+0/0 verdict; trial bob sliding 1h 0+0/1 \n"
	const both = "false deny by \"posts\" action=post user=ann bytes=70; posts ann sliding 1h 2+1/2 limit; trial ann sliding 1h 0+1/1 ; bytes ann fixed 1m 0+70/100 \n"
	const shadow = "true allow by \"\" action=post user=ann; posts ann sliding 1h 0+2/2 ; trial ann sliding 1h 0+2/1 limit\n"
	for _, tc := range []struct {
		f    top.DecisionFilter
		want string
	}{
		{top.DecisionFilter{}, verdict + both + shadow},
		{top.DecisionFilter{Rule: "posts"}, both},
		{top.DecisionFilter{Rule: "trial"}, shadow},
		{top.DecisionFilter{Reason: top.ReasonVerdict}, verdict},
		{top.DecisionFilter{Enforced: true}, verdict + both},
		{top.DecisionFilter{Outcome: "allow"}, shadow},
		{top.DecisionFilter{Text: "192.0"}, verdict},
		{top.DecisionFilter{Text: "bo"}, verdict},
		{top.DecisionFilter{Text: "nobody"}, ""},
	} {
		wants(t, fmt.Sprintf("%+v", tc.f), kept(c, tc.f), tc.want)
	}
}

// What is kept shows keys, and the values of attributes, only as the lists of denials do.
func TestDecisionsHideKeys(t *testing.T) {
	t.Parallel()
	for form, want := range map[top.KeyForm]string{
		top.KeyHashed: `false deny by "posts" action=HASH user=HASH; posts HASH sliding 1h 2+1/2 limit` + "\n",
		top.KeyNone:   `false deny by "posts"; posts  sliding 1h 2+1/2 limit` + "\n",
	} {
		text, err := top.NewKeyText(form, "secret")
		if err != nil {
			t.Fatal(err)
		}
		c := top.New(top.Config{Keys: 10, Text: text}, "default")
		e := engine(t, "rules: [{name: posts, when: {action: post}, per: [user], limit: 2, window: 1h}]", c)
		for range 3 {
			do(t, e, store.Take, 1, "action", "post", "user", "ann")
		}
		got := kept(c, top.DecisionFilter{})
		for _, value := range []string{"post", "ann"} {
			if hash, _ := text.Of(value); hash != "" {
				got = strings.ReplaceAll(got, hash, "HASH")
			}
		}
		wants(t, string(form), got, want)
		list, _, _ := c.Decisions(top.DecisionFilter{}, 1)
		wants(t, "hashed values are all there", list[0].Cut, form == top.KeyNone)
	}
}

// What is kept of a request is kept for a day, as denials are, also if nothing displaces it.
func TestDecisionsAreKeptForADay(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_020, 0)
	c := top.New(top.Config{Keys: 10, Now: func() time.Time { return now }}, "default")
	e := engine(t, "rules: [{name: posts, per: [user], limit: 1, window: 1h}]", c)
	do(t, e, store.Take, 2, "user", "ann")
	now = now.Add(23 * time.Hour)
	do(t, e, store.Take, 2, "user", "bob")
	for _, want := range []int{2, 1, 1, 0} {
		c.Top("posts", 1) // counts, as each tick does
		list, _, _ := c.Decisions(top.DecisionFilter{}, 100)
		wants(t, now.String(), len(list), want)
		now = now.Add(8*time.Hour + time.Minute)
	}
}

// A key that is denied constantly does not displace others, many keys do not take more than a part of a
// processor, and no more than 1,000 decisions are kept.
func TestDecisionsAreBounded(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_020, 0)
	c := top.New(top.Config{Keys: 10, Now: func() time.Time { return now }}, "default")
	rules := scripttest.Rules(t, "rules: [{name: posts, per: [user], limit: 1, window: 1h}]")
	d := decision(rules, false)
	deny := func(key string) {
		d.Usages[0].Key = key
		c.Requested(store.Take, &weir.Request{Attributes: weir.Attributes("user", key)}, d, nil, nil, time.Time{})
	}
	count := func(what string, wantKept int, wantDropped int64) {
		t.Helper()
		list, _, dropped := c.Decisions(top.DecisionFilter{}, 10_000)
		wants(t, what+": kept", len(list), wantKept)
		wants(t, what+": dropped", dropped, wantDropped)
	}
	for range 50 {
		deny("ann")
	}
	count("one key", 10, 40)
	now = now.Add(time.Second)
	for n := range 150 {
		deny(fmt.Sprint("few ", n))
	}
	list, _, dropped := c.Decisions(top.DecisionFilter{}, 10_000)
	if len(list) != 110 || dropped != 90 {
		t.Errorf("many keys in a second: got %d kept and %d dropped, want 100 more, and 50", len(list), dropped)
	}
	runtime.GC()
	for n := range 20_000 {
		if n%50 == 0 {
			now = now.Add(time.Second)
		}
		deny(strings.Repeat("x", 1000) + fmt.Sprint(n))
	}
	if list, oldest, _ := c.Decisions(top.DecisionFilter{}, 10_000); len(list) != 1000 || !oldest.Equal(list[len(list)-1].Time) {
		t.Errorf("got %d kept from %v on, want 1,000", len(list), oldest)
	}
	list, _, _ = c.Decisions(top.DecisionFilter{}, 1)
	wants(t, "a long value was shortened", list[0].Cut, true)

	other := c.ForNamespace("other")
	other.Requested(store.Take, &weir.Request{}, d, nil, nil, time.Time{})
	if list, _, _ := other.Decisions(top.DecisionFilter{}, 10); len(list) != 1 {
		t.Errorf("another namespace: got %d, want its own", len(list))
	}
	other.Drop()
	if list, _, _ := other.Decisions(top.DecisionFilter{}, 10); len(list) != 0 {
		t.Errorf("a namespace that was dropped: got %d, want none", len(list))
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_020, 0)
	c := top.New(top.Config{Keys: 10, Now: func() time.Time { return now }}, "default")
	rules := scripttest.Rules(t, "rules: [{name: posts, per: [user], limit: 1, window: 1h}]")
	d := decision(rules, false)
	deny := func(from, n int) {
		for i := range n {
			d.Usages[0].Key = fmt.Sprint(from + i)
			if c.Requested(store.Take, &weir.Request{}, d, nil, nil, time.Time{}); i%50 == 0 {
				now = now.Add(time.Second)
			}
		}
	}
	deny(0, 1)
	w, none := c.Watch(top.DecisionFilter{Rule: "posts"}), c.Watch(top.DecisionFilter{Rule: "nope"})
	defer w.Close()
	defer none.Close()
	type got struct {
		list   []*top.Decision
		missed int64
	}
	next := make(chan got)
	go func() {
		list, missed, _ := w.Next(t.Context())
		next <- got{list, missed}
	}()
	deny(1, 1)
	if g := <-next; len(g.list) != 1 || g.list[0].Judged[0].Key != "1" || g.missed != 0 {
		t.Errorf("got %+v, want the one since the watch began", g)
	}
	deny(10, 120)
	list, missed, err := w.Next(t.Context())
	if err != nil || len(list) != 100 || list[99].Judged[0].Key != "129" || missed != 20 {
		t.Errorf("got %d and %d missed, error %v; want the newest 100, and 20", len(list), missed, err)
	}
	deny(1000, 1500)
	if list, missed, err = w.Next(t.Context()); err != nil || len(list) != 100 || missed != 1400 {
		t.Errorf("got %d and %d missed, error %v; want the newest 100, and 1,400", len(list), missed, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := none.Next(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("nothing matches: got error %v, want that of the context", err)
	}
}

func BenchmarkDenied(b *testing.B) {
	c := top.New(top.Config{Keys: 10}, "default")
	rules := scripttest.Rules(b, "rules: [{name: posts, per: [user], limit: 1, window: 1h}]")
	d := decision(rules, false)
	r := &weir.Request{Attributes: weir.Attributes("user", "ann")}
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			c.Requested(store.Take, r, d, nil, nil, time.Time{})
		}
	})
}

// Denials that were dropped take no memory while the side store cannot write, as with a directory
// that is read-only.
func TestSideStoreThatNeverWrites(t *testing.T) {
	rules := scripttest.Rules(t, "rules: [{name: posts, per: [user], limit: 1, window: 1h}]")
	now := time.Unix(1_000_020, 0)
	c := opened(t, top.Config{Keys: 10, Side: newSideStore(), Now: func() time.Time { return now }})
	d := decision(rules, false)
	deny := func(n int) {
		for i := range n {
			d.Usages[0].Key = fmt.Sprint(i % 1000)
			if c.Decided(t.Context(), store.Take, d, 0); i%1000 == 999 {
				c.Missed() // counts
				now = now.Add(10 * time.Second)
			}
		}
	}
	deny(100_000)
	before := heap()
	deny(2_000_000)
	if after := heap(); after > before+1<<20 {
		t.Errorf("got %d bytes more after 2,000,000 further denials, want at most 1 MiB", after-before)
	}
	runtime.KeepAlive(c)
}

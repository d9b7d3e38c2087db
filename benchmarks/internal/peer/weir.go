package peer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/benchmarks/internal/measure"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/store/pgstore"
	"github.com/weirhq/weir/store/redisstore"
	"github.com/weirhq/weir/window"
)

// limitOf returns weir's limit for c.
type limitOf func(Config) weir.Limit

func sliding(c Config) weir.Limit  { return weir.Sliding(c.Quota, c.Window) }
func bucket(c Config) weir.Limit   { return weir.Bucket(c.Quota, c.Window, 0) }
func fixed(c Config) weir.Limit    { return weir.Fixed(c.Quota, c.Window) }
func calendar(c Config) weir.Limit { return weir.Calendar(c.Quota, window.Day, nil) }

// weirHot returns the windows for one key. With a quota that is never exhausted, a sliding window counts in groups. The
// exact one has a quota of 100, and a window so short that hits leave as fast as they arrive.
func weirHot() []Peer {
	exact := weirPeer("weir sliding, exact, in motion", "100 in 5 µs, so that a log of up to 100 instants turns over while it is measured; "+
		"two cores exceed it, and are denied part of the time", func(c Config) weir.Limit { return sliding(exact(c)) })
	exact.Kind = Flows
	return []Peer{
		exact,
		weirPeer("weir sliding", "in groups where it admits, of 10⁷ hits each; exact where it denies", sliding),
		weirPeer("weir bucket", "", bucket),
		weirPeer("weir fixed", "", fixed),
		weirPeer("weir calendar day", "", calendar),
	}
}

func weirMillion() []Peer {
	three := weirPeer("weir sliding, exact, 3 hits a key", "each key has three hits when its bytes are taken, then the same traffic as all", sliding)
	three.Hits = 3
	return []Peer{
		weirPeer("weir sliding, exact", "", sliding),
		three,
		weirPeer("weir bucket", "a hit drains within 0.6 s, so keys expire all the time, and are reclaimed and made anew while they are measured", bucket),
		weirPeer("weir fixed", "", fixed),
	}
}

func weirAccuracy() []Peer {
	return []Peer{
		weirPeer("weir sliding, precision 100 (default)", "", sliding),
		weirPeer("weir sliding, precision 1000", "", func(c Config) weir.Limit {
			return weir.Limit{Quota: c.Quota, Window: window.Window{Kind: window.KindSliding, Length: c.Window, Precision: int(c.Quota)}}
		}),
		weirPeer("weir cells", "", func(c Config) weir.Limit { return weir.Cells(c.Quota, c.Window) }),
		weirPeer("weir bucket", "", bucket),
		weirPeer("weir fixed", "", fixed),
	}
}

// weirPeer returns a Limiter with a separate store. The store has the given clock, if there is one.
func weirPeer(name, note string, limit limitOf) Peer {
	return Peer{Name: name, Note: note, Keys: true, Clock: true, New: func(c Config) Limiter {
		var options []weir.LimiterOption
		if c.Now != nil {
			tell := func() window.Instant { return window.Instant(c.Now().UnixMicro()) }
			options = []weir.LimiterOption{weir.WithStore(memstore.New(memstore.WithClock(tell))), weir.WithName(name)}
		}
		l := measure.Must(weir.NewLimiter(limit(c), options...))
		return Limiter{Allow: allow(l), Close: func() { _ = l.Close() }} // a store in memory closes without error
	}}
}

func allow(l *weir.Limiter) func(string) bool {
	ctx := context.Background()
	return func(key string) bool {
		r, err := l.Allow(ctx, key)
		return err == nil && r.Allowed
	}
}

// weirOver returns limiters that count in a store that open opens.
func weirOver(open func(Config) store.Store) []Peer {
	on := func(name string, limit limitOf) Peer {
		return Peer{Name: name, Keys: true, New: func(c Config) Limiter {
			s := open(c)
			l := measure.Must(weir.NewLimiter(limit(c), weir.WithStore(s), weir.WithName(name)))
			return Limiter{Allow: allow(l), Close: func() { _ = s.Close() }} // nothing is lost
		}}
	}
	return []Peer{on("weir sliding", sliding), on("weir bucket", bucket), on("weir fixed", fixed)}
}

// store opens a store in Redis.
func (c Config) store() store.Store {
	scheme := "redis"
	if c.Cluster {
		scheme = "redis+cluster"
	}
	return measure.Must(redisstore.Open(context.Background(), scheme+"://"+c.Redis+"?timeout=1s"))
}

// postgres opens a store in PostgreSQL.
func (c Config) postgres() store.Store {
	return measure.Must(pgstore.Open(context.Background(), c.Postgres+"&timeout=10s"))
}

// Library returns the rows of weir's library: in memory, or over Redis.
func Library(redis bool) []Peer {
	if redis {
		return []Peer{engineOver("library, Engine with one rule, over Redis", 1, Config.store)}
	}
	memory := func(Config) store.Store { return memstore.New() }
	return []Peer{weirPeer("library, Limiter", "", sliding), engineOver("library, Engine with one rule", 1, memory)}
}

// engineOver returns an engine with n sliding rules per user. open opens its store.
func engineOver(name string, n int, open func(Config) store.Store) Peer {
	return Peer{Name: name, Keys: true, New: func(c Config) Limiter {
		s, ctx := open(c), context.Background()
		e := engine(perUser(c, n), weir.WithStore(s))
		return Limiter{Allow: func(key string) bool {
			d, err := e.Take(ctx, weir.Request{Attributes: weir.Attributes("action", "post", "user", key)})
			return err == nil && d.Allowed
		}, Close: func() { _, _ = e.Close(), s.Close() }} // nothing is lost
	}}
}

// engine returns an engine of rules.
func engine(rules []rule.Rule, options ...weir.Option) *weir.Engine {
	return measure.Must(weir.NewEngine(measure.Must(rule.New(rules, nil)), options...))
}

// Engine returns the rows with an Engine, and those with Limiters for comparison. The limiters of these rows can
// be called by one goroutine only. They ignore the key that they are given, because the request has one.
func Engine() []Peer {
	one := engineOf("Engine, 1 rule", func(c Config) []rule.Rule { return perUser(exact(c), 1) })
	one.Reference = true
	peers := []Peer{
		limiters("Limiter.Allow", 1),
		limiters("3 × Limiter.Allow", 3),
		engineBaseline("baseline: one rule written in the program", "attributes, key, the same call of the same store, Decision", 1),
		engineBaseline("baseline: 3 rules written in the program", "", 3),
		dataBaseline("baseline: one rule as data", "the same for rules that a program has loaded: conditions of equality, one attribute in a key, "+
			"pooled memory; no other kinds of rules, errors or outages", 1),
		dataBaseline("baseline: 3 rules as data", "", 3),
		one,
		engineOf("Engine, 3 rules, all match", func(c Config) []rule.Rule { return perUser(exact(c), 3) }),
		// With the quota of the section, which is so large that hits are counted in groups.
		engineOf("Engine, 1 rule, hits in groups", func(c Config) []rule.Rule { return perUser(c, 1) }),
		engineOf("Engine, 3 rules, hits in groups", func(c Config) []rule.Rule { return perUser(c, 3) }),
	}
	for i, n := range RuleCounts {
		name := fmt.Sprintf("Engine, %s rules, one matches by equality", []string{"10", "1,000", "10,000"}[i])
		peers = append(peers, engineOf(name, func(c Config) (rules []rule.Rule) { // n rules for n actions; requests have the last
			for k := range n {
				r := perUser(exact(c), 1)[0]
				r.Name = fmt.Sprint("rule-", k)
				if k < n-1 {
					r.When[0].Test = rule.Equal(fmt.Sprint("action-", k))
				}
				rules = append(rules, r)
			}
			return rules
		}))
	}
	return peers
}

// exact returns c. If the quota of c is never used up, it returns a limit of up to a hundred hits instead, with a
// window so short that hits leave as fast as they come.
func exact(c Config) Config {
	if c.Quota > 100 {
		c.Quota, c.Window = 100, min(c.Window, 5*time.Microsecond)
	}
	return c
}

// perUser returns n rules per user that all match.
func perUser(c Config, n int) (rules []rule.Rule) {
	for i := range n {
		rules = append(rules, rule.Rule{
			Name: fmt.Sprint("rule-", i), Per: []string{"user"},
			Quota:  &rule.Quota{Value: c.Quota},
			Window: window.Sliding(c.Window * time.Duration(i+1)),
			When:   []rule.Condition{{Attribute: "action", Test: rule.Equal("post")}},
		})
	}
	return rules
}

// limiters calls n Limiters, one after the other.
func limiters(name string, n int) Peer {
	return Peer{Name: name, New: func(c Config) Limiter {
		some, ctx := make([]*weir.Limiter, n), context.Background()
		for i := range some {
			some[i] = measure.Must(weir.NewLimiter(sliding(exact(c))))
		}
		return Limiter{Allow: func(string) bool {
			for _, l := range some {
				if r, err := l.Allow(ctx, "42"); err != nil || !r.Allowed {
					return false
				}
			}
			return true
		}}
	}}
}

func engineOf(name string, rules func(Config) []rule.Rule) Peer {
	return Peer{Name: name, New: func(c Config) Limiter {
		e, ctx, d := engine(rules(c)), context.Background(), weir.Decision{}
		req := weir.Request{Attributes: weir.Attributes("action", "post", "user", "42")}
		return Limiter{
			Allow: func(string) bool { return e.Do(ctx, store.Take, &req, &d) == nil && d.Allowed },
			Close: func() { _ = e.Close() }, // a store in memory closes without error
		}
	}}
}

// engineBaseline returns the minimum work of a decision by n rules: it finds the attributes, builds the key, asks
// the same store and fills in a Decision. The rules are written in the program.
func engineBaseline(name, note string, n int) Peer {
	return Peer{Name: name, Note: note, New: func(c Config) Limiter {
		c = exact(c)
		memory, attrs, key := memstore.New(), weir.Attributes("action", "post", "user", "42"), make([]byte, 0, 64)
		call := []store.Call{{Verb: store.Take, Ops: make([]store.Op, n)}}
		ops, d, ctx := call[0].Ops, weir.Decision{Usages: make([]weir.Usage, n)}, context.Background()
		for i := range ops {
			limit, id := window.MustCompile(weir.Sliding(c.Quota, c.Window*time.Duration(i+1))), fmt.Sprint("rule-", i)
			ops[i] = store.Op{Space: store.NewSpace("", id, id, 0), Limit: limit, N: 1}
		}
		return Limiter{Allow: func(string) bool {
			var action, user string
			for i := range attrs {
				switch a := &attrs[i]; a.Name {
				case "action":
					action = a.Value
				case "user":
					user = a.Value
				}
			}
			if action != "post" || user == "" {
				return false
			}
			key = append(append(key[:0], byte(len(user))), user...)
			for i := range ops {
				ops[i].Key = key
			}
			if memory.Do(ctx, call) != nil || call[0].Err != nil {
				return false
			}
			d.Allowed, d.Outcome, d.Rule, d.RetryAfter, d.RetryRule = true, rule.Allow, "", 0, ""
			for i := range d.Usages {
				u, name := &d.Usages[i], ops[i].Space.Name()
				u.Rule, u.Kind, u.Key, u.Shadow, u.Hits, u.Result = name, rule.KindLimit, user, false, 1, ops[i].Result
				if !u.Allowed && d.Allowed {
					d.Allowed, d.Outcome, d.Rule, d.RetryAfter, d.RetryRule = false, rule.Deny, name, u.RetryAfter, name
				}
			}
			return d.Allowed
		}, Close: func() { _ = memory.Close() }} // a store in memory closes without error
	}}
}

// dataBaseline returns the minimum work of a decision by n rules that are data, each with one condition of equality and
// one attribute in its key: it puts the attributes into a vector, finds the rules that match, and makes an op for each
// of them, in pooled memory.
func dataBaseline(name, note string, n int) Peer {
	type loaded struct {
		when, per int // attributes
		value     string
		op        store.Op
	}
	type call struct {
		values []string
		keys   []byte
		ops    []store.Op
		of     []*loaded
	}
	return Peer{Name: name, Note: note, New: func(c Config) Limiter {
		c = exact(c)
		memory, attrs, names := memstore.New(), weir.Attributes("action", "post", "user", "42"), []string{"action", "user"}
		rules, d, ctx := make([]loaded, n), weir.Decision{}, context.Background()
		for i := range rules {
			limit, id := window.MustCompile(weir.Sliding(c.Quota, c.Window*time.Duration(i+1))), fmt.Sprint("rule-", i)
			rules[i] = loaded{0, 1, "post", store.Op{Space: store.NewSpace("", id, id, 0), Limit: limit, N: 1}}
		}
		calls := sync.Pool{New: func() any { return &call{values: make([]string, len(names))} }}
		return Limiter{Allow: func(string) bool {
			l := calls.Get().(*call)
			for i := range attrs {
				if at := slices.Index(names, attrs[i].Name); at >= 0 {
					l.values[at] = attrs[i].Value
				}
			}
			for i := range rules {
				r := &rules[i]
				if l.values[r.when] != r.value || l.values[r.per] == "" {
					continue
				}
				from, user := len(l.keys), l.values[r.per]
				l.keys = append(append(l.keys, byte(len(user))), user...)
				l.ops, l.of = append(l.ops, r.op), append(l.of, r)
				l.ops[len(l.ops)-1].Key = l.keys[from:]
			}
			if memory.Decide(ctx, store.Take, l.ops) != nil {
				return false
			}
			d.Allowed, d.Outcome, d.Rule, d.RetryAfter, d.RetryRule, d.Usages = true, rule.Allow, "", 0, "", d.Usages[:0]
			for i, r := range l.of {
				name := r.op.Space.Name()
				d.Usages = append(d.Usages, weir.Usage{Rule: name, Kind: rule.KindLimit, Key: l.values[r.per], Hits: 1, Result: l.ops[i].Result})
				if u := &d.Usages[i]; !u.Allowed && d.Allowed {
					d.Allowed, d.Outcome, d.Rule, d.RetryAfter, d.RetryRule = false, rule.Deny, name, u.RetryAfter, name
				}
			}
			clear(l.values)
			l.keys, l.ops, l.of = l.keys[:0], l.ops[:0], l.of[:0]
			calls.Put(l)
			return d.Allowed
		}, Close: func() { _ = memory.Close() }} // a store in memory closes without error
	}}
}

// Layouts are the ways in which conditions are spread over rules, and RuleCounts the numbers of rules.
var (
	Layouts    = []string{"own", "shared", "spread"}
	RuleCounts = []int{10, 1000, 10_000}
)

// Matcher finds the two rules of n that match one of many requests.
func Matcher(layout string, n int) func(string) bool {
	four := []string{"agent", "host", "path", "referer"}
	value := func(i int) string { return fmt.Sprint("/items/", i) }
	attribute := func(i int) string {
		if layout == "spread" {
			return four[i%4]
		}
		return "path"
	}
	rules := make([]rule.Rule, n)
	for i := range rules {
		when := []rule.Condition{{Attribute: attribute(i), Test: rule.Equal(value(i))}}
		if layout == "shared" {
			when = append(when, rule.Condition{Attribute: "action", Test: rule.Equal("post")})
		}
		rules[i] = rule.Rule{Name: fmt.Sprint("r", i), When: when, Per: []string{"user"}, Window: window.Sliding(time.Hour)}
	}
	rules[n-1] = rule.Rule{Name: "all", Per: []string{"user"}, Window: window.Sliding(time.Hour)}
	set := measure.Must(rule.New(rules, nil))
	random, requests := rand.New(rand.NewPCG(1, 2)), make([][]string, 1024)
	for k := range requests {
		i := random.IntN(n - 1)
		values := map[string]string{"action": "post", "user": "42", "path": "-", "host": "-", "agent": "-", "referer": "-"}
		values[attribute(i)] = value(i)
		for _, name := range set.Attributes() {
			requests[k] = append(requests[k], values[name])
		}
	}
	found, k := make([]int, 0, 8), 0
	return func(string) bool {
		k++
		found = set.Compiled().Match(requests[k%len(requests)], found[:0], false)
		return len(found) == 2
	}
}

// WindowKinds are the windows whose arithmetic is measured.
var WindowKinds = []struct {
	Name   string
	window window.Window
	after  window.After
}{
	{Name: "sliding", window: window.Sliding(time.Minute)},
	{Name: "cells", window: window.Cells(time.Minute, 0)},
	{Name: "fixed", window: window.Fixed(time.Minute)},
	{Name: "calendar", window: window.Calendar(window.Day, nil)},
	{Name: "bucket", window: window.Bucket(time.Minute, 0)},
	{Name: "with `after`", window: window.Sliding(time.Minute), after: window.After{Count: 3, Window: window.Calendar(window.Hour, nil)}},
}

// Arithmetic takes hits of one state in window kind of WindowKinds, a little over the quota, or at an instant at
// which all are denied.
func Arithmetic(kind int, quota int64, denied bool) func(string) bool {
	c := window.MustCompile(window.Limit{Quota: quota, Window: WindowKinds[kind].window, After: WindowKinds[kind].after})
	var s window.State
	now, step := window.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)), window.Instant(50e6/quota)
	if denied {
		s, _ = c.Record(s, now, window.Hits{N: quota + 10})
		step = 0
	}
	return func(string) bool {
		var r window.Result
		now += step
		s, r = c.Take(s, now, window.Hits{N: 1})
		return r.Allowed
	}
}

package record_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/logs"
	"github.com/weirhq/weir/cmd/weir/internal/record"
	"github.com/weirhq/weir/cmd/weir/internal/replay"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// rules have two limits: per user, for posts, and per address.
func rules(t testing.TB) *rule.Set {
	t.Helper()
	set, err := rule.New([]rule.Rule{
		{Name: "posts", When: []rule.Condition{{Attribute: "action", Test: rule.Equal("post")}}, Per: []string{"user"}, Quota: &rule.Quota{Value: 5}, Window: window.Sliding(time.Hour)},
		{Name: "addresses", Per: []string{"ip"}, Quota: &rule.Quota{Value: 50}, Window: window.Sliding(time.Hour)},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// observer records what an engine decides.
type observer struct{ *record.Requests }

func (observer) Decided(_ context.Context, _ store.Verb, _ *weir.Decision, _ time.Duration) {}
func (observer) Failed(_ context.Context, _ store.Verb, _ error)                            {}
func (observer) Outage(_ context.Context, _ store.Verb, _ error)                            {}

// engine returns an engine whose requests are recorded.
func engine(t testing.TB, r *record.Recorder, namespace string) *weir.Engine {
	t.Helper()
	return scripttest.Engine(t, rules(t), weir.WithObserver(observer{r.Of(namespace)}))
}

// line is a recorded request.
type line struct {
	Time       int64
	Verb       string
	Hits       int64
	Hold       string
	Attributes map[string]string
}

// disorder is by how many microseconds lines may be out of order: a request is dated when it begins.
const disorder = 10e6

func read(t *testing.T, r *record.Recorder, namespace string) (lines []line, state record.Recording) {
	t.Helper()
	var text strings.Builder
	state, err := r.Write(&text, namespace, func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	for one := range strings.Lines(text.String()) {
		var l line
		if err := json.Unmarshal([]byte(one), &l); err != nil {
			t.Fatalf("%s: %v", one, err)
		}
		if n := len(lines); n > 0 && l.Time < lines[n-1].Time-disorder {
			t.Fatalf("line %d is earlier than the one before", n+1)
		}
		lines = append(lines, l)
	}
	if int64(len(lines)) != state.Requests {
		t.Fatalf("got %d lines, the state says %d", len(lines), state.Requests)
	}
	return lines, state
}

// Each request of a namespace is written as it was, with the attributes that rules use; others are not.
func TestWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := record.New(0, nil)
		shop, blog := engine(t, r, "shop"), engine(t, r, "blog")
		ctx := t.Context()
		ask := func(verb store.Verb, e *weir.Engine, hits int64, attributes ...string) {
			time.Sleep(time.Millisecond)
			var d weir.Decision
			if err := e.Do(ctx, verb, &weir.Request{Attributes: weir.Attributes(attributes...), Hits: hits}, &d); err != nil {
				t.Fatal(err)
			}
		}
		ask(store.Take, shop, 0, "action", "post", "user", "ann", "ip", "192.0.2.1", "agent", "curl")
		ask(store.Check, shop, 3, "ip", "2001:db8::1")
		ask(store.Take, blog, 0, "ip", "192.0.2.9")
		ask(store.Refund, shop, 1, "ip", "192.0.2.1")
		ask(store.Record, shop, 1, "action", "\"\x00é", "user", "bob")
		got, state := read(t, r, "shop")
		want := []line{
			{Attributes: map[string]string{"action": "post", "user": "ann", "ip": "192.0.2.1"}},
			{Verb: "check", Hits: 3, Attributes: map[string]string{"ip": "2001:db8::1"}},
			{Verb: "refund", Hits: 1, Attributes: map[string]string{"ip": "192.0.2.1"}},
			{Verb: "record", Hits: 1, Attributes: map[string]string{"action": "\"\x00é", "user": "bob"}},
		}
		for i := range got {
			got[i].Time = 0
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if state.Share != 1 || fmt.Sprint(state.Attributes) != "[action ip user]" || state.Since.After(time.Now()) {
			t.Errorf("got %+v", state)
		}
		if _, err := r.Write(&strings.Builder{}, "shop", func() error { return errors.ErrUnsupported }); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("got %v, want the error of stop", err)
		}
		time.Sleep(record.Age + time.Millisecond)
		if got, _ := read(t, r, "shop"); len(got) != 0 {
			t.Errorf("got %d requests after an hour", len(got))
		}
	})
}

// A replay of recorded requests decides as the engine did, also if requests gave back what they took: refunds by an event, and
// holds that were settled at a lower cost, cancelled or renewed.
func TestReplayOfHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const login = "  - {name: logins, when: {action: login}, per: [user], limit: 2, window: 1h, feedback: {ok: all}}\n"
		const others = "  - {name: exports, when: {action: export}, limit: 2, window: {held: 10s}}\n" +
			"  - {name: tokens, when: {action: chat}, per: [team], sum: tokens, limit: 1000, window: 1h, hold: 5m}\n"
		rules := scripttest.Rules(t, "rules:\n"+login+others)
		r := record.New(0, nil)
		e := scripttest.Engine(t, rules, weir.WithObserver(observer{r.Of("default")}))
		denied := 0
		take := func(final bool, attributes ...string) weir.Receipt {
			time.Sleep(time.Second)
			d, err := e.Take(t.Context(), weir.Request{Attributes: weir.Attributes(attributes...), Final: final})
			if err != nil {
				t.Fatal(err)
			}
			if !d.Allowed {
				denied++
			}
			return d.Receipt
		}
		do := func(verb store.Verb, receipt weir.Receipt, hits int64, feedback string, attributes ...string) {
			time.Sleep(time.Second)
			q := weir.Request{Attributes: weir.Attributes(attributes...), Receipt: receipt, Hits: hits, Feedback: feedback}
			if err := e.Do(t.Context(), verb, &q, new(weir.Decision)); err != nil {
				t.Fatal(err)
			}
		}
		for range 5 { // the third would be denied without the refunds
			take(false, "action", "login", "user", "ann")
			do(store.Refund, weir.Receipt{}, 0, "ok", "action", "login", "user", "ann")
			do(store.Settle, take(false, "action", "chat", "team", "red", "tokens", "600"), 0, "", "action", "chat", "team", "red", "tokens", "1")
			do(store.Cancel, take(false, "action", "chat", "team", "blue", "tokens", "600"), 0, "", "action", "chat", "team", "blue", "tokens", "600")
			do(store.Settle, take(false, "action", "export"), 0, "", "action", "export")
			take(true, "action", "export") // which holds nothing
		}
		if denied != 0 {
			t.Fatalf("got %d denied, want none", denied)
		}
		for range 3 {
			take(false, "action", "login", "user", "ann") // the third is denied
		}
		long := take(false, "action", "export")
		for range 3 {
			time.Sleep(6 * time.Second)
			do(store.Renew, long, 0, "", "action", "export")
		}
		take(false, "action", "export")
		take(false, "action", "export") // denied, as the first was renewed
		if denied != 2 {
			t.Fatalf("got %d denied, want 2", denied)
		}

		var text strings.Builder
		if _, err := r.Write(&text, "default", func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		format, err := logs.Spec{Format: "weir"}.Compile()
		if err != nil {
			t.Fatal(err)
		}
		log := replay.Log{Name: "log", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text.String())), nil }}
		source := replay.Logs{Files: []replay.Log{log}, Format: format}
		report, err := replay.Run(t.Context(), rules, source, replay.WithAlone(), replay.WithPeaks())
		if err != nil {
			t.Fatal(err)
		}
		if report.Bad != 0 || report.Requests != 31 || report.Denied != 2 || report.Ends != 23 {
			t.Errorf("got %d bad, %d of %d requests denied, %d ends: %v", report.Bad, report.Denied, report.Requests, report.Ends, report.BadLines)
		}
		for _, rule := range report.Rules {
			if *rule.Alone != rule.Denied {
				t.Errorf("%s: got %d denied alone, want %d", rule.Name, *rule.Alone, rule.Denied)
			}
			if p := rule.Peaks; rule.Name == "tokens" {
				for i, n := range p.Keys { // the fifth chat of a team comes to 604 tokens
					if n > 0 && p.Bounds[i] != 700 {
						t.Errorf("got %d peaks up to %d, want them up to 700", n, p.Bounds[i])
					}
				}
			}
		}

		// A draft without the event gives nothing back for it.
		draft := scripttest.Rules(t, "rules:\n"+strings.Replace(login, ", feedback: {ok: all}", "", 1)+others)
		c, err := replay.Compare(t.Context(), rules, draft, source)
		if err != nil {
			t.Fatal(err)
		}
		if c.Bad != 0 || c.Requests != 31 || c.Ends != 23 || c.DeniedOld != 2 || c.NewlyDenied != 5 {
			t.Errorf("got %+v, want the logins but two denied", c)
		}
		for rule, want := range map[string]int64{"logins": 8, "tokens": 10} {
			s, err := replay.Suggest(t.Context(), rules, replay.Sweep{Rule: rule}, source)
			if err != nil {
				t.Fatal(err)
			}
			if s.Matched != want {
				t.Errorf("%s: got %d requests, want %d: refunds and settles are none", rule, s.Matched, want)
			}
		}
	})
}

// Values of keys are hidden, equal ones by equal texts; others are not.
func TestHide(t *testing.T) {
	t.Parallel()
	r := record.New(0, func(v string) string { return fmt.Sprint("h", len(v)) })
	e := engine(t, r, "default")
	for _, user := range []string{"ann", "bob", "carl"} {
		if _, err := e.Take(t.Context(), weir.Request{Attributes: weir.Attributes("action", "post", "user", user)}); err != nil {
			t.Fatal(err)
		}
	}
	got, state := read(t, r, "default")
	if len(got) != 3 || got[0].Attributes["user"] != "h3" || got[2].Attributes["user"] != "h4" || got[0].Attributes["action"] != "post" || got[0].Attributes["ip"] != "" {
		t.Errorf("got %v", got)
	}
	if fmt.Sprint(state.Hidden) != "[ip user]" {
		t.Errorf("got %v hidden, want the attributes of keys", state.Hidden)
	}
}

// If the memory does not hold an hour, a share of the keys is kept, and of these each request since a stated time.
func TestShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := record.New(record.MinBytes, nil)
		e := engine(t, r, "default")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go r.Run(ctx)
		const keys, rounds, every = 500, 200, 30 * time.Second
		began := time.Now()
		for round := range rounds {
			for k := range keys {
				d := weir.Decision{}
				if err := e.Do(t.Context(), store.Take, &weir.Request{Attributes: weir.Attributes("ip", fmt.Sprintf("10.0.%d.%d", k/250, k%250), "user", strings.Repeat("u", 300))}, &d); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(every)
			if state := r.State("default"); state.Bytes > state.Most || state.Most != record.MinBytes {
				t.Fatalf("round %d: got %d bytes, want at most %d", round, state.Bytes, record.MinBytes)
			}
		}
		got, state := read(t, r, "default")
		if state.Share >= 1 || state.Share < 1.0/16 || !state.Since.After(began) || time.Since(state.Since) < 30*time.Minute {
			t.Errorf("got share %v since %v, of %d requests; now is %v", state.Share, state.Since, len(got), time.Now())
		}
		byKey := map[string]int{}
		for _, l := range got {
			byKey[l.Attributes["ip"]]++
		}
		want := 0
		for at := began; !at.After(time.Now().Add(-time.Second)); at = at.Add(every) {
			if !at.Before(state.Since) {
				want++
			}
		}
		if n := float64(len(byKey)); n < keys*state.Share*0.7 || n > keys*state.Share*1.3 {
			t.Errorf("got %v of %d keys, want a share of %v", n, keys, state.Share)
		}
		for key, n := range byKey {
			if n < want-1 || n > want+1 {
				t.Fatalf("%s: got %d requests since %v, want %d", key, n, state.Since, want)
			}
		}

		// With few requests, the share grows again.
		time.Sleep(3 * record.Age)
		if after := r.State("default").Share; after <= state.Share {
			t.Errorf("got a share of %v after hours without requests, want more than %v", after, state.Share)
		}
		if n := r.State("default").Bytes; n != 0 {
			t.Errorf("got %d bytes after hours without requests", n)
		}
	})
}

// The end of a hold is recorded if its take is, also where they are in no key and have other values.
func TestShareOfHolds(t *testing.T) {
	t.Parallel()
	r := record.New(record.MinBytes, nil)
	rules := scripttest.Rules(t, "rules:\n  - {name: tokens, sum: tokens, limit: 1_000_000_000, window: 1h, hold: 5m}\n  - {name: notes, when: {note: never}, then: deny}\n")
	e := scripttest.Engine(t, rules, weir.WithObserver(observer{r.Of("default")}))
	note := strings.Repeat("n", 1000)
	for i := range 12_000 {
		d, err := e.Take(t.Context(), weir.Request{Attributes: weir.Attributes("tokens", fmt.Sprint(1000+i), "note", note)})
		if err == nil {
			_, err = e.Settle(t.Context(), d.Receipt, weir.Request{Attributes: weir.Attributes("tokens", "1", "note", note)})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	got, state := read(t, r, "default")
	takes, settles, pairs := map[string]bool{}, 0, 0
	for _, l := range got {
		if l.Verb != "settle" {
			takes[l.Hold] = true
			continue
		}
		if settles++; takes[l.Hold] {
			pairs++
		}
	}
	// Of each lane, the memory may begin between a take and its settle.
	if state.Share > 0.5 || pairs < 1000 || settles-pairs > 8 || len(takes)-pairs > 8 {
		t.Errorf("got %d takes, %d settles and %d pairs, of a share of %v", len(takes), settles, pairs, state.Share)
	}
}

// Few requests do not stay for longer than two hours.
func TestFewRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := record.New(0, nil)
		e := engine(t, r, "default")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go r.Run(ctx)
		var most int64 // of two hours
		for minute := range 600 {
			if _, err := e.Take(t.Context(), weir.Request{Attributes: weir.Attributes("ip", "192.0.2.1")}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if got := r.State("default").Bytes; minute <= 120 {
				most = max(most, got)
			} else if got > most+most/20 {
				t.Fatalf("got %d bytes after %d minutes, and at most %d in two hours", got, minute, most)
			}
		}
		if got, _ := read(t, r, "default"); len(got) < 59 || len(got) > 61 {
			t.Errorf("got %d requests, want those of an hour", len(got))
		}
	})
}

// A recorder keeps no rules: those that were replaced are freed, with their lists, while their requests are kept. Those of
// rules with the same attributes take no more memory than others.
func TestRulesAreFreed(t *testing.T) {
	t.Parallel()
	r := record.New(0, nil)
	e := engine(t, r, "default")
	const reloads = 50
	var alive [reloads]weak.Pointer[rule.Set]
	for i := range reloads {
		set := rules(t)
		alive[i] = weak.Make(set)
		if err := e.SetRules(set); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Take(t.Context(), weir.Request{Attributes: weir.Attributes("ip", "192.0.2.1")}); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 { // pools keep what they have for a while
		runtime.GC()
	}
	left := 0
	for _, set := range alive {
		if set.Value() != nil {
			left++
		}
	}
	got, state := read(t, r, "default")
	if left > 1 || len(got) != reloads {
		t.Errorf("got %d rule sets after %d reloads, and %d requests; want one, and all", left, reloads, len(got))
	}
	if state.Bytes > 100*reloads {
		t.Errorf("got %d bytes for %d requests", state.Bytes, reloads)
	}
	runtime.KeepAlive(e)
}

// The names of attributes count against the memory of a recorder: each reload of these rules has others.
func TestManyNames(t *testing.T) {
	t.Parallel()
	r := record.New(0, nil)
	e := engine(t, r, "default")
	const names, reloads = 4000, 100
	long := strings.Repeat("n", 20)
	for i := range reloads {
		list := []rule.Rule{{Name: "posts", Per: []string{"ip"}, Window: window.Sliding(time.Hour)}}
		for k := range names / 10 {
			one := rule.Rule{Name: fmt.Sprint("r", k), Window: window.Sliding(time.Hour)}
			for n := range 10 {
				one.Per = append(one.Per, fmt.Sprint(long, i, ".", k, ".", n))
			}
			list = append(list, one)
		}
		set, err := rule.New(list, nil)
		if err == nil {
			err = e.SetRules(set)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Take(t.Context(), weir.Request{Attributes: weir.Attributes("ip", "192.0.2.1")}); err != nil {
			t.Fatal(err)
		}
	}
	got, state := read(t, r, "default")
	if least := int64(len(state.Attributes) * len(long)); len(got) >= reloads/2 || state.Bytes < least || state.Bytes > state.Most {
		t.Errorf("got %d bytes for %d requests with %d names, want at least %d and at most %d", state.Bytes, len(got), len(state.Attributes), least, state.Most)
	}
}

// Requests are recorded by many goroutines while others read.
func TestRace(t *testing.T) {
	t.Parallel()
	r := record.New(0, nil)
	e := engine(t, r, "default")
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			for i := range 5000 {
				items := []weir.Item{
					{Verb: store.Take, Request: weir.Request{Attributes: weir.Attributes("ip", fmt.Sprint(g, "-", i), "user", strings.Repeat("x", 500))}},
					{Verb: store.Check, Request: weir.Request{Attributes: weir.Attributes("ip", "x")}},
				}
				e.DoAll(t.Context(), items)
			}
		})
	}
	for range 5 {
		read(t, r, "default")
	}
	group.Wait()
	if _, state := read(t, r, "default"); state.Requests == 0 {
		t.Error("got no request")
	}
}

// Recording allocates nothing.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes pools drop what they have")
	}
	r := record.New(0, nil)
	e := engine(t, r, "default")
	request := weir.Request{Attributes: weir.Attributes("action", "post", "user", "ann", "ip", "192.0.2.1")}
	var d weir.Decision
	n := testing.AllocsPerRun(1000, func() {
		if err := e.Do(t.Context(), store.Take, &request, &d); err != nil {
			t.Fatal(err)
		}
	})
	if n >= 1 {
		t.Errorf("got %v allocations a request", n)
	}
}

func BenchmarkTake(b *testing.B) {
	for _, bench := range []struct {
		name   string
		record func() weir.Observer
	}{
		{"record=off", func() weir.Observer { return quiet{} }},
		{"record=64MiB", func() weir.Observer { return observer{record.New(64<<20, nil).Of("default")} }},
	} {
		for _, parallel := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/parallel=%v", bench.name, parallel), func(b *testing.B) {
				e := scripttest.Engine(b, rules(b), weir.WithObserver(bench.record()))
				b.ReportAllocs()
				take := func(d *weir.Decision, r *weir.Request) {
					if err := e.Do(b.Context(), store.Take, r, d); err != nil {
						b.Fatal(err)
					}
				}
				if parallel {
					b.RunParallel(func(pb *testing.PB) {
						r := weir.Request{Attributes: weir.Attributes("action", "post", "ip", "192.0.2.1", "user", "ann")}
						var d weir.Decision
						for pb.Next() {
							take(&d, &r)
						}
					})
					return
				}
				r := weir.Request{Attributes: weir.Attributes("action", "post", "ip", "192.0.2.1", "user", "ann")}
				var d weir.Decision
				for b.Loop() {
					take(&d, &r)
				}
			})
		}
	}
}

// quiet is an observer that does nothing.
type quiet struct{}

func (quiet) Decided(_ context.Context, _ store.Verb, _ *weir.Decision, _ time.Duration) {}
func (quiet) Failed(_ context.Context, _ store.Verb, _ error)                            {}
func (quiet) Outage(_ context.Context, _ store.Verb, _ error)                            {}

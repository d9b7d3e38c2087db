package page_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/page"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// counted counts what a test says.
type counted map[string]metrics.Counts

func (c counted) EachCount(same func(space, rule string, matched int64) bool, f func(space, rule string, c metrics.Counts)) {
	for name, n := range c {
		if name == "" || !same("default", name, n.Matched) {
			f("default", name, n)
		}
	}
}

// locked is a counted that a goroutine reads.
type locked struct {
	mu sync.Mutex
	counted
}

func (l *locked) EachCount(same func(space, rule string, matched int64) bool, f func(space, rule string, c metrics.Counts)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counted.EachCount(same, f)
}

func (l *locked) set(all, agents metrics.Counts) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counted[""], l.counted["agents"] = all, agents
}

// answered is what a test reads of an overview.
type answered struct {
	Seconds, Step int64
	Total         numbers
	Rules         []struct {
		Rule string
		numbers
	}
	State struct {
		Recent struct {
			Takes, Denied, Unmatched int64
			Rule, Key                string
		}
		Busiest, Denied []struct {
			Rule, Key string
			Count     int64
		}
		Rules      []struct{ Rule string }
		Store      *page.Store
		Namespaces []struct{ Name string }
	}
}

type numbers struct {
	Matched, Denied, Shadow, Near int64
	Series                        [][]int64
}

// overview reads an overview.
func overview(t *testing.T, p http.Handler, query string, header ...string) answered {
	t.Helper()
	w := ask(p, "GET", "/page/overview"+query, "", header...)
	var a answered
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != http.StatusOK {
		t.Fatalf("got %d %s: %v", w.Code, w.Body, err)
	}
	return a
}

// TestHistory: cells follow the clock, over five minutes, an hour and a day.
func TestHistory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		counts := &locked{counted: counted{}}
		history := page.NewHistory(counts)
		p := page.New(page.Config{Namespaces: spaces(t)})
		page.AddOverview(p, history, state{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go history.Run(ctx)

		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)) + 5*time.Second)
		counts.set(metrics.Counts{Matched: 10, Denied: 1, Shadow: 2}, metrics.Counts{Matched: 8, Denied: 1, Near: 3})
		time.Sleep(10 * time.Second)
		counts.set(metrics.Counts{Matched: 15, Denied: 1, Shadow: 2}, metrics.Counts{Matched: 9, Denied: 1, Near: 3})
		time.Sleep(6 * time.Second) // 21 s after the hour
		a := overview(t, p, "?span=5m")
		if got, want := fmt.Sprint(a.Seconds, a.Step, a.Total, a.Rules), "300 10 {15 1 2 0 [[10 5 0] [1 0 0] [2 0 0] []]} [{agents {9 1 0 3 [[8 1 0] [1 0 0] [] [3 0 0]]}}]"; got != want {
			t.Errorf("five minutes: got %s, want %s", got, want)
		}
		if got := fmt.Sprint(a.State.Recent); got != "{15 1 2 agents }" {
			t.Errorf("recent: got %s", got)
		}
		time.Sleep(time.Hour)
		counts.set(metrics.Counts{Matched: 15, Denied: 1, Shadow: 2}, metrics.Counts{Matched: 4}) // the namespace was loaded anew
		time.Sleep(10 * time.Second)
		if a := overview(t, p, "?span=5m"); a.Total.Matched != 0 || len(a.Rules) != 1 || a.Rules[0].Matched != 4 {
			t.Errorf("after an hour: got %+v", a)
		}
		if a := overview(t, p, ""); a.Seconds != 3600 || a.Rules[0].Matched != 4 {
			t.Errorf("the last hour: got %+v", a)
		}
		if a := overview(t, p, "?span=24h"); a.Total.Matched != 15 || a.Rules[0].Matched != 13 {
			t.Errorf("the last day: got %+v", a)
		}
		time.Sleep(24 * time.Hour)
		if a := overview(t, p, "?span=24h"); a.Total.Matched != 0 || len(a.Rules) != 0 {
			t.Errorf("after a day: got %+v", a)
		}
		if got := page.HistoryBytes(history); got > 5000 {
			t.Errorf("after a day: got %d bytes, want the series dropped", got)
		}
	})
}

// TestHistoryIsBounded: of many rules, those that are used least lose their numbers.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	if counted, have := page.Sizes(); counted[0] < have[0] || counted[1] < have[1] {
		t.Errorf("got sizes %v, want at least %v", counted, have)
	}
	synctest.Test(t, func(t *testing.T) {
		counts := counted{}
		history := page.NewHistory(counts)
		const most = 600 << 10
		page.SetHistoryBytes(history, most)
		for minute := range 200 {
			for i := range 100 {
				n := counts[fmt.Sprint(i)]
				n.Matched += int64(i + 1)
				counts[fmt.Sprint(i)] = n
			}
			time.Sleep(time.Minute)
			history.Read(time.Now())
			if got := page.HistoryBytes(history); got > most {
				t.Fatalf("minute %d: got %d bytes, want at most %d", minute, got, most)
			}
		}
		if little, much := page.SumOf(history, "default", "0", time.Now()), page.SumOf(history, "default", "99", time.Now()); much != 200*100 || little >= 200 {
			t.Errorf("got %d of the rule that is used most, and %d of the one that is used least; want all, and a part", much, little)
		}
	})
}

// TestOverview: it needs scope read, says who was denied, and hides the service from callers of one namespace.
func TestOverview(t *testing.T) {
	t.Parallel()
	keys := scripttest.Keys(t, "", access.Own{Name: "ops", Token: adminToken, Scopes: access.All}, access.Own{Name: "deciding", Token: readToken, Scopes: access.Decide})
	p := page.New(page.Config{Auth: &access.Authenticator{Keys: keys, Reach: access.ReachNamed}, Namespaces: spaces(t)})
	counts := counted{"": {Matched: 9, Denied: 4}, "agents": {Matched: 9, Denied: 4}, "gone": {Matched: 9}}
	page.AddOverview(p, page.NewHistory(counts), state{[]metrics.RuleStats{{Namespace: "default", Rule: "agents", Keys: 3, Holds: -1, Banned: 2}, {Namespace: "shop", Rule: "secret", Keys: 1}}})
	a := overview(t, p, "", "Authorization", "Bearer "+adminToken)
	if len(a.Rules) != 1 || a.State.Recent.Rule != "agents" || a.State.Store == nil || len(a.State.Rules) != 1 {
		t.Errorf("got %+v", a)
	}
	for path, want := range map[string]int{"/page/overview?span=1y": 400, "/ns/shop/page/overview": 404, "/ns/../page/overview": 400} {
		if w := ask(p, "GET", path, "", "Authorization", "Bearer "+adminToken); w.Code != want {
			t.Errorf("%s: got %d %s, want %d", path, w.Code, w.Body, want)
		}
	}
	for _, path := range []string{"/page/overview", "/page/stream"} {
		if w := ask(p, "GET", path, "", "Authorization", "Bearer "+readToken); w.Code != http.StatusForbidden {
			t.Errorf("%s without scope read: got %d", path, w.Code)
		}
	}
}

// TestBusiest: a rule that sums bytes leaves room for the keys of others, whose counts are small.
func TestBusiest(t *testing.T) {
	t.Parallel()
	rules := scripttest.Rules(t, `rules:
  - {name: uploads, when: {bytes: "*"}, per: [user], sum: bytes, limit: 1000000, window: 1h}
  - {name: posts, when: {action: post}, per: [user], limit: 100, window: 1h}
`)
	text, err := top.NewKeyText(top.KeyPlain, "")
	if err != nil {
		t.Fatal(err)
	}
	tops := top.New(top.Config{Keys: 20, Text: text}, namespace.Default)
	engine := scripttest.Engine(t, rules, weir.WithObserver(tops))
	for i := range 12 {
		for _, of := range [][]string{{"bytes", strconv.Itoa(5000 + i)}, {"action", "post"}} {
			if _, err := engine.Take(t.Context(), weir.Request{Attributes: weir.Attributes(append(of, "user", fmt.Sprintf("u%02d", i))...), Hits: 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	p := page.New(page.Config{Namespaces: namespace.NewSet(namespace.New(namespace.Default, engine, 0, tops))})
	page.AddOverview(p, page.NewHistory(counted{"uploads": {Matched: 13}, "posts": {Matched: 12}}), state{})
	got := overview(t, p, "").State.Busiest
	if len(got) != 10 || got[0].Rule != "uploads" || got[0].Key != "u11" || got[0].Count != 5011 || got[4].Rule != "uploads" || got[5].Rule != "posts" || got[5].Count != 1 {
		t.Errorf("got %v, want five keys of each rule", got)
	}
}

// TestOverviewOfOneNamespace: a caller that is bound to a namespace sees nothing of the service.
func TestOverviewOfOneNamespace(t *testing.T) {
	t.Parallel()
	engine := scripttest.Engine(t, limit(t, 5))
	set := namespace.NewSet(namespace.New("shop", engine, 0, nil), namespace.New("default", nil, 0, nil))
	p := page.New(page.Config{Namespaces: set})
	page.AddOverview(p, page.NewHistory(counted{}), state{})
	if w := ask(p, "GET", "/page/overview", ""); w.Code != http.StatusServiceUnavailable {
		t.Errorf("a namespace without rules: got %d %s, want 503", w.Code, w.Body)
	}
	w := ask(p, "GET", "/ns/shop/page/overview", "")
	if !strings.Contains(w.Body.String(), `"name":"default","rules":0,"broken":true`) {
		t.Errorf("got %s, want both namespaces", w.Body)
	}
	bound := page.WithHolder(p, &access.Holder{Name: "s", Scopes: access.All, Namespace: "shop"})
	if got := bound("/page/overview"); strings.Contains(got, "store") || strings.Contains(got, "namespaces") {
		t.Errorf("got %s, want nothing of the service", got)
	}
}

// TestOverviewStream: a reader learns of each second what was counted, no more read than may, and streams end with the service.
func TestOverviewStream(t *testing.T) {
	t.Parallel()
	counts := counted{"": {}, "agents": {}}
	history := page.NewHistory(counts)
	p := page.New(page.Config{Namespaces: spaces(t)})
	page.AddOverview(p, history, state{})
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	var readers [page.MaxStreams + 1]*http.Response
	for i := range readers {
		r, err := http.Get(server.URL + "/page/stream")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Body.Close() })
		readers[i] = r
	}
	if got := readers[page.MaxStreams].StatusCode; got != http.StatusServiceUnavailable {
		t.Errorf("one reader more: got %d, want 503", got)
	}
	counts[""], counts["agents"] = metrics.Counts{Matched: 7, Denied: 2}, metrics.Counts{Matched: 6}
	now := time.Now()
	for range 5 {
		history.Read(now)
	}
	lines := bufio.NewScanner(readers[0].Body)
	var all strings.Builder
	for lines.Scan() {
		all.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), `data: {"hash"`) {
			break
		}
	}
	for _, want := range []string{fmt.Sprintf(`data: {"at":%d,"total":[7,2,0,0],"rules":{"agents":[6,0,0,0]}}`, now.Unix()), "event: tick", "event: state", `"takes":7`} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("got %s, want %s", &all, want)
		}
	}
	p.EndStreams()
	for lines.Scan() {
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the stream ended with %v", err)
	}
}

// manyRules returns n rules of a name each.
func manyRules(n int) *rule.Set {
	rules := make([]rule.Rule, n)
	for i := range rules {
		rules[i] = rule.Rule{Name: fmt.Sprintf("rule-%05d", i), Per: []string{"user"}, Quota: &rule.Quota{Value: 5}, Window: window.Sliding(time.Hour)}
	}
	set, err := rule.New(rules, nil)
	if err != nil {
		panic(err)
	}
	return set
}

// BenchmarkRead reads the counters of many rules, all of which were used since the last time.
func BenchmarkRead(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			numbers := metrics.New(metrics.Config{})
			observe := numbers.Namespace("default")
			d := weir.Decision{Allowed: true, Outcome: rule.Allow, Usages: make([]weir.Usage, 1)}
			history := page.NewHistory(numbers)
			at := time.Now()
			for b.Loop() {
				b.StopTimer()
				for i := range n {
					d.Usages[0].Rule = fmt.Sprintf("rule-%05d", i)
					d.Usages[0].Allowed = true
					observe.Decided(b.Context(), store.Take, &d, 0)
				}
				at = at.Add(10 * time.Second)
				b.StartTimer()
				history.Read(at)
			}
		})
	}
}

// BenchmarkOverview answers with the numbers of many rules over an hour.
func BenchmarkOverview(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			set := manyRules(n)
			engine := scripttest.Engine(b, set)
			counts := counted{}
			history := page.NewHistory(counts)
			for minute := range 60 {
				for i := range n {
					counts[set.Rule(i).Name] = metrics.Counts{Matched: int64(100 * (minute + 1)), Denied: int64(3 * minute)}
				}
				history.Read(time.Now().Add(time.Duration(minute-59) * time.Minute))
			}
			p := page.New(page.Config{Namespaces: namespace.Only(engine)})
			page.AddOverview(p, history, state{})
			for b.Loop() {
				w := ask(p, "GET", "/page/overview", "", "Accept-Encoding", "gzip")
				b.ReportMetric(float64(w.Body.Len()), "B/answer")
			}
		})
	}
}

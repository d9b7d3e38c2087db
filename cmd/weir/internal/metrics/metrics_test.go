package metrics_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

// read returns what Prometheus would read, without lines that vary.
func read(m *metrics.Metrics) map[string]bool {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	lines := map[string]bool{}
	for line := range strings.Lines(w.Body.String()) {
		lines[strings.TrimSpace(line)] = true
	}
	return lines
}

// Of many who read the metrics, or the counters of envoyproxy/ratelimit, at the same time, each gets an answer, and one answer
// is made at a time.
func TestOneAnswerAtATime(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(number func() int) http.Handler{
		"metrics": func(number func() int) http.Handler {
			m := metrics.New(metrics.Config{})
			m.WatchTokens(number)
			return m.Handler()
		},
		"stats": func(number func() int) http.Handler {
			e := metrics.New(metrics.Config{}).Envoy(metrics.EnvoyConfig{})
			e.Watch(func() float64 { return float64(number()) })
			return e.Handler()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var inside, most atomic.Int32
			handler := of(func() int {
				most.Store(max(most.Load(), inside.Add(1)))
				defer inside.Add(-1)
				for range 1000 {
					runtime.Gosched()
				}
				return 1
			})
			var readers sync.WaitGroup
			for range 16 {
				readers.Go(func() {
					w := httptest.NewRecorder()
					handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
					if w.Code != http.StatusOK || w.Body.Len() == 0 || w.Header().Get("Content-Type") == "" {
						t.Errorf("got %d %v", w.Code, w.Header())
					}
				})
			}
			if readers.Wait(); most.Load() != 1 {
				t.Errorf("%d answers were made at the same time", most.Load())
			}
		})
	}
}

func denied() *weir.Decision {
	return &weir.Decision{
		Outcome: "deny", Rule: "posts",
		Usages: []weir.Usage{
			{Rule: "posts", Key: "secret"},
			{Rule: "trial", Key: "secret", Shadow: true},
			{Rule: "views", Key: "secret", Result: window.Result{Allowed: true}},
		},
		Triggered: []string{"burst"},
		Degraded:  true,
	}
}

func TestDecided(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Config{Version: "v1.2.3"})
	n := m.Namespace("default")
	n.Decided(t.Context(), store.Take, denied(), 3*time.Microsecond)
	n.Decided(t.Context(), store.Check, denied(), time.Millisecond)
	n.Decided(t.Context(), store.Take, &weir.Decision{Allowed: true, Outcome: "allow", Unmatched: true}, time.Millisecond)
	got := read(m)
	for _, want := range []string{
		`weir_decisions_total{namespace="default",outcome="deny",rule="posts",verb="take"} 1`,
		`weir_decisions_total{namespace="default",outcome="deny",rule="posts",verb="check"} 1`,
		`weir_decisions_total{namespace="default",outcome="allow",rule="",verb="take"} 1`,
		`weir_requests_unmatched_total{namespace="default",verb="take"} 1`,
		`weir_rule_matched_total{namespace="default",rule="views"} 1`,
		`weir_rule_over_total{mode="enforce",namespace="default",rule="posts"} 1`,
		`weir_rule_over_total{mode="shadow",namespace="default",rule="trial"} 1`,
		`weir_rule_triggered_total{namespace="default",rule="burst"} 1`,
		`weir_decisions_degraded_total{namespace="default"} 2`,
		`weir_decision_duration_seconds_count 3`,
		`weir_decision_duration_seconds_bucket{le="4e-06"} 1`,
	} {
		if !got[want] {
			t.Errorf("got no line %s", want)
		}
	}
	for line := range got {
		if strings.Contains(line, "secret") {
			t.Errorf("got %s, want no key in a metric", line)
		}
		if strings.HasPrefix(line, `weir_rule_over_total{mode="enforce",namespace="default",rule="views"}`) {
			t.Errorf("got %s, want nothing for a rule that is not over", line)
		}
	}
}

// TestReplaysAreNoEvents repeats a take under its idempotency key: the answers are decisions, but what happened in the rules
// happened once.
func TestReplaysAreNoEvents(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Config{})
	n := m.Namespace("default")
	d := denied()
	d.Usages[0].Struck, d.Usages[0].Banned, d.Usages[2].Held = true, true, true
	for range 3 {
		n.Decided(t.Context(), store.Take, d, 0)
		n.Decided(t.Context(), store.Settle, d, 0)
		d.Replayed = true
	}
	got := read(m)
	for _, want := range []string{
		`weir_decisions_total{namespace="default",outcome="deny",rule="posts",verb="take"} 3`,
		`weir_rule_matched_total{namespace="default",rule="posts"} 1`,
		`weir_rule_over_total{mode="enforce",namespace="default",rule="posts"} 1`,
		`weir_rule_triggered_total{namespace="default",rule="burst"} 1`,
		`weir_bans_total{namespace="default",rule="posts"} 1`,
		`weir_holds_total{event="held",namespace="default",rule="views"} 1`,
		`weir_holds_total{event="settled",namespace="default",rule="views"} 1`,
	} {
		if !got[want] {
			t.Errorf("got no line %s", want)
		}
	}
}

func TestHolds(t *testing.T) {
	t.Parallel()
	set, err := rule.New([]rule.Rule{
		{Name: "tokens", Quota: &rule.Quota{Value: 10}, Window: window.Sliding(time.Minute), Hold: time.Minute},
		{Name: "calls", Quota: &rule.Quota{Value: 10}, Window: window.Sliding(time.Minute)},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := metrics.New(metrics.Config{Version: "v1.2.3"})
	n := m.Namespace("default")
	tell := func(verb store.Verb, rule string, r window.Result) {
		n.Decided(t.Context(), verb, &weir.Decision{Rules: set, Usages: []weir.Usage{{Rule: rule, Result: r}}}, 0)
	}
	held := window.Result{Allowed: true, Held: true, Quota: 10, Used: 10}
	debt, late := held, held
	debt.Used, late.Held = 11, false
	for range 4 {
		tell(store.Take, "tokens", held)
	}
	tell(store.Renew, "tokens", held)
	tell(store.Settle, "tokens", held)
	tell(store.Settle, "tokens", debt)
	tell(store.Cancel, "tokens", held)
	tell(store.Settle, "tokens", late)
	tell(store.Settle, "calls", late) // which holds nothing
	n.Decided(t.Context(), store.Renew, &weir.Decision{Rules: set, Degraded: true, Usages: []weir.Usage{{Rule: "tokens", Result: late}}}, 0)
	tell(store.Take, "calls", window.Result{Banned: true, Struck: true})
	tell(store.Take, "calls", window.Result{Banned: true})
	got := read(m)
	for _, want := range []string{
		`weir_holds_total{event="held",namespace="default",rule="tokens"} 4`,
		`weir_holds_total{event="renewed",namespace="default",rule="tokens"} 1`,
		`weir_holds_total{event="settled",namespace="default",rule="tokens"} 2`,
		`weir_holds_total{event="cancelled",namespace="default",rule="tokens"} 1`,
		`weir_holds_total{event="late",namespace="default",rule="tokens"} 1`,
		`weir_debts_total{namespace="default",rule="tokens"} 1`,
		`weir_bans_total{namespace="default",rule="calls"} 1`,
		`weir_decisions_total{namespace="default",outcome="",rule="",verb="settle"} 4`,
	} {
		if !got[want] {
			t.Errorf("got no line %s", want)
		}
	}
	for line := range got {
		if strings.HasPrefix(line, `weir_holds_total`) && strings.Contains(line, "calls") {
			t.Errorf("got %s, want nothing for a rule that holds nothing", line)
		}
	}
}

func TestReloads(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Config{Version: "v1.2.3"})
	n := m.Namespace("default")
	n.Loaded(7, time.Unix(1_000_000_000, 500_000_000))
	n.Refused()
	got := read(m)
	for _, want := range []string{
		`weir_rules{namespace="default"} 7`,
		`weir_rules_reload_success{namespace="default"} 0`,
		`weir_rules_reload_timestamp_seconds{namespace="default"} 1.0000000005e+09`,
		`weir_rules_reload_total{namespace="default",result="success"} 1`,
		`weir_rules_reload_total{namespace="default",result="failure"} 1`,
	} {
		if !got[want] {
			t.Errorf("got no line %s", want)
		}
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Config{Version: "v1.2.3"})
	m.Watch(func() metrics.StoreStats {
		return metrics.StoreStats{Full: 3, Rules: []metrics.RuleStats{
			{Namespace: "default", Rule: "posts", Keys: 12, Holds: -1, Banned: -1},
			{Namespace: "default", Rule: "exports", Keys: 1, Holds: 4, Banned: -1},
			{Namespace: "default", Rule: "logins", Keys: 1, Holds: -1, Banned: 5},
		}}
	})
	got := read(m)
	for _, want := range []string{
		`weir_store_keys{namespace="default",rule="posts"} 12`, `weir_store_full_total 3`,
		`weir_store_holds{namespace="default",rule="exports"} 4`, `weir_store_banned_keys{namespace="default",rule="logins"} 5`,
	} {
		if !got[want] {
			t.Errorf("got no line %s", want)
		}
	}
}

func TestWatchNodes(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Config{Version: "v1.2.3"})
	m.WatchNodes(func() []remote.Node {
		return []remote.Node{{Addr: "a:1", Outages: map[store.Reason]int64{"late": 5}, Unavailable: true}, {Addr: "b:2", InFlight: 7, Outages: map[store.Reason]int64{"late": 0}}}
	})
	got := read(m)
	for _, want := range []string{
		`weir_store_outages_total{node="a:1",reason="late"} 5`, `weir_store_outages_total{node="b:2",reason="late"} 0`,
		`weir_store_circuit_open{node="a:1"} 1`,
		`weir_store_circuit_open{node="b:2"} 0`, `weir_store_in_flight{node="b:2"} 7`,
	} {
		if !got[want] {
			t.Errorf("got no line %s", want)
		}
	}
}

func TestWatchReports(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Config{Version: "v1.2.3"})
	m.WatchReports(func() weir.Reports { return weir.Reports{Pending: 2, Recorded: 30, Lost: 4, Dropped: 5} })
	got := read(m)
	for _, want := range []string{
		`weir_store_report_pending 2`, `weir_store_report_hits_total{result="recorded"} 30`,
		`weir_store_report_hits_total{result="lost"} 4`, `weir_store_report_hits_total{result="dropped"} 5`,
	} {
		if !got[want] {
			t.Errorf("got no line %s", want)
		}
	}
}

func TestDecidedAllocatesNothing(t *testing.T) {
	n, d := metrics.New(metrics.Config{Version: "v1.2.3"}).Namespace("default"), denied()
	if allocs := testing.AllocsPerRun(100, func() { n.Decided(t.Context(), store.Take, d, time.Microsecond) }); allocs != 0 {
		t.Errorf("got %v allocations, want none", allocs)
	}
}

func BenchmarkDecided(b *testing.B) {
	n, d := metrics.New(metrics.Config{Version: "v1.2.3"}).Namespace("default"), denied()
	b.ReportAllocs()
	for b.Loop() {
		n.Decided(b.Context(), store.Take, d, time.Microsecond)
	}
}

// observer passes decisions on, as that of the service does.
type observer struct{ *metrics.Namespace }

func (observer) Outage(context.Context, store.Verb, error) {}

// Every ban counts: that of a take or of a record past the quota, also when one call
// alone is more than the quota. Denials during a ban are no bans.
func TestBansAreCounted(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Config{})
	rules := scripttest.Rules(t, "rules: [{name: logins, per: [user], limit: 4, window: 1m, ban: 1h}]")
	engine := scripttest.Engine(t, rules, weir.WithObserver(observer{m.Namespace("default")}))
	call := func(do func(context.Context, weir.Request) (weir.Decision, error), user string, hits int64) {
		t.Helper()
		if _, err := do(t.Context(), weir.Request{Attributes: []weir.Attribute{{Name: "user", Value: user}}, Hits: hits}); err != nil {
			t.Fatal(err)
		}
	}
	call(engine.Take, "over", 4)
	call(engine.Take, "over", 1)   // the first ban
	call(engine.Take, "over", 1)   // denied by it
	call(engine.Take, "big", 5)    // the second: an unused key, a take that never fits
	call(engine.Record, "rec", 5)  // the third
	call(engine.Check, "other", 5) // a check bans nobody
	if got, want := read(m), `weir_bans_total{namespace="default",rule="logins"} 3`; !got[want] {
		t.Errorf("got no line %s", want)
	}
}

// The commit of a build is a label.
func TestBuildInfo(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Config{Version: "v1.2.3", Commit: "0123456789ab+"})
	want := fmt.Sprintf(`weir_build_info{commit="0123456789ab+",goversion=%q,version="v1.2.3"} 1`, runtime.Version())
	if !read(m)[want] {
		t.Errorf("got no line %s", want)
	}
}

func TestLeases(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Config{})
	m.WatchLeases(func() hook.Leases {
		return hook.Leases{Keys: 2, Asked: 9, Refused: 3, Lost: 1, Granted: 500, Spent: 390, Returned: 10, Dropped: 4, Settled: 5, Direct: 20}
	})
	wantLines(t, read(m),
		"weir_lease_keys 2",
		`weir_lease_calls_total{call="lease"} 9`, `weir_lease_calls_total{call="settle"} 5`, `weir_lease_calls_total{call="decided"} 20`,
		`weir_lease_failed_total{reason="refused"} 3`, `weir_lease_failed_total{reason="lost"} 1`, `weir_lease_failed_total{reason="dropped"} 4`,
		`weir_lease_hits_total{result="spent"} 390`, `weir_lease_hits_total{result="returned"} 10`,
	)
}

// Several goroutines count decisions of many rules, which become known meanwhile.
// Every decision is counted once.
func TestDecidedConcurrently(t *testing.T) {
	t.Parallel()
	const callers, rules, rounds = 4, 50, 20
	m := metrics.New(metrics.Config{Version: "v1.2.3"})
	n := m.Namespace("default")
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := range rules * rounds {
				name := fmt.Sprint("rule-", i%rules)
				n.Decided(t.Context(), store.Take, &weir.Decision{
					Outcome: "deny", Rule: name,
					Usages: []weir.Usage{{Rule: name}, {Rule: "views", Result: window.Result{Allowed: true}}},
				}, time.Microsecond)
			}
		})
	}
	all.Wait()
	got := read(m)
	for i := range rules {
		for _, line := range []string{
			fmt.Sprintf(`weir_decisions_total{namespace="default",outcome="deny",rule="rule-%d",verb="take"} %d`, i, callers*rounds),
			fmt.Sprintf(`weir_rule_matched_total{namespace="default",rule="rule-%d"} %d`, i, callers*rounds),
			fmt.Sprintf(`weir_rule_over_total{mode="enforce",namespace="default",rule="rule-%d"} %d`, i, callers*rounds),
		} {
			if !got[line] {
				t.Errorf("got no line %s", line)
			}
		}
	}
	if line := fmt.Sprintf(`weir_rule_matched_total{namespace="default",rule="views"} %d`, callers*rules*rounds); !got[line] {
		t.Errorf("got no line %s", line)
	}
}

// descriptions matches what prometheus.Desc has as text.
var description = regexp.MustCompile(`fqName: "(\w+)".*variableLabels: \{([^}]*)\}`)

// names returns NAME{LABEL,…} of each metric that a service can have: those of all
// functions of Metrics that are called Watch….
func names(t *testing.T) map[string]bool {
	t.Helper()
	m := metrics.New(metrics.Config{})
	value := reflect.ValueOf(m)
	for i := range value.NumMethod() {
		method := value.Type().Method(i)
		if !strings.HasPrefix(method.Name, "Watch") {
			continue
		}
		var args []reflect.Value
		for n := range method.Type.NumIn() - 1 {
			kind := method.Type.In(n + 1)
			args = append(args, reflect.MakeFunc(kind, func([]reflect.Value) (out []reflect.Value) {
				for o := range kind.NumOut() {
					out = append(out, reflect.Zero(kind.Out(o)))
				}
				return out
			}))
		}
		value.Method(i).Call(args)
	}
	descriptions := make(chan *prometheus.Desc)
	go func() { defer close(descriptions); m.Gatherer().(prometheus.Collector).Describe(descriptions) }()
	found := map[string]bool{}
	for d := range descriptions {
		part := description.FindStringSubmatch(d.String())
		if part == nil {
			t.Fatalf("got description %s", d)
		}
		if name := part[1]; strings.HasPrefix(name, "weir_") {
			if part[2] != "" {
				name += "{" + part[2] + "}"
			}
			found[name] = true
		}
	}
	return found
}

// docs/reference/metrics.md has all metrics, with their labels, and no others.
func TestTable(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n## Metrics\n")
	if !ok {
		t.Fatal("docs/reference/metrics.md has no section called Metrics")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	told := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(weir_[^`]+)` \\|").FindAllStringSubmatch(section, -1) {
		if told[row[1]] {
			t.Errorf("the page has %s twice", row[1])
		}
		told[row[1]] = true
	}
	there := names(t)
	for _, name := range slices.Sorted(maps.Keys(there)) {
		if !told[name] {
			t.Errorf("docs/reference/metrics.md lacks %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(told)) {
		if !there[name] {
			t.Errorf("docs/reference/metrics.md has %s, which does not exist", name)
		}
	}
}

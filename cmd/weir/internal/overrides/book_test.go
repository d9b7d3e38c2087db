package overrides_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/kept"
	"github.com/weirhq/weir/cmd/weir/internal/overrides"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/override"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

func rulesOf(t testing.TB, all ...rule.Rule) *rule.Set {
	t.Helper()
	set, err := rule.New(all, nil)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func some(t testing.TB) *rule.Set {
	return rulesOf(t,
		rule.Rule{Name: "calls", Per: []string{"customer"}, Quota: &rule.Quota{Value: 2}, Window: window.Fixed(time.Hour)},
		rule.Rule{Name: "three", Per: []string{"a", "b", "c"}, Quota: &rule.Quota{Value: 2}, Window: window.Sliding(time.Hour)},
		rule.Rule{Name: "nets", Per: []string{"ip"}, Networks: map[string]rule.Network{"ip": {V4: 24}}, Quota: &rule.Quota{Value: 2}, Window: window.Bucket(time.Hour, 0)},
		rule.Rule{Name: "all", Quota: &rule.Quota{Value: 2}, Window: window.Fixed(time.Hour)},
		rule.Rule{Name: "members", Per: []string{"user"}, Measure: window.Distinct, Of: "page", Quota: &rule.Quota{Value: 2}, Window: window.Fixed(time.Hour)},
		rule.Rule{Name: "views", Per: []string{"user"}, Window: window.Cells(time.Hour, 0)},
	)
}

func put(t *testing.T, b *overrides.Book, set *rule.Set, name string, limit int64, attributes ...string) (*overrides.Override, error) {
	t.Helper()
	_, before, err := b.Put(t.Context(), "default", set, overrides.Override{Rule: name, Attributes: weir.Attributes(attributes...), Limit: limit, By: "ops"})
	return before, err
}

func list(b *overrides.Book, set *rule.Set, name string) (texts []string) {
	page, _ := b.List(context.Background(), "default", set, name, "")
	for _, o := range page.Overrides {
		o.Set = time.Time{}
		texts = append(texts, strings.ReplaceAll(string(o.AppendJSON(nil)), `,"set":"0001-01-01T00:00:00Z"`, ""))
	}
	return texts
}

func TestPut(t *testing.T) {
	t.Parallel()
	b, set := overrides.New(overrides.Config{Store: kept.NewMemory(nil)}), some(t)
	for _, tc := range []struct {
		field string
		o     overrides.Override
	}{
		{"rule", overrides.Override{Rule: "nope", Attributes: weir.Attributes("customer", "a")}},
		{"rule", overrides.Override{Rule: "all", Attributes: weir.Attributes("customer", "a")}},
		{"rule", overrides.Override{Rule: "members", Attributes: weir.Attributes("user", "a")}},
		{"rule", overrides.Override{Rule: "views", Attributes: weir.Attributes("user", "a")}},
		{"attributes", overrides.Override{Rule: "calls"}},
		{"attributes", overrides.Override{Rule: "three", Attributes: weir.Attributes("a", strings.Repeat("x", 1000), "b", strings.Repeat("x", 1000), "c", strings.Repeat("x", 1000))}},
		{"attributes.user", overrides.Override{Rule: "calls", Attributes: weir.Attributes("customer", "a", "user", "b")}},
		{"attributes.customer", overrides.Override{Rule: "calls", Attributes: weir.Attributes("customer", "")}},
		{"attributes.b", overrides.Override{Rule: "three", Attributes: weir.Attributes("a", "1", "b", " *"), Limit: 5}},
		{"limit", overrides.Override{Rule: "calls", Attributes: weir.Attributes("customer", "a"), Limit: -1}},
		{"limit", overrides.Override{Rule: "calls", Attributes: weir.Attributes("customer", "a"), Limit: window.MaxHits + 1}},
		{"burst", overrides.Override{Rule: "calls", Attributes: weir.Attributes("customer", "a"), Burst: 1}},
		{"burst", overrides.Override{Rule: "nets", Attributes: weir.Attributes("ip", "10.0.0.1"), Limit: 7, Burst: window.MaxHits}},
		{"until", overrides.Override{Rule: "calls", Attributes: weir.Attributes("customer", "a"), Until: time.Now().Add(-time.Second)}},
		{"note", overrides.Override{Rule: "calls", Attributes: weir.Attributes("customer", "a"), Note: strings.Repeat("x", 257)}},
		{"note", overrides.Override{Rule: "calls", Attributes: weir.Attributes("customer", "a"), Note: "\xff"}},
	} {
		_, _, err := b.Put(t.Context(), "default", set, tc.o)
		if f, ok := errors.AsType[*fault.Fault](err); !ok || f.Path != tc.field {
			t.Errorf("%+v: got %v, want a fault of %s", tc.o, err, tc.field)
		}
	}
	for _, tc := range []struct {
		meets      bool
		attributes []string
	}{
		{false, []string{"a", "1", "b", "2"}},
		{false, []string{"b", "2", "a", "1"}}, // takes its place
		{false, []string{"a", "1"}},
		{true, []string{"b", "9"}},
		{true, []string{"a", "1", "c", "3"}},
		{false, []string{"a", "7", "c", "3"}},
		{true, []string{"b", "2", "c", "3"}},
		{false, []string{"b", "5", "c", "5"}},
		{false, []string{"a", "1", "b", "2", "c", "3"}},
		{false, []string{"a", "2"}},
	} {
		if _, err := put(t, b, set, "three", 5, tc.attributes...); errors.Is(err, overrides.ErrMeets) != tc.meets || err != nil && !tc.meets {
			t.Errorf("%v: got %v, want that it meets another one: %v", tc.attributes, err, tc.meets)
		}
	}
	if before, err := put(t, b, set, "nets", 5, "ip", "10.0.0.7"); err != nil || before != nil {
		t.Errorf("got %v, %v", before, err)
	}
	before, err := put(t, b, set, "nets", 0, "ip", "10.0.0.200")
	if err != nil || before == nil || before.Limit != 5 {
		t.Errorf("got %+v, %v, want that of the network before", before, err)
	}
	want := []string{`{"rule":"nets","attributes":{"ip":"10.0.0.0/24"},"limit":0,"by":"ops"}`}
	if got := list(b, set, "nets"); !slices.Equal(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := list(b, rulesOf(t, rule.Rule{Name: "nets", Per: []string{"user"}, Quota: &rule.Quota{Value: 1}, Window: window.Fixed(1e9)}), "nets"); len(got) != 1 || !strings.Contains(got[0], `"idle":true`) {
		t.Errorf("got %s, want an idle one", got)
	}
	for range 2 {
		if _, err := b.Remove(t.Context(), "default", set, "nets", weir.Attributes("ip", "10.0.0.9")); err != nil {
			t.Error(err)
		}
	}
	if got := list(b, set, "nets"); len(got) != 0 {
		t.Errorf("got %s after the removal", got)
	}
	if got := list(b, set, ""); len(got) != 6 {
		t.Errorf("got %d overrides, want 6: %s", len(got), got)
	}
	if got, err := b.List(t.Context(), "other", set, "", ""); len(got.Overrides) != 0 || err != nil {
		t.Errorf("got %v in another namespace", got)
	}
}

// How many overrides have other attributes matters little to the one that is compared with them.
func TestMeetsMany(t *testing.T) {
	b, set := overrides.New(overrides.Config{Store: kept.NewMemory(nil)}), some(t)
	for i := range 2000 {
		if _, err := put(t, b, set, "three", 5, "a", fmt.Sprint(i), "b", "2"); err != nil {
			t.Fatal(err)
		}
	}
	allocs := testing.AllocsPerRun(10, func() {
		if _, err := put(t, b, set, "three", 5, "a", "x", "c", "3"); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 500 {
		t.Errorf("got %v allocations, want a number that does not grow with the others", allocs)
	}
}

// An override of an address whose rule makes other networks now is idle, and is removed by the address or by the
// network.
func TestOtherNetworks(t *testing.T) {
	t.Parallel()
	grouped := func(v4, v6 int) *rule.Set {
		r := rule.Rule{Name: "logins", Per: []string{"ip", "user"}, Quota: &rule.Quota{Value: 2}, Window: window.Sliding(time.Hour)}
		if v4 != 0 || v6 != 0 {
			r.Networks = map[string]rule.Network{"ip": {V4: v4, V6: v6}}
		}
		set, err := rulesOf(t, r).WithAddresses("ip")
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	for _, tc := range []struct {
		before, after     *rule.Set
		ip, other, stored string
		idle              int
	}{
		{grouped(24, 64), grouped(24, 64), "10.1.2.3", "10.1.2.9", "10.1.2.0/24", 0},
		{grouped(24, 64), grouped(24, 56), "10.1.2.3", "10.1.2.9", "10.1.2.0/24", 0},
		{grouped(24, 64), grouped(16, 64), "10.1.2.3", "10.1.2.9", "10.1.2.0/24", 1},
		{grouped(24, 64), grouped(0, 0), "10.1.2.3", "10.1.2.9", "10.1.2.0/24", 1},
		{grouped(0, 0), grouped(24, 64), "10.1.2.3", "10.1.2.3", "10.1.2.3", 1},
		{grouped(24, 64), grouped(24, 56), "2001:db8:0:1::5", "2001:db8:0:1::9", "2001:db8:0:1::/64", 1},
		{grouped(24, 64), grouped(24, 128), "2001:db8:0:1::5", "2001:db8:0:1::9", "2001:db8:0:1::/64", 1},
		{grouped(24, 64), grouped(16, 64), "10.1.2.3", "10.1.2.0/24", "10.1.2.0/24", 1},
		{grouped(24, 64), grouped(16, 64), "no address", "no address", "no address", 0},
	} {
		b := overrides.New(overrides.Config{Store: kept.NewMemory(nil)})
		if _, err := put(t, b, tc.before, "logins", 0, "ip", tc.ip, "user", "ann"); err != nil {
			t.Fatal(err)
		}
		page, _ := b.List(t.Context(), "default", tc.after, "", "")
		if o := page.Overrides[0]; o.Attributes[0].Value != tc.stored || o.Idle != (tc.idle > 0) || b.Idle("default", tc.after) != tc.idle {
			t.Errorf("%s: got %+v, and %d idle ones; want %s and %d", tc.ip, o, b.Idle("default", tc.after), tc.stored, tc.idle)
		}
		was, err := b.Remove(t.Context(), "default", tc.after, "logins", weir.Attributes("user", "ann", "ip", tc.other))
		if err != nil || was == nil || len(list(b, tc.after, "")) != 0 {
			t.Errorf("%s: removing %s got %+v, %v; want it removed", tc.stored, tc.other, was, err)
		}
	}
}

// The networks of many addresses under long names, which no override has, take little memory.
func TestRemoveWithLongNames(t *testing.T) { // not parallel: it counts allocations
	b := overrides.New(overrides.Config{Store: kept.NewMemory(nil)})
	set := some(t)
	var attributes []weir.Attribute
	for i := range 64 {
		attributes = append(attributes, weir.Attribute{Name: fmt.Sprintf("%01024d", i), Value: fmt.Sprintf("2001:db8::%x", i)})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := b.Remove(t.Context(), "default", set, "calls", attributes)
	runtime.ReadMemStats(&after)
	if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 1 || err == nil {
		t.Errorf("got %v, and %d MiB, want a fault and at most one", err, mb)
	}
}

// A network that the rule makes of no address is refused, because no request would have its override.
func TestNetworkWithoutKeys(t *testing.T) {
	t.Parallel()
	set, err := rulesOf(t, rule.Rule{
		Name: "logins", Per: []string{"ip"}, Quota: &rule.Quota{Value: 2}, Window: window.Sliding(time.Hour),
		Networks: map[string]rule.Network{"ip": {V4: 24, V6: 64}},
	}).WithAddresses("ip")
	if err != nil {
		t.Fatal(err)
	}
	b := overrides.New(overrides.Config{Store: kept.NewMemory(nil)})
	for network, want := range map[string]string{"10.0.0.0/8": "rule logins has no key 10.0.0.0/8", "10.1.2.0/24": "", "2001:db8::/32": "no key", "2001:db8::/64": ""} {
		if _, err := put(t, b, set, "logins", 0, "ip", network); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", network, err, want)
		}
	}
}

// A network in force is the key of other requests than those of its addresses, if its attribute is no address.
func TestNetworksAsText(t *testing.T) {
	t.Parallel()
	set := rulesOf(t, rule.Rule{Name: "routes", Per: []string{"net"}, Quota: &rule.Quota{Value: 2}, Window: window.Fixed(time.Hour)})
	b := overrides.New(overrides.Config{Store: kept.NewMemory(nil)})
	if _, err := put(t, b, set, "routes", 0, "net", "10.1.2.0/24"); err != nil {
		t.Fatal(err)
	}
	was, err := b.Remove(t.Context(), "default", set, "routes", weir.Attributes("net", "10.1.2.3"))
	if err != nil || was != nil || len(list(b, set, "")) != 1 {
		t.Errorf("removing the override of another key got %+v, %v; want none removed", was, err)
	}
}

// An override ends at its instant, and later leaves the store; that is told once for all instances.
func TestEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, set := kept.NewMemory(nil), some(t)
		var ended sync.Map
		var books [2]*overrides.Book
		var engines [2]*weir.Engine
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for i := range books {
			books[i] = overrides.New(overrides.Config{Store: store, Ended: func(namespace string, o overrides.Override) {
				if _, twice := ended.LoadOrStore(namespace+o.Attributes[0].Value, true); twice {
					t.Errorf("told twice of the end of %+v", o)
				}
			}})
			e := scripttest.Engine(t, set)
			books[i].Follow("default", e.Override)
			engines[i] = e
			running.Go(func() { books[i].Run(ctx) })
		}
		quota := func(i int, customer string) int64 {
			u, err := engines[i].Usage(t.Context(), "calls", weir.Attributes("customer", customer))
			if err != nil {
				t.Fatal(err)
			}
			return u.Quota
		}
		want := func(when string, acme, other int64) {
			t.Helper()
			for i := range engines {
				if got := quota(i, "acme"); got != acme {
					t.Errorf("%s, instance %d: got a quota of %d, want %d", when, i, got, acme)
				}
				if got := quota(i, "other"); got != other {
					t.Errorf("%s, instance %d: got a quota of %d of the other, want %d", when, i, got, other)
				}
			}
		}
		for i, o := range []overrides.Override{
			{Rule: "calls", Attributes: weir.Attributes("customer", "acme"), Limit: 500, Until: time.Now().Add(time.Minute)},
			{Rule: "calls", Attributes: weir.Attributes("customer", "other"), Limit: 600, Until: time.Now().Add(2 * time.Minute)},
		} {
			if _, _, err := books[i].Put(ctx, "default", set, o); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		want("in force", 500, 600)
		time.Sleep(58900 * time.Millisecond)
		want("just before", 500, 600)
		time.Sleep(200 * time.Millisecond)
		want("after the end", 2, 600)
		if got := list(books[1], set, ""); len(got) != 1 {
			t.Errorf("got %s, want the other one", got)
		}
		time.Sleep(10 * time.Second)
		if _, ok := ended.Load("defaultacme"); !ok {
			t.Error("the end was not told")
		}
		fields, _, _, _, err := store.Kept(ctx, "overrides", [2]int64{}, 10)
		if err != nil || len(fields) != 1 {
			t.Errorf("got %d in the store, %v, want 1", len(fields), err)
		}
		if _, _, err := books[0].Put(ctx, "default", set, overrides.Override{Rule: "calls", Attributes: weir.Attributes("customer", "acme"), Limit: 7}); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Minute)
		want("set again", 7, 2)
		cancel()
		running.Wait()
	})
}

// Of overrides that end shortly after each other, some end together, up to 100 ms late.
func TestManyEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, set := overrides.New(overrides.Config{Store: kept.NewMemory(nil)}), some(t)
		const n, apart = 2000, 3 * time.Millisecond
		first := time.Now().Add(time.Minute)
		for i := range n {
			o := overrides.Override{Rule: "calls", Attributes: weir.Attributes("customer", fmt.Sprint(i)), Limit: 5, Until: first.Add(time.Duration(i) * apart)}
			if _, _, err := b.Put(t.Context(), "default", set, o); err != nil {
				t.Fatal(err)
			}
		}
		changes := 0
		b.Follow("default", func(s *override.Set) {
			changes++
			ended := int(time.Since(first)/apart) + 1
			if r := s.Rule("calls"); r != nil && time.Now().After(first) && r.Shapes[0].Len() != max(n-ended, 0) {
				t.Errorf("%d have ended, got %d of %d in force", ended, r.Shapes[0].Len(), n)
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { b.Run(ctx) })
		time.Sleep(time.Until(first) + n*apart + 100*time.Millisecond)
		if got := len(list(b, set, "")); got != 0 || changes > 100 {
			t.Errorf("got %d overrides and %d changes of those in force, want 0 and about %d", got, changes, n*apart/(100*time.Millisecond))
		}
		cancel()
		running.Wait()
	})
}

// The key of an override is that of decisions, if it has one.
func TestKey(t *testing.T) {
	t.Parallel()
	set := rulesOf(t,
		rule.Rule{Name: "one", Per: []string{"user"}, Quota: &rule.Quota{Value: 2}, Window: window.Fixed(time.Hour)},
		rule.Rule{Name: "two", Per: []string{"user", "action"}, Quota: &rule.Quota{Value: 2}, Window: window.Fixed(time.Hour)},
	)
	e := scripttest.Engine(t, set)
	all := weir.Attributes("action", "post", "user", "ann")
	d, err := e.Check(t.Context(), weir.Request{Attributes: all})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		rule       string
		set        *rule.Set
		attributes []weir.Attribute
		want       string
	}{
		{"one", set, all[1:], d.Usages[0].Key},
		{"two", set, all, d.Usages[1].Key},
		{"two", set, all[:1], "action=post"},
		{"gone", set, all, "action=post user=ann"},
		{"two", nil, all, "action=post user=ann"},
		{"gone", set, all[1:], "ann"},
	} {
		if got := (&overrides.Override{Rule: tc.rule, Attributes: tc.attributes}).Key(tc.set); got != tc.want {
			t.Errorf("%s: got key %s, want %s", tc.rule, got, tc.want)
		}
	}
}

// The text of all namespaces together is bounded, too.
func TestAllBytes(t *testing.T) {
	t.Parallel()
	store, set := kept.NewMemory(nil), some(t)
	writer := overrides.New(overrides.Config{Store: store})
	o := overrides.Override{Rule: "calls", Attributes: weir.Attributes("customer", "acme"), Limit: 1}
	for n := range overrides.MaxNamespaces {
		if _, _, err := writer.Put(t.Context(), fmt.Sprint("n", n), set, o); err != nil {
			t.Fatal(err)
		}
	}
	b := overrides.New(overrides.Config{Store: &padded{Store: store}})
	if _, _, err := b.Put(t.Context(), "another", set, o); !errors.Is(err, overrides.ErrFull) {
		t.Errorf("got %v, want that there is too much", err)
	}
}

// padded is a store whose values are one of [overrides.MaxBytes].
type padded struct {
	kept.Store
	value string
}

func (p *padded) Kept(ctx context.Context, name string, since [2]int64, most int) (fields, values []string, next [2]int64, again bool, err error) {
	fields, values, next, again, err = p.Store.Kept(ctx, name, since, most)
	for i := range values {
		if p.value == "" {
			p.value = values[i] + strings.Repeat("x", overrides.MaxBytes)
		}
		values[i] = p.value
	}
	return fields, values, next, again, err
}

// Pages have all overrides, each once. 100,000 take at most 20 MB. Run alone: it measures the heap.
func TestMany(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const n = 100_000
	var before, after runtime.MemStats
	store, set := kept.NewMemory(nil), some(t)
	writer := overrides.New(overrides.Config{Store: store})
	for i := range n {
		o := overrides.Override{
			Rule: "calls", Attributes: weir.Attributes("customer", fmt.Sprint("customer-", i)), Limit: int64(i % 1000), Until: time.Now().Add(time.Hour),
			Note: "ticket " + fmt.Sprint(i), By: "support",
		}
		if _, _, err := writer.Put(t.Context(), "default", set, o); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := put(t, writer, set, "calls", 1, "customer", "one more"); !errors.Is(err, overrides.ErrFull) {
		t.Errorf("got %v, want that there are too many", err)
	}
	runtime.GC()
	runtime.ReadMemStats(&before)
	b := overrides.New(overrides.Config{Store: clones{store}})
	e := scripttest.Engine(t, set)
	b.Follow("default", e.Override)
	began := time.Now()
	if _, err := b.Remove(t.Context(), "default", set, "calls", weir.Attributes("customer", "not there")); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	runtime.GC()
	runtime.ReadMemStats(&after)
	size := after.HeapAlloc - before.HeapAlloc
	t.Logf("%d bytes, read in %v", size, took)
	if size > 20e6 {
		t.Errorf("got %d bytes, want at most 20 MB", size)
	}
	seen, next := map[string]bool{}, ""
	began = time.Now()
	for range n/overrides.PageSize + 1 {
		p, err := b.List(t.Context(), "default", set, "calls", next)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range p.Overrides {
			seen[o.Attributes[0].Value] = true
		}
		if next = p.Next; next == "" {
			break
		}
	}
	t.Logf("listed in %v", time.Since(began))
	if len(seen) != n || next != "" {
		t.Errorf("got %d overrides, want %d", len(seen), n)
	}
	runtime.KeepAlive(writer)
}

// Callers of one namespace list overrides one after the other, because that takes long where there are many. Others
// do not wait for them, and a caller can leave.
func TestListsOfOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		listing, held := 0, make(chan struct{})
		b := overrides.New(overrides.Config{Store: kept.NewMemory(nil), Now: func() time.Time {
			listing++
			<-held
			return time.Now()
		}})
		list := func(namespace string) {
			go func() {
				if _, err := b.List(t.Context(), namespace, some(t), "", ""); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		for range 10 {
			list("loud")
		}
		if listing != 1 {
			t.Errorf("got %d callers at a time, want 1", listing)
		}
		if list("quiet"); listing != 2 {
			t.Errorf("got %d callers at a time, want one of another namespace, too", listing)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := b.List(ctx, "loud", some(t), "", ""); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v of a caller that has left", err)
		}
		close(held)
		synctest.Wait()
	})
}

// clones is a store whose texts are not shared with others.
type clones struct{ kept.Store }

func (c clones) Kept(ctx context.Context, name string, since [2]int64, most int) (fields, values []string, next [2]int64, again bool, err error) {
	fields, values, next, again, err = c.Store.Kept(ctx, name, since, most)
	for i := range fields {
		fields[i], values[i] = strings.Clone(fields[i]), strings.Clone(values[i])
	}
	return fields, values, next, again, err
}

func TestOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, set := overrides.New(overrides.Config{Store: kept.NewMemory(nil)}), some(t)
		for _, o := range []overrides.Override{
			{Rule: "three", Attributes: weir.Attributes("a", "1"), Limit: 10},
			{Rule: "three", Attributes: weir.Attributes("a", "1", "b", "2"), Limit: 20, Until: time.Now().Add(time.Hour)},
			{Rule: "nets", Attributes: weir.Attributes("ip", "10.0.0.1"), Limit: 30},
		} {
			if _, _, err := b.Put(t.Context(), "default", set, o); err != nil {
				t.Fatal(err)
			}
		}
		of := func(rule string, attributes ...string) int64 {
			o, ok := b.Of("default", set, rule, weir.Attributes(attributes...))
			if !ok {
				return -1
			}
			return o.Limit
		}
		wants := func(what string, got, want int64) {
			t.Helper()
			if got != want {
				t.Errorf("%s: got a limit of %d, want %d", what, got, want)
			}
		}
		wants("the most specific", of("three", "c", "3", "b", "2", "a", "1"), 20)
		wants("a less specific", of("three", "a", "1", "b", "9", "c", "3"), 10)
		wants("another key", of("three", "a", "2", "b", "2", "c", "3"), -1)
		wants("an address of the network", of("nets", "ip", "10.0.0.77", "user", "x"), 30)
		wants("another rule", of("calls", "customer", "1"), -1)
		wants("no such rule", of("nope", "a", "1"), -1)
		time.Sleep(2 * time.Hour)
		wants("after its end", of("three", "a", "1", "b", "2", "c", "3"), 10)
		if _, ok := b.Of("other", set, "nets", weir.Attributes("ip", "10.0.0.1")); ok {
			t.Error("got an override of another namespace")
		}
		if _, ok := (*overrides.Book)(nil).Of("default", set, "nets", nil); ok {
			t.Error("got an override without a book")
		}
	})
}

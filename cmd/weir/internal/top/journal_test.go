package top_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

const twoRules = `
rules:
  - {name: posts, per: [user], limit: 1, window: 1h}
  - {name: pairs, per: [user, ip], limit: 1, window: 1h}
  - {name: bad, when: {ip: 192.0.2.9}, then: deny}
`

// sideStore is a side store in memory, which writes when a test asks it to.
type sideStore struct {
	loaded  chan struct{}
	follows chan struct{} // closed by Follow
	blobs   map[string]string
	changed func(func(string, []byte))
	written int // bytes
}

func newSideStore() *sideStore {
	n := &sideStore{loaded: make(chan struct{}), blobs: map[string]string{}}
	close(n.loaded)
	return n
}

func (n *sideStore) Loaded() <-chan struct{} { return n.loaded }

func (n *sideStore) Claim(prefix string, found func(string, []byte)) bool {
	for name, data := range n.blobs {
		if strings.HasPrefix(name, prefix) {
			found(name, []byte(data))
		}
	}
	return true
}

func (n *sideStore) Follow(changed func(func(string, []byte))) (end func()) {
	n.changed = changed
	close(n.follows)
	return n.write
}

func (n *sideStore) write() { n.changed(n.put) }

func (n *sideStore) put(name string, data []byte) {
	n.written += len(name) + len(data)
	if n.blobs[name] = string(data); len(data) == 0 {
		delete(n.blobs, name)
	}
}

func (n *sideStore) Flush(context.Context) error { return nil }
func (n *sideStore) Waits() bool                 { return false }
func (n *sideStore) Now() window.Instant         { return window.At(time.Now()) }

// opened returns a collector that has loaded its side store, and that no goroutine runs.
func opened(t *testing.T, c top.Config) *top.Collector {
	t.Helper()
	n, _ := c.Side.(*sideStore)
	n.follows = make(chan struct{})
	tops := top.New(c, "default")
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { tops.Run(ctx) })
	<-n.follows
	cancel()
	group.Wait()
	return tops
}

// deny makes a rule deny keys, one after another, a second apart.
func deny(t *testing.T, c *top.Collector, now *time.Time, rule string, keys ...string) {
	t.Helper()
	rules := scripttest.Rules(t, twoRules)
	for _, key := range keys {
		d := decision(rules, false)
		d.Rule, d.Usages[0].Rule, d.Usages[0].Key = rule, rule, key
		c.Decided(t.Context(), store.Take, d, 0)
		c.Missed() // counts
		*now = now.Add(time.Second)
	}
}

// keysOf returns the keys of denials, the oldest one first.
func keysOf(all []top.Denial) string {
	var keys []string
	for _, d := range slices.Backward(all) {
		keys = append(keys, d.Key)
	}
	return strings.Join(keys, " ")
}

// numbered returns keys.
func numbered(from, n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprint(from+i))
	}
	return keys
}

// The next process has the denials of this one, in order, as many and as old as a journal
// keeps. Damaged blobs lose what is in them.
func TestNextProcess(t *testing.T) {
	t.Parallel()
	now, side := time.Unix(1_000_020, 0), newSideStore()
	config := top.Config{Keys: 10, Side: side, Now: func() time.Time { return now }}
	c := opened(t, config)
	deny(t, c, &now, "posts", numbered(0, 100)...)
	deny(t, c, &now, "pairs", "user=a ip=b")
	c.ForNamespace("tenant/").Close() // of the shared goroutine
	if len(side.blobs) != 5 {
		t.Errorf("got blobs %q, want four of a rule and one of another", slices.Sorted(maps.Keys(side.blobs)))
	}

	c = opened(t, config)
	wants(t, "kept", keysOf(denials(t, c, 1000, "posts")), strings.Join(numbered(0, 100), " "))
	wants(t, "of the other rule", keysOf(denials(t, c, 1000, "pairs")), "user=a ip=b")
	deny(t, c, &now, "posts", numbered(100, 50)...)
	c.Close()

	side.blobs["denials/0000000000000002/default/posts"] = "\x05dama"
	side.blobs["denials/x/default/posts"], side.blobs["denials/9"] = "x", "y"
	side.blobs["denials/0000000000000003/default/posts"] += "\xff"
	c = opened(t, config)
	got := denials(t, c, 1000, "posts")
	wants(t, "after damage", keysOf(got), strings.Join(append(numbered(0, 32), numbered(64, 86)...), " "))
	wants(t, "the newest", got[0].Time, now.Add(-time.Second).UTC())

	now = now.Add(24*time.Hour - 60*time.Second)
	wants(t, "a day later", keysOf(denials(t, c, 1000, "posts")), strings.Join(numbered(91, 59), " "))
	now = now.Add(time.Hour)
	c.Missed()
	c.Close()
	delete(side.blobs, "denials/x/default/posts")
	delete(side.blobs, "denials/9")
	if len(side.blobs) != 0 {
		t.Errorf("got blobs %q, want none of denials that are too old", side.blobs)
	}
}

// Denials of a rule that denies seldom, or that was removed, are dropped when they are a day old, and at most an hour
// later.
func TestFewDenials(t *testing.T) {
	t.Parallel()
	now, side := time.Unix(1_000_020, 0), newSideStore()
	config := top.Config{Keys: 10, Side: side, Now: func() time.Time { return now }}
	c := opened(t, config)
	deny(t, c, &now, "pairs", "removed")
	for hour := range 100 {
		deny(t, c, &now, "posts", fmt.Sprintf("seldom%d.", hour))
		if hour == 50 {
			c.Close()
			c = opened(t, config)
		}
		now = now.Add(time.Hour)
	}
	c.Missed()
	c.Close()
	all := fmt.Sprint(side.blobs)
	for hour, kept := range map[int]bool{0: false, 74: false, 77: true, 99: true} {
		if got := strings.Contains(all, fmt.Sprintf("seldom%d.", hour)); got != kept {
			t.Errorf("%d hours later: kept %v, want %v", 100-hour, got, kept)
		}
	}
	if strings.Contains(all, "removed") {
		t.Error("got a denial of a rule that was removed four days ago")
	}
}

// A process that keeps no denials in a side store drops those that an earlier one has left there, and nothing else.
func TestAbandon(t *testing.T) {
	t.Parallel()
	now, side := time.Unix(1_000_020, 0), newSideStore()
	c := opened(t, top.Config{Keys: 10, Side: side, Now: func() time.Time { return now }})
	deny(t, c, &now, "posts", numbered(0, 100)...)
	c.Close()
	side.blobs["audit/default/0"] = "kept"
	side.follows = make(chan struct{})
	top.Abandon(side)
	side.write()
	if got := slices.Sorted(maps.Keys(side.blobs)); !slices.Equal(got, []string{"audit/default/0"}) {
		t.Errorf("got blobs %q, want no denials", got)
	}
}

// A journal has at most 10,000 denials of a rule, also in the side store, and costs little to
// write. A rule with many takes nothing from others.
func TestJournalIsBounded(t *testing.T) {
	t.Parallel()
	now, side := time.Unix(1_000_020, 0), newSideStore()
	c := opened(t, top.Config{Keys: 10, Side: side, Now: func() time.Time { return now }})
	deny(t, c, &now, "pairs", "user=a ip=b")
	for i := range 120 {
		deny(t, c, &now, "posts", numbered(100*i, 100)...)
		side.write()
	}
	got := denials(t, c, 20_000, "posts")
	if len(got) > 10_000 || len(got) < 10_000-32 || got[0].Key != "11999" {
		t.Errorf("got %d denials from %s on, want the newest 10,000", len(got), got[0].Key)
	}
	wants(t, "of the other rule", keysOf(denials(t, c, 9, "pairs")), "user=a ip=b")
	wants(t, "dropped", c.Dropped(), int64(0))
	size := 0
	for _, data := range side.blobs {
		size += len(data)
	}
	if len(side.blobs) > 10_000/32+2 {
		t.Errorf("got %d blobs", len(side.blobs))
	}
	t.Logf("%d bytes a denial, %d written, with keys of 5 bytes", size/len(got), side.written/12_000)

	c.Drop()
	now = now.Add(time.Second)
	side.write()
	if len(side.blobs) != 0 {
		t.Errorf("got %d blobs of a namespace that is gone, want none", len(side.blobs))
	}
}

// A key that is denied all the time leaves room for others. What is left out is counted.
func TestOneKeyAllTheTime(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_020, 0)
	c := top.New(top.Config{Keys: 10, Now: func() time.Time { return now }}, "default")
	for range 3 * 60 {
		deny(t, c, &now, "posts", "loud")
	}
	deny(t, c, &now, "posts", "quiet")
	wants(t, "kept", len(denials(t, c, 1000, "posts")), 31)
	d, err := c.Denials(t.Context(), top.Query{Rules: []top.Selected{{Rule: "posts"}}, N: 1})
	if err != nil || d.Dropped != 150 || !d.Oldest.Equal(time.Unix(1_000_020, 0)) {
		t.Errorf("got %+v, %v, want 150 dropped since the first one", d, err)
	}
	wants(t, "dropped", c.Dropped(), int64(150))
}

// Denials are as they were after their time in a journal.
func TestDenialsAreKeptWhole(t *testing.T) {
	t.Parallel()
	now, side := time.Unix(1_000_020, 123_456_000).UTC(), newSideStore()
	config := top.Config{Keys: 10, Side: side, Now: func() time.Time { return now }}
	c := opened(t, config)
	rules := scripttest.Rules(t, twoRules)
	until := window.At(now.Add(time.Hour))
	for _, d := range []weir.Decision{
		{Outcome: "captcha", Rule: "posts", Usages: []weir.Usage{{
			Rule: "posts", Key: "a\x00é", Hits: 1 << 60, Shadow: true, BannedUntil: until,
			Result: window.Result{Quota: 5, Banned: true, Before: 1 << 50, RetryAfter: window.Never},
		}}},
		{Outcome: "deny", Rule: "posts", RetryAfter: time.Second + time.Microsecond, DegradedReason: "late"},
		{Outcome: "deny", Rule: "bad", RetryAfter: window.Never},
	} {
		d.Rules = rules
		c.Decided(t.Context(), store.Take, &d, 0)
	}
	c.Close()
	want := []top.Denial{
		{Time: now, Rule: "posts", Key: "a\x00é", Reason: top.ReasonBan, Outcome: "captcha", Shadow: true, Hits: 1 << 60, Used: 1 << 50, Quota: 5, BannedUntil: until.Time(), RetryAfter: window.Never},
		{Time: now, Rule: "posts", Reason: top.ReasonOutage, Outcome: "deny", RetryAfter: time.Second + time.Microsecond, Cause: "late"},
		{Time: now, Rule: "bad", Reason: top.ReasonVerdict, Outcome: "deny", RetryAfter: window.Never},
	}
	c = opened(t, config)
	got := append(denials(t, c, 9, "posts"), denials(t, c, 9, "bad")...)
	slices.Reverse(got[:2])
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

// Attributes select the key of a rule, as it is shown.
func TestSelect(t *testing.T) {
	t.Parallel()
	rules := scripttest.Rules(t, twoRules)
	form := func(f top.KeyForm) *top.Collector {
		text, err := top.NewKeyText(f, "secret")
		if err != nil {
			t.Fatal(err)
		}
		return top.New(top.Config{Keys: 1, Text: text}, "default")
	}
	plain := form(top.KeyPlain)
	for _, row := range []struct {
		c          *top.Collector
		rules      []int
		attributes []string
		want       string
	}{
		{plain, []int{0, 1, 2}, nil, "posts, pairs, bad"},
		{plain, []int{0}, []string{"user", "42"}, "posts 42"},
		{plain, []int{0, 1, 2}, []string{"user", "42"}, "posts 42"},
		{plain, []int{0, 1, 2}, []string{"ip", "192.0.2.1", "user", "42"}, "posts 42, pairs user=42 ip=192.0.2.1"},
		{plain, []int{1}, []string{"ip", "2001:db8::1", "user", "42"}, "pairs user=42 ip=2001:db8::/64"},
		{form(top.KeyHashed), []int{0}, []string{"user", "ann"}, "posts " + hashed("ann")},
		{form(top.KeyNone), []int{0}, []string{"user", "ann"}, "user: denials have no keys, because the service runs with --log-keys none"},
		{plain, []int{1}, []string{"user", "42"}, "ip: is missing: rule pairs counts per ip"},
		{plain, []int{0}, []string{"user", ""}, "user: is missing: rule posts counts per user"},
		{plain, []int{0, 1, 2}, []string{"ip", "192.0.2.1"}, "ip: is not the whole key of a rule; name a rule to see what its key needs"},
		{plain, []int{0, 1, 2}, []string{"usr", "42"}, `usr: is in no key of the rules asked for: did you mean "user"?`},
		{plain, []int{2}, []string{"ip", "192.0.2.9"}, "ip: is in no key of the rules asked for"},
	} {
		all, bad := row.c.Select(rules, row.rules, weir.Attributes(row.attributes...))
		var got []string
		for _, s := range all {
			if got = append(got, s.Rule); s.Key != nil {
				got[len(got)-1] += " " + *s.Key
			}
		}
		if bad != nil {
			got = append(got, bad.Path+": "+bad.Problem)
		}
		wants(t, fmt.Sprint(row.rules, row.attributes), strings.Join(got, ", "), row.want)
	}
}

// A key is found, with the outages that may have concerned it, since an instant.
func TestFilter(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_020, 0)
	c := top.New(top.Config{Keys: 10, Now: func() time.Time { return now }}, "default")
	deny(t, c, &now, "posts", "ann", "bob")
	c.Decided(t.Context(), store.Take, &weir.Decision{Outcome: "deny", Rule: "posts", DegradedReason: "late", Rules: scripttest.Rules(t, twoRules)}, 0)
	deny(t, c, &now, "posts", "ann", "bob")
	ann := "ann"
	for _, row := range []struct {
		q    top.Query
		want string
	}{
		{top.Query{N: 9}, "ann  ann"},
		{top.Query{N: 2}, " ann"},
		{top.Query{N: 9, Since: time.Unix(1_000_022, 0)}, " ann"},
		{top.Query{N: 9, Since: time.Unix(1_000_023, 0)}, ""},
	} {
		row.q.Rules = []top.Selected{{Rule: "posts", Key: &ann}}
		d, err := c.Denials(t.Context(), row.q)
		if got := keysOf(d.List); got != row.want || err != nil || d.Oldest.IsZero() {
			t.Errorf("%+v: got %q, %v, want %q", row.q, got, err, row.want)
		}
	}
	for text, want := range map[string]int64{"90s": 1_000_024 - 90, "1970-01-01T00:00:05Z": 5, "": 0, "1 hour": 0, "-1h": 0, "yesterday": 0} {
		got, err := c.ParseSince(text)
		if (err == nil) != (want != 0) || want != 0 && got.Unix() != want {
			t.Errorf("%q: got %v, %v, want %d", text, got, err, want)
		}
	}
}

// remote is a log that collectors share. It answers with err, if that is set.
type remote struct {
	mu    sync.Mutex
	err   error
	added map[string][]string
	most  int // entries that one call read
	reads int
	calls int
}

func (r *remote) log(_ context.Context, name string, _ time.Duration, _ []window.Instant, entries []string, skip, n int) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	if r.err != nil {
		return nil, r.err
	}
	r.added[name] = slices.Sorted(slices.Values(append(r.added[name], entries...)))
	if n > 0 {
		r.most, r.reads = max(r.most, n), r.reads+1
	}
	left := r.added[name][:max(len(r.added[name])-skip, 0)]
	return left[max(len(left)-n, 0):], nil
}

// Instances that share a store have one journal. While it is unavailable, each has its own,
// and sends what it can keep later.
func TestRemote(t *testing.T) {
	t.Parallel()
	now, shared := time.Unix(1_000_020, 0), &remote{added: map[string][]string{}}
	config := top.Config{Keys: 10, Remote: shared.log, Now: func() time.Time { return now }}
	a, b := top.New(config, "default"), top.New(config, "default")
	other := a.ForNamespace("other")
	deny(t, a, &now, "posts", "one")
	deny(t, b, &now, "posts", "two")
	deny(t, other, &now, "posts", "secret")
	ask := func(c *top.Collector, want string, degraded bool, dropped int64) {
		t.Helper()
		d, err := c.Denials(t.Context(), top.Query{Rules: []top.Selected{{Rule: "posts"}}, N: 5})
		if got := keysOf(d.List); err != nil || got != want || d.Degraded != degraded || d.Dropped != dropped {
			t.Errorf("got %q and %+v, %v, want %q, %v, %d dropped", got, d, err, want, degraded, dropped)
		}
	}
	ask(a, "one", false, 0)
	ask(b, "one two", false, 0)
	ask(a, "one two", false, 0)
	ask(other, "secret", false, 0)

	shared.err = errors.New("unavailable")
	deny(t, a, &now, "posts", "three")
	ask(a, "one three", true, 0)
	shared.calls = 0
	if denials(t, a, 5, "posts", "pairs", "others"); shared.calls != 2 {
		t.Errorf("got %d calls of a store that is unavailable, want one that sends and one that reads", shared.calls)
	}
	deny(t, a, &now, "posts", numbered(0, 1010)...)
	ask(a, "1005 1006 1007 1008 1009", true, 11)
	shared.err = nil
	ask(a, "994 995 996 997 998", false, 11) // the first 1,000 waited
	deny(t, b, &now, "posts", "last")
	b.Close()
	ask(a, "995 996 997 998 last", false, 11)
}

// While a shared store is unavailable, the denials of many rules of one namespace leave room for those of others.
func TestUnsentOfOthers(t *testing.T) {
	t.Parallel()
	now, shared := time.Unix(1_000_020, 0), &remote{added: map[string][]string{}, err: errors.New("unavailable")}
	flood := top.New(top.Config{Keys: 10, Remote: shared.log, Now: func() time.Time { return now }}, "flood")
	quiet := flood.ForNamespace("quiet")
	for n := range 25 {
		deny(t, flood, &now, fmt.Sprint("rule", n), numbered(0, 1000)...)
	}
	deny(t, quiet, &now, "posts", "one", "two")
	shared.err = nil
	flood.Close()
	all := 0
	for _, texts := range shared.added {
		all += len(texts)
	}
	d, err := quiet.Denials(t.Context(), top.Query{Rules: []top.Selected{{Rule: "posts"}}, N: 5})
	if got := keysOf(d.List); err != nil || got != "one two" || all != 20_000 {
		t.Errorf("got %q, %v, and %d denials in all that were sent later; want both and 20,000", got, err, all)
	}
}

// The denials of a key are looked for in all of a shared log, a few hundred with each command, and no further back than
// asked for.
func TestPagesOfASharedStore(t *testing.T) {
	t.Parallel()
	now, shared := time.Unix(1_000_020, 0), &remote{added: map[string][]string{}}
	c := top.New(top.Config{Keys: 10, Remote: shared.log, Now: func() time.Time { return now }}, "default")
	ask := func(key string, since time.Time, want string, reads int, whole bool) {
		t.Helper()
		shared.reads = 0
		q := top.Query{Rules: []top.Selected{{Rule: "posts", Key: &key}}, N: 2, Since: since}
		d, err := c.Denials(t.Context(), q)
		if got := keysOf(d.List); err != nil || d.Degraded || got != want || d.Oldest.IsZero() == whole {
			t.Errorf("%s: got %q and %+v, %v, want %q", key, got, d, err, want)
		}
		if shared.most > 250 || shared.reads != reads {
			t.Errorf("%s: got %d reads of at most %d entries, want %d of 250", key, shared.reads, shared.most, reads)
		}
	}
	deny(t, c, &now, "posts", "ann")
	later := now
	for part := range 3 {
		deny(t, c, &now, "posts", numbered(part*800, 800)...)
		ask("nobody", now, "", 1, false)
	}
	ask("ann", time.Time{}, "ann", 10, true)
	ask("0", time.Time{}, "0", 10, true)
	ask("ann", later, "", 10, false)
	ask("ann", now.Add(-time.Minute), "", 1, false)
	deny(t, c, &now, "posts", "2399")
	ask("2399", time.Time{}, "2399 2399", 1, false)
}

// Denials that an earlier process has kept with keys of another form are not shown any
// more, and are dropped: who hides keys wants to see none.
func TestFormOfKeysChanges(t *testing.T) {
	t.Parallel()
	now, side, shared := time.Unix(1_000_020, 0), newSideStore(), &remote{added: map[string][]string{}}
	for _, form := range []top.KeyForm{top.KeyPlain, top.KeyHashed, top.KeyNone, top.KeyPlain} {
		text, err := top.NewKeyText(form, "secret")
		if err != nil {
			t.Fatal(err)
		}
		clock := func() time.Time { return now }
		kept := opened(t, top.Config{Keys: 10, Text: text, Side: side, Now: clock})
		deny(t, kept, &now, "posts", "ann")
		key, _ := text.Of("ann")
		wants(t, string(form), keysOf(denials(t, kept, 9, "posts")), key)
		kept.Close()
		if all := fmt.Sprint(side.blobs); strings.Contains(all, "ann") != (form == top.KeyPlain) {
			t.Errorf("%s: got blobs %q", form, all)
		}
		if form == top.KeyPlain {
			continue
		}
		far := top.New(top.Config{Keys: 10, Text: text, Remote: shared.log, Now: clock}, "default")
		deny(t, far, &now, "posts", "ann")
		wants(t, string(form), keysOf(denials(t, far, 9, "posts")), key)
	}
}

// Keys that are no UTF-8, such as the path of a URI, are shown as text that is, because
// answers cannot have others.
func TestKeysAreText(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_020, 0)
	c := top.New(top.Config{Keys: 10, Now: func() time.Time { return now }}, "default")
	deny(t, c, &now, "posts", "/a\xff\xfeb")
	wants(t, "denial", keysOf(denials(t, c, 9, "posts")), "/a\uFFFDb")
	wants(t, "top", c.Top("posts", 1).Denied.Entries[0].Key, "/a\uFFFDb")
	all, bad := c.Select(scripttest.Rules(t, twoRules), []int{0}, weir.Attributes("user", "/a\xff\xfeb"))
	if bad != nil || *all[0].Key != "/a\uFFFDb" {
		t.Errorf("got %v, %v, want the text", all, bad)
	}
}

// A clock that was ahead for a while keeps nothing longer than a day after it was set back.
func TestClockWasAhead(t *testing.T) {
	t.Parallel()
	now, side := time.Unix(1_000_020, 0), newSideStore()
	c := opened(t, top.Config{Keys: 10, Side: side, Now: func() time.Time { return now }})
	right := now
	now = now.Add(10 * 365 * 24 * time.Hour)
	deny(t, c, &now, "posts", "ann")
	now = right
	for range 40 {
		deny(t, c, &now, "posts", "bob")
		now = now.Add(time.Minute)
	}
	for range 6 {
		now = now.Add(6 * time.Hour)
		c.Missed() // counts
	}
	c.Close()
	if len(side.blobs) != 0 {
		t.Errorf("got blobs %q two days later, want none", side.blobs)
	}
}

// Rules that deny very many keys take no more memory for finding the loud ones than the
// denials themselves.
func TestLoudKeysAreBounded(t *testing.T) {
	now := time.Unix(1_000_020, 0)
	rules := scripttest.Rules(t, twoRules)
	c := top.New(top.Config{Keys: 10, Now: func() time.Time { return now }}, "default")
	before := heap()
	names := make([]string, 100)
	for i := range names {
		names[i] = fmt.Sprint("rule", i)
	}
	for i := range 100 * 9000 {
		d := decision(rules, false)
		d.Rule = names[i%len(names)]
		d.Usages[0].Rule, d.Usages[0].Key = d.Rule, fmt.Sprint(i)
		c.Decided(t.Context(), store.Take, d, 0)
		if i%1000 == 0 {
			c.Missed() // counts
		}
	}
	took := float64(heap()-before) / 1e6
	t.Logf("%.1f MB", took)
	if took > 14 {
		t.Errorf("got %.1f MB, want at most 14 MB", took)
	}
	runtime.KeepAlive(c)
}

// However many callers of one share ask for the denials of many rules, one journal is read from a shared store at a
// time, with a rest afterwards, so that decisions do not wait. Who does not get all in 8 s gets what this instance has.
// Nobody of another share waits for them.
func TestFewReadersOfASharedStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		c := top.New(top.Config{Keys: 10, Remote: func(context.Context, string, time.Duration, []window.Instant, []string, int, int) ([]string, error) {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Second)
			now.Add(-1)
			return nil, nil
		}}, "default")
		q := top.Query{N: 1, Rules: make([]top.Selected, 20)}
		var group sync.WaitGroup
		ask := func() {
			if d, err := c.Denials(t.Context(), q); err != nil || !d.Degraded {
				t.Errorf("got %+v, %v, want an answer that is degraded", d, err)
			}
		}
		for range 10 {
			group.Go(ask)
		}
		synctest.Wait()
		if got := most.Load(); got != 1 {
			t.Errorf("got %d readers at a time, want one", got)
		}
		if d, err := c.Denials(t.Context(), top.Query{N: 1, Rules: q.Rules[:1], Share: "other"}); err != nil || d.Degraded {
			t.Errorf("got %+v, %v behind callers of another share, want an answer", d, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if _, err := c.Denials(ctx, q); err == nil {
			t.Error("got an answer from behind the others, want the end of the context")
		}
		began := time.Now()
		for range 100 { // more than may wait
			group.Go(ask)
		}
		group.Wait()
		if most.Load() != 2 || time.Since(began) > 9*time.Second {
			t.Errorf("got answers after %v from %d readers, want them in 8 s from one of each share", time.Since(began), most.Load())
		}
	})
}

// The newest denials of many rules are found without making a list of those of all rules.
func TestNewestOfManyRules(t *testing.T) { // not parallel: it counts allocations
	const n = 100
	now := time.Unix(1_000_020, 0)
	c := top.New(top.Config{Keys: 10, Now: func() time.Time { return now }}, "default")
	q := top.Query{N: n}
	for i := range 50 {
		q.Rules = append(q.Rules, top.Selected{Rule: fmt.Sprint("rule", i)})
	}
	for i := range n {
		for _, s := range q.Rules {
			deny(t, c, &now, s.Rule, fmt.Sprint(s.Rule, " ", i))
		}
	}
	d, err := c.Denials(t.Context(), q)
	if want := "rule0 98"; err != nil || len(d.List) != n || d.List[n-1].Key != want || d.List[0].Key != "rule49 99" {
		t.Fatalf("got %d denials, %v, want those from %s on", len(d.List), err, want)
	}
	one := testing.AllocsPerRun(1, func() { _, _ = c.Denials(t.Context(), top.Query{N: n, Rules: q.Rules[:1]}) })
	if all := testing.AllocsPerRun(1, func() { _, _ = c.Denials(t.Context(), q) }); all > 10*one {
		t.Errorf("got %v allocations for %d rules and %v for one", all, len(q.Rules), one)
	}
}

package events

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/kept"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

func newHub(t testing.TB, c Config) *Hub {
	t.Helper()
	if c.Keep == 0 {
		c.Keep = 100
	}
	c.Near, c.Log, c.Instance = 0.8, slog.New(slog.DiscardHandler), "here"
	return New(c)
}

// observer passes decisions on, as that of the service does.
type observer struct{ *Watcher }

func (observer) Failed(context.Context, store.Verb, error) {}
func (observer) Outage(context.Context, store.Verb, error) {}

// engine returns an engine whose decisions h watches.
func engine(t testing.TB, h *Hub, rules ...rule.Rule) *weir.Engine {
	t.Helper()
	set, err := rule.New(rules, nil)
	if err != nil {
		t.Fatal(err)
	}
	return scripttest.Engine(t, set, weir.WithObserver(observer{h.Watch("default")}))
}

func limit(quota int64, w window.Window) rule.Rule {
	return rule.Rule{Name: "posts", Per: []string{"user"}, Quota: &rule.Quota{Value: quota}, Window: w}
}

func hit(t testing.TB, e *weir.Engine, user string) {
	t.Helper()
	if _, err := e.Take(t.Context(), weir.Request{Attributes: weir.Attributes("user", user), Hits: 1}); err != nil {
		t.Fatal(err)
	}
}

// ids returns what the ring has, as texts.
func (h *Hub) texts() (all []string) {
	h.pass()
	h.ring.mu.Lock()
	defer h.ring.mu.Unlock()
	for _, e := range h.ring.events {
		all = append(all, string(e.Kind)+" "+e.Key)
	}
	return all
}

func (h *Hub) lastID() string { return h.ring.events[len(h.ring.events)-1].ID }

// A denial is an event once in each window, and again in the next one. Another hub gives it the same id.
func TestOnceInAWindow(t *testing.T) {
	for _, w := range []window.Window{window.Sliding(time.Hour), window.Fixed(time.Hour), window.Calendar(window.Hour, time.UTC)} {
		synctest.Test(t, func(t *testing.T) {
			one, two := newHub(t, Config{}), newHub(t, Config{})
			for _, h := range []*Hub{one, two} {
				e := engine(t, h, limit(1, w))
				for range 5 {
					hit(t, e, "ann")
				}
			}
			if got, want := one.texts(), []string{"denied ann"}; !slices.Equal(got, want) {
				t.Errorf("%v: got %q, want %q", w, got, want)
			}
			two.texts()
			first := one.lastID()
			if first != two.lastID() {
				t.Errorf("%v: got ids %s and %s, want the same", w, first, two.lastID())
			}
			e := engine(t, one, limit(1, w))
			time.Sleep(time.Hour)
			for range 5 {
				hit(t, e, "ann")
			}
			if got, want := one.texts(), []string{"denied ann", "denied ann"}; !slices.Equal(got, want) || one.lastID() == first {
				t.Errorf("%v: got %q an hour later, with id %s after %s", w, got, one.lastID(), first)
			}
		})
	}
}

// A burst of more than 10,000 events drops the rest and counts it, and a reader that is slow gets a gap.
func TestBounds(t *testing.T) {
	h := newHub(t, Config{Keep: 10})
	s, err := h.Subscribe(t.Context(), Filter{Namespace: "default"}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	e := engine(t, h, limit(1, window.Sliding(time.Hour)))
	for n := range 10_900 {
		user := fmt.Sprint(n)
		hit(t, e, user)
		hit(t, e, user)
	}
	if got := h.Dropped(); got != 900 {
		t.Errorf("got %d dropped, want 900", got)
	}
	h.pass()
	events, missed, err := s.Next(t.Context())
	if err != nil || len(events) != 10 || missed != maxQueue-10 {
		t.Errorf("got %d events, %d missed and %v; want 10 and %d", len(events), missed, err, maxQueue-10)
	}
	for n := range MaxStreams {
		s, err := h.Subscribe(t.Context(), Filter{Namespace: "tenant", Share: "tenant"}, "")
		if n == MaxStreams/2 {
			if !errors.Is(err, ErrTooMany) {
				t.Errorf("got %v for a stream more of one namespace, want too many", err)
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
	}
	for range MaxStreams - 1 - MaxStreams/2 {
		s, err := h.Subscribe(t.Context(), Filter{Whole: true}, "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
	}
	if _, err := h.Subscribe(t.Context(), Filter{Whole: true}, ""); !errors.Is(err, ErrTooMany) {
		t.Errorf("got %v, want too many streams", err)
	}
	h.EndStreams()
	if _, _, err := s.Next(t.Context()); !errors.Is(err, ErrEnded) {
		t.Errorf("got %v, want the end of the stream", err)
	}
}

// A namespace with more events than there is room for takes those of others away neither from webhooks nor from streams.
func TestShares(t *testing.T) {
	t.Parallel()
	h := newHub(t, Config{Keep: 100})
	add := func(namespace string, n int) {
		for i := range n {
			h.add(&Event{Kind: Denied, Time: time.Now(), Data: Data{Namespace: namespace, Rule: "posts"}}, h.show(fmt.Sprint(namespace, i)))
		}
	}
	add("b", 5) // the first of the ten below
	add("a", maxQueue+100)
	add("b", 10)
	add("c", 20)
	h.pass()
	got := map[string]int{}
	for _, e := range h.ring.events {
		got[e.Namespace]++
	}
	if got["a"] != 70 || got["b"] != 10 || got["c"] != 20 {
		t.Errorf("got %v, want the events of b and c, and some of a", got)
	}
	if got := h.Dropped(); got != 5+100+30 {
		t.Errorf("got %d dropped, want %d", got, 5+100+30)
	}
}

// The history forgets the oldest events of the namespace that has most, in the store and in memory. A stream counts what it
// missed of the events that it selects.
func TestSharesOfHistory(t *testing.T) {
	t.Parallel()
	h := newHub(t, Config{Keep: 100, Kept: kept.NewMemory(nil)})
	add := func(namespace string, n int) {
		for range n {
			h.add(&Event{Kind: Denied, Time: time.Now(), Data: Data{Namespace: namespace, Rule: "posts"}}, h.show(rand.Text()))
		}
		h.pass()
		if err := h.history.write(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	add("b", 1)
	add("a", 60)
	s, err := h.Subscribe(t.Context(), Filter{Namespace: "a"}, h.ring.events[1].ID)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	other, err := h.Subscribe(t.Context(), Filter{Namespace: "b"}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	add("b", 9)
	add("a", 60)
	of := map[string]int{}
	for _, e := range h.history.register.events {
		of["register, "+e.namespace]++
	}
	for _, e := range h.ring.events {
		of["ring, "+e.Namespace]++
	}
	if want := map[string]int{"register, a": 90, "register, b": 10, "ring, a": 90, "ring, b": 10}; !maps.Equal(of, want) {
		t.Errorf("got %v, want %v", of, want)
	}
	events, missed, err := s.Next(t.Context())
	if err != nil || len(events) != 90 || missed != 29 {
		t.Errorf("got %d events, %d missed and %v; want 90 and 29", len(events), missed, err)
	}
	if events, missed, err := other.Next(t.Context()); err != nil || len(events) != 9 || missed != 0 {
		t.Errorf("got %d events, %d missed and %v; want 9, and none missed of another namespace", len(events), missed, err)
	}
}

// The same holds for what waits to be written, for the outbox of a webhook, and for what waits for a webhook in memory.
func TestSharesOfWebhooks(t *testing.T) {
	t.Parallel()
	h := newHub(t, Config{Webhooks: []Webhook{{Name: "a", URL: &url.URL{Scheme: "http", Host: "receiver"}}}})
	event := func(namespace string, n int) *Event {
		e := &Event{ID: fmt.Sprint(namespace, n), Kind: Denied, Time: time.Unix(int64(n), 0), Data: Data{Namespace: namespace}}
		e.encode()
		return e
	}
	k, waiting, outbox := h.hooks[0], newShelf(h, nil, "waiting", 0), newShelf(h, kept.NewMemory(nil), "outbox", 0)
	for n := range maxOutbox {
		e := event("a", n)
		k.put(e, true)
		waiting.put(e)
		if outbox.put(e); n%writeMost == writeMost-1 {
			if err := outbox.write(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	of := map[string][]string{}
	for n := range 10 {
		e := event("b", n)
		k.put(e, true)
		waiting.put(e)
		outbox.put(e)
		more := event("a", maxOutbox+n)
		k.put(more, true)
		waiting.put(more)
		outbox.put(more)
	}
	if err := outbox.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	k.mu.Lock()
	for _, i := range k.pending.events {
		of["pending"] = append(of["pending"], i.Namespace)
	}
	k.mu.Unlock()
	for _, e := range waiting.waiting.events {
		of["waiting"] = append(of["waiting"], e.Namespace)
	}
	for _, e := range outbox.register.events {
		of["outbox"] = append(of["outbox"], e.namespace)
	}
	for place, all := range of {
		b := 0
		for _, namespace := range all {
			if namespace == "b" {
				b++
			}
		}
		if len(all) != maxOutbox || b != 10 {
			t.Errorf("%s: got %d events, %d of them of b; want %d and 10", place, len(all), b, maxOutbox)
		}
	}
	if waiting.waiting.of["a"] != maxWaiting-10 || waiting.waiting.of["b"] != 10 || len(outbox.waiting.of) != 0 || h.Dropped() != 3*20 {
		t.Errorf("got %v and %v that wait and %d dropped, want 60", waiting.waiting.of, outbox.waiting.of, h.Dropped())
	}
}

// A flood of one namespace does not delay the events of others.
func TestTurnsOfWebhooks(t *testing.T) {
	t.Parallel()
	h := newHub(t, Config{Webhooks: []Webhook{{Name: "a", URL: &url.URL{Scheme: "http", Host: "receiver"}}}})
	k, now := h.hooks[0], time.Now()
	put := func(namespace string, n int) {
		e := &Event{ID: fmt.Sprint(namespace, n), Kind: Denied, Time: now, Data: Data{Namespace: namespace, Key: fmt.Sprint(n % 100)}}
		e.encode()
		k.put(e, true)
	}
	for n := range 1000 {
		put("flood", n)
	}
	for n := range 3 {
		put("quiet", n)
	}
	groups, _ := k.pick(now)
	of := map[string][]string{}
	for _, group := range groups {
		for _, i := range group {
			of[i.Namespace] = append(of[i.Namespace], i.ID)
		}
	}
	if !slices.Equal(of["quiet"], []string{"quiet0", "quiet1", "quiet2"}) || len(of["flood"]) < 5 || of["flood"][0] != "flood0" {
		t.Errorf("got %q in a round, want those of quiet, in their order, and some of flood", of)
	}
}

// Nor does it delay them on their way into the register, where the events of each key come in their order.
func TestTurnsOfShelves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(newHub(t, Config{}), kept.NewMemory(nil), "outbox", 0)
		begun, took, ids := time.Now(), time.Duration(0), map[string][]string{}
		s.apply = func(p kept.Page) {
			for _, text := range p.Values {
				e, err := decode(text)
				if err != nil {
					t.Fatal(err)
				}
				if ids[e.Key] = append(ids[e.Key], e.ID); e.Namespace == "quiet" {
					took = time.Since(begun)
				}
			}
		}
		put := func(namespace string, n int) {
			e := &Event{ID: fmt.Sprintf("%s%04d", namespace, n), Kind: Denied, Time: begun, Data: Data{Namespace: namespace, Key: fmt.Sprint(namespace, n%10)}}
			e.encode()
			s.put(e)
		}
		for n := range 9000 {
			put("flood", n)
		}
		for n := range 30 {
			put("quiet", n)
		}
		ctx, stop := context.WithCancel(t.Context())
		go s.run(ctx, func() bool { return false })
		time.Sleep(time.Minute)
		stop()
		synctest.Wait()
		if took == 0 || took > 2*writeEvery {
			t.Errorf("got the last event of another namespace after %v, want it in one of the first two writes", took)
		}
		for key, all := range ids {
			if want := map[byte]int{'f': 900, 'q': 3}[key[0]]; len(all) != want || !slices.IsSorted(all) {
				t.Errorf("%s: got %d events, want %d in their order", key, len(all), want)
			}
		}
	})
}

// A namespace with more holds than are followed takes those of others away no more.
func TestSharesOfHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Config{Keep: 100})
		take := func(namespace string, n int) *take {
			one := &take{name: namespace, rules: []heldIn{{rule: "posts", length: time.Duration(n) * time.Second}}}
			binary.BigEndian.PutUint32(one.id[:], uint32(n))
			copy(one.id[4:], namespace)
			return one
		}
		for n := range maxHolds {
			h.holds.follow(take("a", 10+n))
		}
		for n := range 10 {
			h.holds.follow(take("b", 10+n))
		}
		if len(h.holds.all) != maxHolds || h.holds.of["b"] != 10 || h.holds.of["a"] != maxHolds-10 {
			t.Errorf("got %d of %v, want 10 of b", len(h.holds.all), h.holds.of)
		}
		time.Sleep(time.Minute)
		if all := h.holds.over(time.Now()); len(all) != 60 {
			t.Errorf("got %d ends, want 60", len(all))
		}
	})
}

func TestFilter(t *testing.T) {
	whole := &Event{Kind: OutageBegun}
	e := &Event{Kind: Denied, Data: Data{Namespace: "shop", Rule: "posts", Key: "ann"}}
	for _, c := range []struct {
		f    Filter
		e    *Event
		want bool
	}{
		{Filter{Namespace: "shop"}, e, true},
		{Filter{Namespace: "default"}, e, false},
		{Filter{Namespace: "shop"}, whole, false},
		{Filter{Namespace: "shop", Whole: true}, whole, true},
		{Filter{Namespace: "shop", Kinds: []Kind{Near}}, e, false},
		{Filter{Namespace: "shop", Rule: "posts", Key: "ann", Kinds: []Kind{Near, Denied}}, e, true},
		{Filter{Namespace: "shop", Rule: "post"}, e, false},
		{Filter{Namespace: "shop", Key: "bob"}, e, false},
	} {
		if got := c.f.Matches(c.e); got != c.want {
			t.Errorf("%+v: got %v, want %v", c.f, got, c.want)
		}
	}
}

// A stream whose filter no event passes ends with the hub, also while events wait for it.
func TestFilteredStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Config{})
		s, err := h.Subscribe(t.Context(), Filter{Namespace: "default", Kinds: []Kind{Ban}}, "")
		if err != nil {
			t.Fatal(err)
		}
		h.RulesChanged("default", "", "a")
		h.pass()
		h.EndStreams()
		<-s.wake // both have woken it once
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := s.Next(ctx); !errors.Is(err, ErrEnded) {
			t.Errorf("got %v, want the end", err)
		}
	})
}

// A stream after an event of another namespace begins as after one that is not known, so that nobody can
// try out what happened there. Kinds that are named often are compared once.
func TestForeignID(t *testing.T) {
	h := newHub(t, Config{})
	h.RulesChanged("a", "", "x")
	h.RulesChanged("b", "", "y")
	h.pass()
	id := h.lastID() // of b
	for namespace, want := range map[string]int64{"a": -1, "b": 0} {
		s, err := h.Subscribe(t.Context(), Filter{Namespace: namespace, Kinds: slices.Repeat([]Kind{RulesChanged, Ban}, 1000)}, id)
		if err != nil {
			t.Fatal(err)
		}
		if _, missed, err := s.now(); missed != want || err != nil {
			t.Errorf("namespace %s: got %d missed and %v, want %d", namespace, missed, err, want)
		}
		if len(s.filter.Kinds) != 2 {
			t.Errorf("got %d kinds, want 2", len(s.filter.Kinds))
		}
		s.Close()
	}
}

// A stream names the event behind which it begins, of those that its reader may see. Behind what it names if there is
// none, another stream has all events.
func TestWhereAStreamBegins(t *testing.T) {
	t.Parallel()
	h := newHub(t, Config{})
	begin := func(after string) *Stream {
		s, err := h.Subscribe(t.Context(), Filter{Namespace: "a", Kinds: []Kind{Ban, RulesChanged}}, after)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	before := begin("").After()
	h.RulesChanged("a", "", "x")
	h.pass()
	id := h.lastID()
	h.RulesChanged("b", "", "y")
	h.pass()
	if got := begin("").After(); got != id {
		t.Errorf("got %q, want %s, the newest event of the namespace", got, id)
	}
	if events, missed, err := begin(before).Next(t.Context()); err != nil || missed != -1 || len(events) != 1 || events[0].ID != id {
		t.Errorf("behind %q: got %d events, %d missed and %v; want the one of the namespace, and a gap", before, len(events), missed, err)
	}
}

const key = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

func TestParseWebhooks(t *testing.T) {
	dir := t.TempDir()
	file, secret := filepath.Join(dir, "hooks.yaml"), filepath.Join(dir, "s")
	for name, text := range map[string]string{secret: key, filepath.Join(dir, "bad"): "swordfish"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	good := "webhooks:\n  - name: a\n    url: https://example.com/x?y=z\n    secret_file: s\n    events: [near, denied]\n    timeout: 2s\n  - {name: b, url: 'http://localhost', secret_file: '" + secret + "', proxy: 'http://proxy:3128'}\n"
	hooks, err := ParseWebhooks(file, []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := hooks[0], hooks[1]; a.Name != "a" || a.URL.Host != "example.com" || a.SecretFile != secret || !slices.Equal(a.Kinds, []Kind{Near, Denied}) ||
		a.Timeout != 2*time.Second || b.SecretFile != secret || b.Proxy.Host != "proxy:3128" {
		t.Errorf("got %+v", hooks)
	}
	for text, want := range map[string]string{
		"":                           "1:1",
		"webhook: []":                `1:1: "webhook": unknown field; want webhooks`,
		"webhooks: 1":                "want a list",
		"webhooks:\n  - {name: a b}": `2:12: webhooks[0].name`,
		"webhooks:\n  - {name: a, url: 'ftp://swordfish@x', secret_file: s}":                                        "webhooks[0].url",
		"webhooks:\n  - {name: a, url: 'http://x'}":                                                                 "secret_file",
		"webhooks:\n  - {name: a, url: 'http://x', secret_file: s, events: [nears]}":                                "events",
		"webhooks:\n  - {name: a, url: 'http://x', secret_file: s, batch: 10}":                                      `"batch": unknown field`,
		"webhooks:\n  - {name: a, url: 'http://x', secret_file: s, timeout: 1h}":                                    "timeout",
		"webhooks:\n  - {name: a, url: 'http://x', secret_file: s}\n  - {name: a, url: 'http://y', secret_file: s}": "another webhook",
		"webhooks:\n  - name: a\n    url: http://x\n    secret_file: gone\n  - {name: b, url: 'http://x'}":          "hooks.yaml:4:18: webhooks[0].secret_file: ",
		"webhooks:\n  - name: a\n    url: http://x\n    secret_file: bad\n":                                         "hooks.yaml:4:18: webhooks[0].secret_file: ",
		"webhooks: [": "1:",
	} {
		_, err := ParseWebhooks(file, []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "swordfish") {
			t.Errorf("%s\ngot %v, want %q", text, err, want)
		}
	}
}

func TestSecrets(t *testing.T) {
	for text, want := range map[string]int{
		"whsec_" + key + "\n": 1, key: 1, "# old\nwhsec_" + key + "\n\nwhsec_" + key: 2,
		"": 0, "whsec_MDEy": 0, "swordfish swordfish swordfish": 0, strings.Repeat(key+"\n", 3): 0,
	} {
		keys, err := parseSecrets([]byte(text))
		if len(keys) != want || (err == nil) != (want > 0) || err != nil && strings.Contains(err.Error(), "swordfish") {
			t.Errorf("%q: got %d keys and %v, want %d", text, len(keys), err, want)
		}
	}
}

// A secret file that is damaged while the service runs is logged once, and the secrets of before sign.
func TestDamagedSecrets(t *testing.T) {
	var got atomic.Int64
	r := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) }))
	defer r.Close()
	at, err := url.Parse(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	h := newHub(t, Config{Webhooks: []Webhook{{Name: "a", URL: at, SecretFile: secret}}})
	var log strings.Builder
	h.log = slog.New(slog.NewTextHandler(&log, nil))
	k := h.hooks[0]
	for n, text := range []string{key, "damaged", "damaged", key, "damaged"} {
		if err := os.WriteFile(secret, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		k.keys.at = time.Time{}
		k.put(&Event{ID: fmt.Sprint(n), Kind: Ban, Time: time.Now(), text: []byte("{}")}, true)
		k.round(t.Context())
		if got.Load() != int64(n)+1 {
			t.Errorf("got %d calls, want %d", got.Load(), n+1)
		}
		if lines, want := strings.Count(log.String(), "\n"), []int{0, 1, 1, 1, 2}[n]; lines != want {
			t.Errorf("%d: got log %s, want %d lines", n, log.String(), want)
		}
	}
}

// The example of the specification of Standard Webhooks.
func TestSign(t *testing.T) {
	secret, _ := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	got := Sign([][]byte{secret, secret}, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`))
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	if got != want+" "+want {
		t.Errorf("got %s, want %s twice", got, want)
	}
}

// A receiver that fails for one key delays only the events of that key, a redirect is not followed, and a secret that
// changes is read again.
func TestReceivers(t *testing.T) {
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	var got atomic.Int64
	r := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		_, _ = r.Body.Read(body)
		switch {
		case strings.Contains(string(body), `"key":"bad"`):
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		default:
			got.Add(1)
		}
	}))
	defer r.Close()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	hooks, err := ParseWebhooks("f", fmt.Appendf(nil, "webhooks: [{name: a, url: '%s', secret_file: '%s'}]", r.URL, secret))
	if err != nil {
		t.Fatal(err)
	}
	h := newHub(t, Config{Webhooks: hooks})
	e := engine(t, h, limit(1, window.Sliding(time.Hour)))
	for _, user := range []string{"bad", "a", "b", "c"} {
		hit(t, e, user)
		hit(t, e, user)
	}
	h.pass()
	k := h.hooks[0]
	k.round(t.Context())
	if got.Load() != 3 || k.waiting() != 1 || elsewhere.Load() != 0 {
		t.Errorf("got %d calls, %d events that wait and %d calls elsewhere; want 3, 1 and 0", got.Load(), k.waiting(), elsewhere.Load())
	}
	if wait := k.round(t.Context()); wait < 500*time.Millisecond || wait > 2*time.Second {
		t.Errorf("got a wait of %v, want about a second", wait)
	}
	for i := range 30 {
		r := retry{failures: i}
		r.fail(time.Time{}, 0, backoffMost)
		if wait := r.next.Sub(time.Time{}); wait < 800*time.Millisecond || wait > 5*time.Minute {
			t.Errorf("got a wait of %v after %d failures", wait, i)
		}
		r = retry{}
		if r.fail(time.Time{}, time.Minute, backoffMost); r.next.Sub(time.Time{}) < time.Minute {
			t.Errorf("got a wait of %v, want the minute that the receiver asks for", r.next.Sub(time.Time{}))
		}
	}
}

// Many keys for which a receiver fails do not keep it from the events of others, which happened later.
func TestManyFail(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Config{Webhooks: []Webhook{{Name: "a", URL: &url.URL{Scheme: "http", Host: "receiver"}, SecretFile: secret}}})
		k, good, calls := h.hooks[0], 0, 0
		var mu sync.Mutex
		k.client.Transport = answers(func(r *http.Request) int {
			mu.Lock()
			defer mu.Unlock()
			body, _ := io.ReadAll(r.Body)
			if calls++; strings.Contains(string(body), `"key":"bad`) {
				return http.StatusBadRequest
			}
			good++
			return http.StatusOK
		})
		begun := time.Now()
		for n := range 80 {
			e := &Event{ID: fmt.Sprint(n), Kind: Denied, Time: begun, Data: Data{Key: fmt.Sprintf("bad%d", n)}}
			if n >= 40 {
				e.Key = fmt.Sprintf("good%d", n)
			}
			e.encode()
			k.put(e, true)
		}
		for good < 40 && time.Since(begun) < time.Hour {
			time.Sleep(k.round(t.Context()))
		}
		if took := time.Since(begun); good < 40 || took > time.Minute {
			t.Errorf("got %d of 40 events that the receiver takes after %v and %d calls", good, took, calls)
		}
	})
}

// The events of a key wait for one of theirs that the receiver refuses, and those of other keys do not. All arrive in order.
func TestRefusedEvent(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Config{Webhooks: []Webhook{{Name: "a", URL: &url.URL{Scheme: "http", Host: "receiver"}, SecretFile: secret}}})
		k, got, refused := h.hooks[0], [4][]int{}, 3
		var mu sync.Mutex
		k.client.Transport = answers(func(r *http.Request) int {
			mu.Lock()
			defer mu.Unlock()
			n, _ := strconv.Atoi(r.Header.Get("Webhook-Id"))
			if n == refused {
				return http.StatusUnprocessableEntity
			}
			got[n%4] = append(got[n%4], n)
			return http.StatusOK
		})
		for n := range 40 {
			e := &Event{ID: fmt.Sprint(n), Kind: Denied, Time: time.Now(), Data: Data{Key: fmt.Sprint(n % 4)}}
			e.encode()
			k.put(e, true)
		}
		for _, want := range []int{0, 10} {
			for begun := time.Now(); time.Since(begun) < 10*time.Minute; {
				time.Sleep(max(k.round(t.Context()), time.Second))
			}
			for n, all := range got {
				if want := [4]int{10, 10, 10, want}[n]; len(all) != want || !slices.IsSorted(all) {
					t.Errorf("key %d: got %d, want %d events in order", n, all, want)
				}
			}
			refused = -1
		}
	})
}

// What waits is bounded in bytes too, as keys can be long.
func TestOutboxBytes(t *testing.T) {
	h := newHub(t, Config{Webhooks: []Webhook{{Name: "a", URL: &url.URL{Scheme: "http", Host: "receiver"}}}})
	k, s := h.hooks[0], newShelf(h, nil, "outbox", 0)
	for n := range 100 {
		e := &Event{ID: fmt.Sprint(n), text: make([]byte, outboxSize/50)}
		k.put(e, true)
		s.put(e)
	}
	if k.waiting() != 50 || len(s.waiting.events) != 50 || h.Dropped() != 100 {
		t.Errorf("got %d and %d events that wait, and %d dropped; want half of each", k.waiting(), len(s.waiting.events), h.Dropped())
	}
	k.done(k.pending.events[:1:1])
	if k.put(&Event{ID: "later", text: make([]byte, outboxSize/50)}, true); k.waiting() != 50 {
		t.Errorf("got %d events that wait after one was sent, want 50", k.waiting())
	}
}

// answers is a receiver that answers with a status.
type answers func(*http.Request) int

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a(r), Body: http.NoBody, Request: r}, nil
}

// An instance that has lost the lease begins no further call.
func TestLeaseLost(t *testing.T) {
	var h *Hub
	calls := 0
	r := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		calls++
		h.leader.sure.Store(0)
	}))
	defer r.Close()
	at, err := url.Parse(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	h = newHub(t, Config{Kept: kept.NewMemory(nil), Shared: true, Webhooks: []Webhook{{Name: "a", URL: at, SecretFile: secret}}})
	h.leader.sure.Store(int64(time.Hour))
	k := h.hooks[0]
	for n := range 3 {
		e := &Event{ID: fmt.Sprint(n), Kind: Ban, Time: time.Now().Add(-2 * orderWait)}
		e.encode()
		k.put(e, false)
	}
	if err := k.outbox.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if k.round(t.Context()); calls != 1 {
		t.Errorf("got %d calls, want 1", calls)
	}
}

// largest is a store of registers that knows how many fields the largest change had.
type largest struct {
	kept.Store
	fields int
}

func (l *largest) Keep(ctx context.Context, name string, version int64, fields, values []string) (int64, error) {
	l.fields = max(l.fields, len(fields))
	return l.Store.Keep(ctx, name, version, fields, values)
}

// Events that a webhook has not accepted for a day leave the outbox in parts: a server decides nothing while it removes one.
func TestRemovesInParts(t *testing.T) {
	shared := &largest{Store: kept.NewMemory(nil)}
	h := newHub(t, Config{Kept: shared, Webhooks: []Webhook{{Name: "a", URL: &url.URL{}}}})
	k := h.hooks[0]
	for n := range 5 * writeMost {
		e := &Event{ID: strconv.Itoa(n), Kind: Denied, Time: time.Now().Add(-giveUp - time.Hour)}
		e.encode()
		k.outbox.put(e)
	}
	for len(k.outbox.some()) > 0 {
		if err := k.outbox.write(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	k.round(t.Context())
	if k.waiting() > 0 || len(k.gone) > 0 || shared.fields > writeMost {
		t.Errorf("got %d waiting, %d to be removed, and %d removed at once; want none, and %d at most", k.waiting(), len(k.gone), shared.fields, writeMost)
	}
}

// When an outbox of several pages is read again, what was sent and not removed yet is not sent again.
func TestReadAgain(t *testing.T) {
	h := newHub(t, Config{Webhooks: []Webhook{{Name: "a", URL: &url.URL{}}}})
	k := h.hooks[0]
	pages := []kept.Page{
		{Fields: []string{"1"}, Values: []string{`{"id":"1"}`}, Again: true, More: true},
		{Fields: []string{"2"}, Values: []string{`{"id":"2"}`}},
	}
	read := func(pages ...kept.Page) {
		for _, p := range pages {
			k.applied(p)
		}
	}
	read(pages...)
	k.done([]*item{k.byID["1"], k.byID["2"]})
	for range 2 {
		read(pages...)
		if !k.byID["1"].sent || !k.byID["2"].sent {
			t.Errorf("got sent %v and %v after the outbox was read again, want both", k.byID["1"].sent, k.byID["2"].sent)
		}
		read(pages[0]) // and then from the beginning
	}
}

// Of the instances on a store one leads. When it dies, another one does, and never both.
func TestLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := kept.NewMemory(nil)
		line := &line{Store: shared}
		one, two := newLeader(line, "one"), newLeader(shared, "two")
		first, kill := context.WithCancel(t.Context())
		second, stop := context.WithCancel(t.Context())
		go one.run(first)
		time.Sleep(time.Second)
		go two.run(second)
		for range 60 {
			time.Sleep(time.Second)
			if !one.leads() || two.leads() {
				t.Fatal("want that the first one leads alone")
			}
		}
		// It stops without a word: as if killed.
		line.cut.Store(true)
		taken := 0
		for range 20 {
			time.Sleep(time.Second)
			if one.leads() && two.leads() {
				t.Fatal("two lead")
			}
			if taken++; two.leads() {
				break
			}
		}
		if !two.leads() || taken > 15 {
			t.Errorf("the other one leads after %d seconds: %v", taken, two.leads())
		}
		kill()
		stop()
		synctest.Wait()
		three := newLeader(shared, "three")
		third, end := context.WithCancel(t.Context())
		go three.run(third)
		synctest.Wait()
		if !three.leads() {
			t.Error("the lease was not given up")
		}
		end()
		synctest.Wait()
	})
}

// A denial that is answered again, later and at another instance, is no further event. It has an answer to give again
// because a rule has counted the request.
func TestReplayedDenial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Config{})
		e := engine(t, h, limit(1, window.Calendar(window.Day, nil)), rule.Rule{Name: "seen", Window: window.Fixed(time.Hour)})
		r := weir.Request{Attributes: weir.Attributes("user", "ann"), Hits: 2, IdempotencyKey: "1"}
		for i := range 2 {
			if d, err := e.Take(t.Context(), r); err != nil || d.Allowed || d.Replayed != (i > 0) {
				t.Fatalf("got %+v, error %v", d, err)
			}
			if got := h.texts(); !slices.Equal(got, []string{"denied ann"}) {
				t.Errorf("take %d: got %q, want one denial", i+1, got)
			}
			h.seen = newSeen() // of another instance
			time.Sleep(5 * time.Minute)
		}
	})
}

// Of a long key, a hold that is followed keeps what an event shows.
func TestLongKeyOfHold(t *testing.T) {
	h := newHub(t, Config{})
	held := limit(10, window.Fixed(time.Hour))
	held.Hold = time.Minute
	hit(t, engine(t, h, held), strings.Repeat("k", 1000))
	if k := h.holds.queue[0].rules[0].key; len(k.text) != 200 || k.id != k.text {
		t.Errorf("got a text of %d bytes and an id of %d, want 200 of both", len(k.text), len(k.id))
	}
}

// A take that is answered again is followed once, and not after it was settled.
func TestReplayedHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Config{})
		held := limit(10, window.Fixed(time.Hour))
		held.Hold = time.Minute
		e := engine(t, h, held)
		r := weir.Request{Attributes: weir.Attributes("user", "ann"), Hits: 1, IdempotencyKey: "1"}
		take := func() weir.Decision {
			d, err := e.Take(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		expire := func(want ...string) {
			t.Helper()
			time.Sleep(2 * time.Minute)
			h.holds.expire(t.Context(), time.Now())
			if got := h.texts(); !slices.Equal(got, want) || len(h.holds.queue) > 0 {
				t.Errorf("got %q and %d takes that are followed, want %q and none", got, len(h.holds.queue), want)
			}
		}
		d := take()
		if _, err := e.Settle(t.Context(), d.Receipt, weir.Request{Attributes: r.Attributes, Hits: 1}); err != nil {
			t.Fatal(err)
		}
		if !take().Replayed {
			t.Error("want the answer of before")
		}
		expire()
		r.IdempotencyKey = "2"
		take()
		take()
		expire("hold_expired ann")
	})
}

// A settle that finds no hold, because it names another key or comes too late, does not keep the end of the hold from being
// reported.
func TestSettleFindsNoHold(t *testing.T) {
	for _, c := range []struct {
		name  string
		user  string
		after time.Duration
		want  []string
	}{
		{"in time", "ann", 30 * time.Second, nil},
		{"of another key", "bob", 30 * time.Second, []string{"hold_expired ann"}},
		{"late", "ann", 61 * time.Second, []string{"hold_expired ann"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHub(t, Config{})
				held := limit(10, window.Fixed(time.Hour))
				held.Hold = time.Minute
				e := engine(t, h, held)
				d, err := e.Take(t.Context(), weir.Request{Attributes: weir.Attributes("user", "ann"), Hits: 1})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(c.after)
				if _, err := e.Settle(t.Context(), d.Receipt, weir.Request{Attributes: weir.Attributes("user", c.user)}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Minute)
				h.holds.expire(t.Context(), time.Now())
				if got := h.texts(); !slices.Equal(got, c.want) {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		})
	}
}

// A hold that another instance has settled does not expire, however many others that instance settles.
func TestForeignSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Config{Kept: kept.NewMemory(nil), Shared: true, Webhooks: []Webhook{{Name: "a", URL: &url.URL{}}}}
		one, two := newHub(t, c), newHub(t, c)
		ctx, stop := context.WithCancel(t.Context())
		for _, h := range []*Hub{one, two} {
			go h.holds.ended.run(ctx, h.holds.follows)
		}
		held := limit(10, window.Fixed(time.Hour))
		held.Hold = time.Minute
		d, err := engine(t, one, held).Take(t.Context(), weir.Request{Attributes: weir.Attributes("user", "ann"), Hits: 1})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Second)
		foreign := two.Watch("default")
		for n := range 60_000 { // more than a queue and the register have entries
			if foreign.Ended(store.Settle, [12]byte(fmt.Appendf(nil, "foreign%05d", n))); n == 40_000 {
				foreign.Ended(store.Settle, d.Receipt.Take.ID)
			}
		}
		time.Sleep(2 * time.Minute)
		one.holds.expire(ctx, time.Now())
		if got := one.take(); len(got) > 0 {
			t.Errorf("got %d events of a hold that was settled", len(got))
		}
		stop()
	})
}

// What happens until the end of Run is in the history.
func TestOrderlyEnd(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			s := kept.NewMemory(nil)
			h := newHub(t, Config{Kept: s})
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { h.Run(ctx); close(ended) }()
			for _, hash := range []string{"a", "b"} {
				h.RulesChanged("default", "", hash)
				synctest.Wait()
			}
			stop()
			<-ended
			if fields, _, _, _, err := s.Kept(t.Context(), historyName, [2]int64{}, 10); err != nil || len(fields) != 2 {
				t.Fatalf("got %d events and %v, want 2", len(fields), err)
			}
		})
	}
}

// line is the way of an instance to a store, which can be cut.
type line struct {
	kept.Store
	cut atomic.Bool
}

func (l *line) Keep(ctx context.Context, name string, version int64, fields, values []string) (int64, error) {
	if l.cut.Load() {
		return 0, context.DeadlineExceeded
	}
	return l.Store.Keep(ctx, name, version, fields, values)
}

func (l *line) Kept(ctx context.Context, name string, since [2]int64, most int) ([]string, []string, [2]int64, bool, error) {
	if l.cut.Load() {
		return nil, nil, [2]int64{}, false, context.DeadlineExceeded
	}
	return l.Store.Kept(ctx, name, since, most)
}

// BenchmarkDecided measures what a decision costs that is no event, one that is an event in the same window, and one
// that is a new event for a queue that is full.
func BenchmarkDecided(b *testing.B) {
	for _, c := range []struct {
		name  string
		quota int64
		many  bool
	}{{"admitted", 1 << 40, false}, {"denied", 1, false}, {"event", 1, true}} {
		for _, on := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/events=%v", c.name, on), func(b *testing.B) {
				set, err := rule.New([]rule.Rule{limit(c.quota, window.Fixed(time.Hour))}, nil)
				if err != nil {
					b.Fatal(err)
				}
				h := newHub(b, Config{Keep: 1000})
				w := h.Watch("default")
				if !on {
					w = nil
				}
				e := scripttest.Engine(b, set, weir.WithObserver(observer{w}))
				ctx, stop := context.WithCancel(b.Context())
				defer stop()
				go h.Run(ctx)
				requests := make([]weir.Request, 1<<16)
				for i := range requests {
					user := "ann"
					if c.many {
						user = fmt.Sprint(i)
					}
					requests[i] = weir.Request{Attributes: weir.Attributes("user", user), Hits: 1}
				}
				var d weir.Decision
				n := 0
				b.ReportAllocs()
				for b.Loop() {
					r := &requests[n%len(requests)]
					if n++; c.many {
						r.Hits = 2 // never fits
					}
					if d, err = e.Take(ctx, *r); err != nil {
						b.Fatal(err)
					}
				}
				_ = d
				b.ReportMetric(float64(h.Dropped())/float64(n), "dropped/op")
			})
		}
	}
}

package server_test

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/internal/pgtest"
	"github.com/weirhq/weir/internal/redistest"
)

const eventRules = `rules:
  - name: posts
    per: user
    limit: 10
    window: 1h
  - name: logins
    when: { action: login }
    per: user
    limit: 1
    window: 1h
    ban: { for: 1h }
  - name: many
    per: ip
    trigger: 3
    window: 1h
  - name: jobs
    when: { action: job }
    per: user
    limit: 5
    window: { held: 4s }
`

// cloudEvent is an event as receivers get it.
type cloudEvent struct {
	SpecVersion, ID, Source, Type, Subject string
	Time                                   time.Time
	Data                                   struct {
		Namespace, Rule, Key, Node, Instance, Hash string
		Used, Quota                                int64
		Until                                      time.Time
	}
}

func (e *cloudEvent) String() string {
	return strings.TrimPrefix(e.Type, "weir.") + " " + e.Data.Rule + " " + e.Data.Key
}

// outage reports whether e is about an outage. On a crowded machine a store that is idle may seem to be out, so that
// only the test of outages looks at these events.
func (e *cloudEvent) outage() bool { return strings.HasPrefix(e.Type, "weir.outage_") }

// eventStream reads server-sent events.
type eventStream struct {
	*bufio.Reader
	close   func()
	outages bool // whether next returns them
}

func openStream(t *testing.T, url, last string) *eventStream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	resp, err := http.DefaultClient.Do(r) //nolint:bodyclose // close closes it
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		b, _ := io.ReadAll(resp.Body)
		t.Fatalf("got %d %s", resp.StatusCode, b)
	}
	s := &eventStream{Reader: bufio.NewReader(resp.Body), close: func() { cancel(); _ = resp.Body.Close() }}
	t.Cleanup(s.close)
	if line, err := s.ReadString('\n'); err != nil || line[0] != ':' {
		t.Fatalf("got %q and %v, want a comment first", line, err)
	}
	return s
}

// next returns the next event, and its type and id of the stream.
func (s *eventStream) next(t *testing.T) (e cloudEvent, kind, id string) {
	t.Helper()
	for {
		line, err := s.ReadString('\n')
		if err != nil {
			t.Fatal("the stream ended: ", err)
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			e = cloudEvent{}
			if err := json.Unmarshal([]byte(value), &e); err != nil {
				t.Fatal(err)
			}
			if s.outages || !e.outage() {
				return e, kind, id
			}
		}
	}
}

// until returns the texts of events up to the nth.
func (s *eventStream) until(t *testing.T, n int) (all []string) {
	t.Helper()
	for range n {
		e, _, _ := s.next(t)
		all = append(all, e.String())
	}
	return all
}

func take(t *testing.T, api, attributes string) answer {
	t.Helper()
	a := call(t, "POST", api+"/v1/take", `{"attributes":`+attributes+`}`)
	if a.status != 200 {
		t.Fatalf("got %d %s", a.status, a.text)
	}
	return a
}

// stores are the places in which the service keeps events.
func eventStores(t *testing.T) map[string]func(t *testing.T) func(*config.Config) {
	return map[string]func(t *testing.T) func(*config.Config){
		"memory": func(*testing.T) func(*config.Config) { return func(*config.Config) {} },
		"data": func(t *testing.T) func(*config.Config) {
			dir := t.TempDir()
			return func(c *config.Config) { c.Data = dir }
		},
		"redis": func(t *testing.T) func(*config.Config) {
			n := redistest.Server(t)
			return func(c *config.Config) { c.Store = "redis://" + n.Addr() + "?timeout=30s" }
		},
		"postgres": func(t *testing.T) func(*config.Config) {
			n := pgtest.Server(t)
			return func(c *config.Config) { c.Store = n.URL("timeout=30s") }
		},
	}
}

func TestEventStream(t *testing.T) {
	t.Parallel()
	for name, open := range eventStores(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules := filepath.Join(t.TempDir(), "rules.yaml")
			write(t, rules, eventRules)
			place := open(t)
			change := func(c *config.Config) { c.Rules = rules; place(c) }
			one := start(t, change)
			two := one
			if name == "redis" || name == "postgres" {
				two = start(t, change)
			}
			all := openStream(t, two.api+"/v1/events", "")
			denied := openStream(t, one.api+"/v1/events?kind=denied&rule=posts&key=alice", "")
			for range 12 {
				take(t, one.api, `{"user":"alice","ip":"1.2.3.4"}`)
			}
			want := []string{"trigger many 1.2.3.4", "near posts alice", "denied posts alice"}
			if got := all.until(t, 3); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			e, kind, id := denied.next(t)
			if e.String() != "denied posts alice" || kind != "denied" || id != e.ID || e.Data.Used != 10 || e.Data.Quota != 10 ||
				e.SpecVersion != "1.0" || e.Source != "/weir/default" || e.Subject != "posts/alice" || e.Data.Namespace != "default" || time.Since(e.Time) > time.Minute {
				t.Errorf("got %+v with type %s and id %s", e, kind, id)
			}
			for range 2 {
				take(t, two.api, `{"user":"bob","action":"login"}`)
			}
			got := all.until(t, 2)
			if want := []string{"ban logins bob", "denied logins bob"}; !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			fresh := openStream(t, one.api+"/v1/events", "")
			if line, err := fresh.ReadString('\n'); err != nil || !strings.HasPrefix(line, "id: ") {
				t.Errorf("got %q and %v, want where the stream begins", line, err)
			}
			again := openStream(t, two.api+"/v1/events", id)
			if got := again.until(t, 1); got[0] != "ban logins bob" {
				t.Errorf("got %q after Last-Event-ID, want what followed it", got)
			}
			gap := openStream(t, one.api+"/v1/events", "unknown")
			if _, kind, _ := gap.next(t); kind != "gap" {
				t.Errorf("got %q after an id that is not known, want a gap", kind)
			}
			if got := gap.until(t, 1); got[0] != "trigger many 1.2.3.4" {
				t.Errorf("got %q after the gap, want all that is kept", got)
			}
			write(t, rules, eventRules+"  - name: more\n    per: user\n    limit: 100\n    window: 1h\n")
			if e, _, _ := all.next(t); e.Type != "weir.rules_changed" || e.Data.Hash == "" {
				t.Errorf("got %+v, want that the rules have changed", e)
			}
			for _, bad := range []string{"kind=x", "kind=", "x=y", "rule=a&rule=b", "last_event_id=" + strings.Repeat("x", 65)} {
				if a := call(t, "GET", one.api+"/v1/events?"+bad, ""); a.status != 400 || a.json["field"] == "" {
					t.Errorf("%s: got %d %s, want 400", bad, a.status, a.text)
				}
			}
			until := time.Now().Add(4 * time.Second).UTC().Format(time.RFC3339Nano)
			body := `{"rule":"posts","attributes":{"user":"acme"},"limit":500,"until":"` + until + `","note":"n"}`
			if a := call(t, "PUT", one.api+"/v1/overrides", body); a.status != 200 {
				t.Fatalf("got %d %s", a.status, a.text)
			}
			if got, want := all.until(t, 2), []string{"override_set posts acme", "override_ended posts acme"}; !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			if name == "redis" || name == "postgres" {
				return // only with a webhook, because of what it costs
			}
			a := take(t, one.api, `{"user":"carol","action":"job"}`)
			take(t, one.api, `{"user":"dave","action":"job"}`)
			if a := call(t, "POST", one.api+"/v1/settle", `{"attributes":{"user":"carol","action":"job"},"receipt":"`+a.json["receipt"].(string)+`"}`); a.status != 200 {
				t.Fatalf("got %d %s", a.status, a.text)
			}
			if got := all.until(t, 1); got[0] != "hold_expired jobs dave" {
				t.Errorf("got %q, want the hold that nobody settled", got)
			}
		})
	}
}

// receiver is a webhook's receiver, which checks signatures.
type receiver struct {
	*httptest.Server
	secret  []byte
	outages bool // whether texts has them

	mu     sync.Mutex
	events []cloudEvent // each once; guarded by mu
	twice  int          // guarded by mu
	bad    []string     // guarded by mu
	status int          // the answer, if it is not 0; guarded by mu
}

func newReceiver(t *testing.T) (r *receiver, file string) {
	t.Helper()
	r = &receiver{secret: []byte("0123456789abcdef0123456789abcdef")}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	dir := t.TempDir()
	secret := "whsec_" + base64.StdEncoding.EncodeToString(r.secret)
	write(t, filepath.Join(dir, "secret"), secret+"\n")
	file = filepath.Join(dir, "webhooks.yaml")
	text := fmt.Sprintf("webhooks:\n  - name: test\n    url: %s/hook\n    secret_file: secret\n", r.URL)
	write(t, file, text)
	return r, file
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status != 0 {
		w.WriteHeader(r.status)
		return
	}
	m := hmac.New(sha256.New, r.secret)
	fmt.Fprintf(m, "%s.%s.%s", req.Header.Get("webhook-id"), req.Header.Get("webhook-timestamp"), body)
	if want := "v1," + base64.StdEncoding.EncodeToString(m.Sum(nil)); req.Header.Get("webhook-signature") != want {
		r.bad = append(r.bad, "signature "+req.Header.Get("webhook-signature"))
	}
	if kind := req.Header.Get("Content-Type"); kind != "application/cloudevents+json; charset=utf-8" {
		r.bad = append(r.bad, kind)
	}
	var e cloudEvent
	if err := json.Unmarshal(body, &e); err != nil || e.ID != req.Header.Get("webhook-id") {
		r.bad = append(r.bad, string(body))
	}
	if slices.ContainsFunc(r.events, func(o cloudEvent) bool { return o.ID == e.ID }) {
		r.twice++
	} else {
		r.events = append(r.events, e)
	}
}

func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

// texts returns the events so far.
func (r *receiver) texts() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if r.outages || !e.outage() {
			all = append(all, e.String())
		}
	}
	return append(all, r.bad...)
}

func TestWebhooks(t *testing.T) {
	t.Parallel()
	for name, open := range eventStores(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules := filepath.Join(t.TempDir(), "rules.yaml")
			write(t, rules, eventRules)
			r, file := newReceiver(t)
			place := open(t)
			change := func(c *config.Config) { c.Rules, c.Webhooks = rules, file; place(c) }
			one := start(t, change)
			two := one
			if name == "redis" || name == "postgres" {
				two = start(t, change)
			}
			r.answer(503)
			for n := range 12 {
				take(t, []*service{one, two}[n%2].api, `{"user":"alice","ip":"1.2.3.4"}`)
			}
			redistest.Eventually(t, "a call fails", func() bool { return one.logs.count("webhook fails")+two.logs.count("webhook fails") > 0 })
			r.answer(0)
			take(t, two.api, `{"user":"dave","action":"job"}`)
			a := take(t, one.api, `{"user":"carol","action":"job"}`)
			if a := call(t, "POST", two.api+"/v1/settle", `{"attributes":{"user":"carol","action":"job"},"receipt":"`+a.json["receipt"].(string)+`"}`); a.status != 200 {
				t.Fatalf("got %d %s", a.status, a.text)
			}
			want := []string{"trigger many 1.2.3.4", "near posts alice", "denied posts alice", "hold_expired jobs dave"}
			slices.Sort(want)
			redistest.Eventually(t, "all events arrive", func() bool { return len(r.texts()) >= len(want) })
			if name == "redis" || name == "postgres" { // the next instance continues
				if err := one.stop(); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					take(t, two.api, `{"user":"bob","action":"login"}`)
				}
				want = append(want, "ban logins bob", "denied logins bob")
				redistest.Eventually(t, "the other instance sends", func() bool { return len(r.texts()) >= len(want) })
			}
			slices.Sort(want)
			got := r.texts()
			if i, j := slices.Index(got, "near posts alice"), slices.Index(got, "denied posts alice"); i > j {
				t.Errorf("got %q, want the events of a key in order", got)
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			if text := call(t, "GET", two.admin+"/metrics", "").text; !strings.Contains(text, `weir_webhook_calls_total{result="success",webhook="test"}`) {
				t.Error("no metric of webhooks")
			}
		})
	}
}

// Where keys are hidden, an event that two instances report is there once, too.
func TestEventsOfHiddenKeys(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"none", "hashed"} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			change := onStore(t, redistest.Server(t), 2)
			hidden := func(c *config.Config) {
				change(c)
				c.LogKeys = form
				write(t, c.Rules, "rules: [{name: users, per: [user], limit: 0, window: 1d}, {name: ips, per: [ip], limit: 0, window: 1d}]")
			}
			one, two := startOnStore(t, hidden), startOnStore(t, hidden)
			all := openStream(t, two.api+"/v1/events", "")
			for i, s := range []*service{one, two} {
				take(t, s.api, `{"user":"alice"}`)
				if i == 1 {
					take(t, s.api, `{"ip":"1.2.3.4"}`)
				}
				e, _, _ := all.next(t)
				if want := []string{"users", "ips"}[i]; e.Data.Rule != want || e.Data.Key == "alice" {
					t.Errorf("got %s, want the denial by %s", &e, want)
				}
			}
		})
	}
}

// Outages are reported from memory, and events that the store could not keep meanwhile arrive after it. A tenant sees
// neither outages nor the events of others.
func TestEventsOfOutages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"default", "shop"} {
		write(t, filepath.Join(dir, name+".yaml"), eventRules)
	}
	r, file := newReceiver(t)
	r.outages = true
	n := redistest.Server(t)
	s := start(t, func(c *config.Config) {
		c.Rules, c.Webhooks, c.Store = dir, file, "redis://"+n.Addr()
	})
	all := openStream(t, s.api+"/v1/events?kind=outage_begun,outage_ended,denied", "")
	all.outages = true
	shop := openStream(t, s.api+"/ns/shop/v1/events?kind=denied", "")
	n.Kill()
	redistest.Eventually(t, "the outage is noticed", func() bool {
		take(t, s.api, `{"user":"alice"}`)
		return slices.ContainsFunc(r.texts(), func(text string) bool { return strings.HasPrefix(text, "outage_begun") })
	})
	if e, kind, _ := all.next(t); kind != "outage_begun" || e.Data.Node != n.Addr() || e.Data.Namespace != "" {
		t.Errorf("got %s %+v, want the outage", kind, e)
	}
	for range 12 {
		take(t, s.api+"/ns/shop", `{"user":"bob"}`)
	}
	n.Restart()
	for {
		e, kind, _ := all.next(t)
		if kind == "outage_ended" {
			break
		}
		if e.Data.Namespace == "shop" {
			t.Errorf("got %+v, want the events of one namespace", e)
		}
	}
	if e, _, _ := shop.next(t); e.String() != "denied posts bob" || e.Source != "/weir/shop" {
		t.Errorf("got %+v, want the denial during the outage", e)
	}
	redistest.Eventually(t, "the webhook has all", func() bool {
		texts := r.texts()
		return slices.Contains(texts, "denied posts bob") && slices.ContainsFunc(texts, func(text string) bool { return strings.HasPrefix(text, "outage_ended") })
	})
}

// The streams of a token end when it is bound to another namespace.
func TestStreamsOfATokenThatMoves(t *testing.T) {
	t.Parallel()
	dir := rulesDir(t, map[string]string{"a.yaml": posts(1), "b.yaml": posts(1)})
	file, ops, mine := filepath.Join(t.TempDir(), "tokens"), access.NewToken(), access.NewToken()
	tokens := func(namespace string) string {
		return access.Line("ops", ops, access.All, "") + "\n" + access.Line("mine", mine, access.Read, namespace) + "\n"
	}
	write(t, file, tokens("a"))
	s := start(t, func(c *config.Config) { c.Rules, c.Access.Tokens, c.GRPCListen = dir, file, "127.0.0.1:0" })
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.api+"/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+mine)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+mine)
	stream, err := weirv1.NewWeirServiceClient(dial(t, s.grpcHost(t), insecure.NewCredentials())).Events(ctx, &weirv1.EventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Header(); err != nil { // the stream has begun
		t.Fatal(err)
	}
	deny := func() {
		for range 2 {
			ask(t, http.DefaultTransport, http.MethodPost, s.api+"/ns/a/v1/take", ops, takePost)
		}
	}
	deny()
	if e, err := stream.Recv(); err != nil || e.Kind != "denied" {
		t.Fatalf("got %v and %v, want the denial", e, err)
	}
	lines := bufio.NewReader(resp.Body)
	for text := ""; !strings.Contains(text, "weir.denied"); {
		if text, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	write(t, file, tokens("b"))
	if a := ask(t, http.DefaultTransport, http.MethodPost, s.admin+"/-/reload", ops, ""); a.status != http.StatusOK {
		t.Fatalf("got %d %s", a.status, a.text)
	}
	ask(t, http.DefaultTransport, http.MethodPut, s.api+"/ns/a/v1/overrides", ops, `{"rule":"posts","attributes":{"user":"ann"},"limit":7}`)
	if text, err := io.ReadAll(lines); err != nil || strings.Contains(string(text), "override_set") {
		t.Errorf("got %s and %v, want the end", text, err)
	}
	if e, err := stream.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("gRPC: got %v and %v, want the end", e, err)
	}
}

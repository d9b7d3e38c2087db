package clienttest_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/client"
	"github.com/weirhq/weir/cmd/weir/internal/grpcapi"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve serves an engine at a socket until the test ends, and returns the socket's
// name.
func serve(t testing.TB, c grpcserver.Config, e *weir.Engine) (*grpcserver.Server, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "socket")
	s, _ := serveAt(t, path, c, e)
	return s, "unix:" + path
}

// serveBounded serves an engine whose answers have at most most bytes.
func serveBounded(t testing.TB, most int64, c grpcserver.Config, e *weir.Engine) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "socket")
	serveSet(t, path, c, namespace.NewSet(namespace.New(namespace.Default, e, most, nil)))
	return "unix:" + path
}

// serveAt serves an engine at a socket.
func serveAt(t testing.TB, path string, c grpcserver.Config, e *weir.Engine) (s *grpcserver.Server, ended chan error) {
	t.Helper()
	return serveSet(t, path, c, namespace.Only(e))
}

func serveSet(t testing.TB, path string, c grpcserver.Config, spaces *namespace.Set) (s *grpcserver.Server, ended chan error) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s, ended = grpcserver.New(c), make(chan error, 1)
	s.Add(grpcapi.Service, grpcapi.File, grpcapi.New(spaces).Methods())
	go func() { ended <- s.Serve(l); close(ended) }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-ended; err != nil {
			t.Errorf("got %v from Serve, want nil", err)
		}
	})
	return s, ended
}

// open returns a client of target, which the test's end closes. Its calls have time enough
// on a busy machine, unless the options set another time-out.
func open(t testing.TB, target string, options ...client.Option) *client.Client {
	t.Helper()
	c, err := client.New(target, append([]client.Option{client.WithTimeout(time.Minute)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// ways are the ways to ask an engine.
var ways = map[string]func(testing.TB, *weir.Engine) decider{
	"engine": func(_ testing.TB, e *weir.Engine) decider { return e },
	"calls": func(t testing.TB, e *weir.Engine) decider {
		_, target := serve(t, grpcserver.Config{}, e)
		return open(t, target)
	},
	"streams": func(t testing.TB, e *weir.Engine) decider {
		_, target := serve(t, grpcserver.Config{}, e)
		return open(t, target, client.WithStreams(2))
	},
}

// TestScripts runs the scripts with the engine and over the network: the answers are the
// same.
func TestScripts(t *testing.T) {
	t.Parallel()
	for name, ask := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runScripts(t, func(t *testing.T, e *weir.Engine) decider { return ask(t, e) })
		})
	}
}

const rules = `rules:
  - {name: posts, when: {action: post}, per: [user], limit: 5, window: 1h}
  - {name: bursts, when: {action: post}, per: [user, page], limit: 3, window: {fixed: 1m}, mode: shadow}
  - {name: tokens, when: {action: chat}, per: [user], sum: tokens, limit: 100, window: 1m, hold: 5m, feedback: {oops: all}}
  - {name: exports, when: {action: export}, per: [user], limit: 2, window: {held: 30s}}
  - {name: logins, when: {action: login}, per: [user], limit: 2, window: 15m, ban: {for: 1m, factor: 2, most: 1d}}
  - {name: views, when: {action: post}, per: [page], window: {cells: 24h, n: 24}}
  - {name: visitors, when: {action: post}, per: [page], distinct: user, limit: 2, window: 1m, mode: shadow}
  - {name: often, when: {action: login}, per: [user], trigger: 3, window: 1h}
  - {name: bad, when: {user: mallory}, then: deny}
`

// pair is two engines that count apart and have one clock.
type pair struct {
	now   atomic.Int64
	plain *weir.Engine
	other *weir.Engine
}

func newPair(t testing.TB) *pair {
	t.Helper()
	w := &pair{}
	w.now.Store(int64(window.At(scripttest.Start)))
	clock := func() window.Instant { return window.Instant(w.now.Load()) }
	w.plain, _ = scripttest.NewEngine(t, rules, clock)
	w.other, _ = scripttest.NewEngine(t, rules, clock)
	return w
}

// TestContract makes the same random calls of an engine and of a client. The decisions
// and the errors are the same, but for receipts, and rules, which do not travel.
func TestContract(t *testing.T) {
	t.Parallel()
	for name, ask := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPair(t)
			a, b := decider(w.plain), ask(t, w.other)
			r := rand.New(rand.NewPCG(5, 6))
			one := func(of ...string) string { return of[r.IntN(len(of))] }
			var receipts [][2]weir.Receipt
			var da, db weir.Decision // used again
			for i := range 1500 {
				w.now.Add(r.Int64N(20_000_000))
				q := weir.Request{Attributes: weir.Attributes("action", one("post", "chat", "export", "login", "none"), "user", one("ann", "bob", "mallory", ""))}
				for _, more := range []weir.Attribute{{Name: "page", Value: one("/a", "/b")}, {Name: "tokens", Value: one("0", "7", "60", "500", "x")}} {
					if r.IntN(4) > 0 {
						q.Attributes = append(q.Attributes, more)
					}
				}
				if r.IntN(3) == 0 {
					q.Hits = int64(r.IntN(8)) - 1
				}
				verb := store.Verb(r.IntN(7)) //nolint:gosec // small
				if r.IntN(20) == 0 {
					q.Feedback = one("oops", "nope")
				}
				q.Final = r.IntN(10) == 0
				qb := q
				if verb.NeedsReceipt() && len(receipts) > 0 {
					pair := receipts[r.IntN(len(receipts))]
					q.Receipt, qb.Receipt = pair[0], pair[1]
				}
				ea, eb := a.Do(t.Context(), verb, &q, &da), b.Do(t.Context(), verb, &qb, &db)
				text := fmt.Sprintf("%d: %v %+v", i, verb, q)
				if !sameError(t, text, ea, eb) {
					sameDecision(t, text, weir.Decision{}, da)
					sameDecision(t, text, weir.Decision{}, db)
					continue
				}
				if !da.Receipt.IsZero() {
					receipts = append(receipts, [2]weir.Receipt{da.Receipt, db.Receipt})
				}
				sameDecision(t, text, da, db)
				switch r.IntN(10) {
				case 0:
					da, wa, ea := a.Explain(t.Context(), q)
					db, wb, eb := b.Explain(t.Context(), qb)
					if sameError(t, text, ea, eb) {
						sameDecision(t, text, da, db)
						if !reflect.DeepEqual(wa, wb) {
							t.Fatalf("%s\ngot  %+v\nwant %+v", text, wb, wa)
						}
					}
				case 1:
					rule := one("posts", "visitors", "views", "tokens", "logins", "bad", "nope")
					ua, ea := a.Usage(t.Context(), rule, q.Attributes)
					ub, eb := b.Usage(t.Context(), rule, q.Attributes)
					if sameError(t, text, ea, eb) && !reflect.DeepEqual(ua, ub) {
						t.Fatalf("%s\ngot  %+v\nwant %+v", text, ub, ua)
					}
				case 2:
					rule := one("posts", "visitors", "views", "tokens", "logins", "nope")
					sameError(t, text, a.Forget(t.Context(), rule, q.Attributes), b.Forget(t.Context(), rule, q.Attributes))
				case 3:
					ia := []weir.Item{{Verb: store.Take, Request: q}, {Verb: verb, Request: q}, {Verb: store.Check, Request: q}}
					ib := []weir.Item{{Verb: store.Take, Request: qb}, {Verb: verb, Request: qb}, {Verb: store.Check, Request: qb}}
					a.DoAll(t.Context(), ia)
					b.DoAll(t.Context(), ib)
					for k := range ia {
						if sameError(t, text, ia[k].Err, ib[k].Err) {
							sameDecision(t, text, ia[k].Decision, ib[k].Decision)
						}
					}
				}
			}
			if len(receipts) < 20 {
				t.Errorf("got %d receipts, want some", len(receipts))
			}
		})
	}
}

// sameError compares the errors of an engine and of a client. It reports whether there
// are none.
func sameError(t *testing.T, text string, want, got error) bool {
	t.Helper()
	if (got == nil) != (want == nil) {
		t.Fatalf("%s\ngot  %v\nwant %v", text, got, want)
	}
	if want == nil {
		return true
	}
	var fg, fw *fault.Fault
	if errors.As(want, &fw) != errors.As(got, &fg) || fw != nil && fw.Path != fg.Path {
		t.Fatalf("%s\ngot  %v\nwant %v", text, got, want)
	}
	for _, sentinel := range []error{weir.ErrUnknownRule, weir.ErrClosed} {
		if errors.Is(got, sentinel) != errors.Is(want, sentinel) {
			t.Fatalf("%s\ngot  %v\nwant %v", text, got, want)
		}
	}
	if fw == nil && got.Error() != want.Error() {
		t.Fatalf("%s\ngot  %v\nwant %v", text, got, want)
	}
	var e *client.Error
	if errors.As(got, &e) && !client.Uncounted(got) {
		t.Fatalf("%s\n%v: want that nothing was counted", text, got)
	}
	return false
}

func sameDecision(t *testing.T, text string, want, got weir.Decision) {
	t.Helper()
	if got.Receipt.IsZero() != want.Receipt.IsZero() {
		t.Fatalf("%s\ngot receipt %v, want %v", text, got.Receipt, want.Receipt)
	}
	for _, d := range []*weir.Decision{&got, &want} {
		d.Receipt, d.Rules = weir.Receipt{}, nil
		d.Usages, d.Verdicts, d.Triggered = append([]weir.Usage{}, d.Usages...), append([]string{}, d.Verdicts...), append([]string{}, d.Triggered...)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s\ngot  %+v\nwant %+v", text, got, want)
	}
}

// Many goroutines share a stream: each gets its own answer, and none is lost.
func TestManyCallers(t *testing.T) {
	t.Parallel()
	for name, ask := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPair(t)
			d := ask(t, w.other)
			const callers, calls = 16, 100
			var all sync.WaitGroup
			for i := range callers {
				all.Go(func() {
					user := strings.Repeat("u", i+1)
					for n := range calls {
						a, err := d.Record(t.Context(), weir.Request{Attributes: weir.Attributes("action", "post", "user", user)})
						if err != nil || a.Usages[0].Key != user || a.Usages[0].Before != int64(min(n, 5)) {
							t.Errorf("%s: call %d: got %+v, %v", user, n, a, err)
							return
						}
					}
				})
			}
			all.Wait()
		})
	}
}

// Arguments that are wrong are errors of New.
func TestNew(t *testing.T) {
	t.Parallel()
	for _, make := range []func() (*client.Client, error){
		func() (*client.Client, error) { return client.New("") },
		func() (*client.Client, error) { return client.New("localhost:1", client.WithTimeout(0)) },
		func() (*client.Client, error) { return client.New("localhost:1", client.WithStreams(-1)) },
	} {
		if c, err := make(); err == nil {
			t.Errorf("got %v, want an error", c)
		}
	}
	var zero client.Client
	if _, err := zero.Take(t.Context(), weir.Request{}); err == nil {
		t.Error("got no error from a zero client")
	}
}

package server_test

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/server"
	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/storetest"
	"github.com/weirhq/weir/window"
)

// timed is a model of a store on the clock, which can be unavailable.
type timed struct {
	store.Store
	set  func(window.Instant)
	away atomic.Bool
}

func (s *timed) Do(ctx context.Context, calls []store.Call) error {
	if s.away.Load() {
		for i := range calls {
			calls[i].Err = &store.OutageError{Err: errors.New("away")}
		}
		return nil
	}
	s.set(window.At(time.Now()))
	return s.Store.Do(ctx, calls)
}

// Instances count each other, hold their number through an outage, and notice
// when one is gone.
func TestInstances(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewModel()
		s := &timed{Store: m.Store, set: m.Set}
		var numbers []func() int
		var stops []context.CancelFunc
		for range 3 {
			run, number := server.NewInstances(s)
			ctx, stop := context.WithCancel(t.Context())
			numbers, stops = append(numbers, number), append(stops, stop)
			go run(ctx, slog.New(slog.DiscardHandler))
			time.Sleep(100 * time.Millisecond)
		}
		defer func() {
			for _, stop := range stops {
				stop()
			}
		}()
		wants := func(what string, want ...int) {
			t.Helper()
			synctest.Wait()
			for i, n := range want {
				if got := numbers[i](); got != n {
					t.Errorf("%s: instance %d: got %d, want %d", what, i, got, n)
				}
			}
		}
		wants("at the start", 1, 2, 3)
		time.Sleep(3 * time.Second)
		wants("after the next beats", 3, 3, 3)
		s.away.Store(true)
		time.Sleep(time.Hour)
		wants("in an outage", 3, 3, 3)
		s.away.Store(false)
		for range 10 {
			time.Sleep(time.Second)
			wants("after the outage", 3, 3, 3)
		}
		stops[2]()
		time.Sleep(8 * time.Second)
		wants("when one has just gone", 3, 3)
		time.Sleep(20 * time.Second)
		wants("when one has gone", 2, 2)
	})
}

// An instance whose store never answered has no number.
func TestInstancesWithoutStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &timed{}
		s.away.Store(true)
		run, number := server.NewInstances(s)
		ctx, stop := context.WithCancel(t.Context())
		go run(ctx, slog.New(slog.DiscardHandler))
		time.Sleep(time.Minute)
		if got := number(); got != 0 {
			t.Errorf("got %d, want 0", got)
		}
		stop()
	})
}

// Each outage is two lines, however short it is.
func TestEpisodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		said := newJournal()
		log := slog.New(slog.NewTextHandler(said, nil))
		o, run := server.NewEpisodes()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { run(ctx, log); close(ended) }()
		meet := func(reason store.Reason) {
			o.Outage(t.Context(), store.Take, &store.OutageError{Reason: reason, Err: errors.New("why")})
			o.Decided(t.Context(), store.Take, &weir.Decision{Degraded: true}, 0)
		}
		wants := func(what, want string) {
			t.Helper()
			synctest.Wait()
			said.mu.Lock()
			got := regexp.MustCompile(`(?m)^time=\S+ level=`).ReplaceAllString(said.text.String(), "")
			said.text.Reset()
			said.mu.Unlock()
			if got != want {
				t.Errorf("%s: got\n%swant\n%s", what, got, want)
			}
		}
		o.Outage(t.Context(), store.Refund, errors.New("give back"))
		o.Decided(t.Context(), store.Take, &weir.Decision{}, 0)
		time.Sleep(time.Minute)
		wants("no outage", "")
		const begins = `WARN msg="decisions without the store, rules follow their on_outage" reason=`
		meet("late")
		wants("one call", begins+"late error=why\n")
		time.Sleep(2 * time.Second)
		wants("one call's end", "INFO msg=\"decisions with the store again\" after=0s decisions=1 reasons=\"late 1\"\n")
		for i := range 30 {
			meet([]store.Reason{"circuit-open", "circuit-open", ""}[i%3])
			time.Sleep(100 * time.Millisecond)
		}
		wants("a long one", begins+"circuit-open error=why\n")
		time.Sleep(2 * time.Second)
		wants("its end", "INFO msg=\"decisions with the store again\" after=2.9s decisions=30 reasons=\"circuit-open 20, unknown 10\"\n")
		meet("busy")
		synctest.Wait()
		stop()
		<-ended
		wants("the service's end", begins+"busy error=why\n"+
			"INFO msg=\"stopped while decisions were without the store\" after=0s decisions=1 reasons=\"busy 1\"\n")
	})
}

// A service whose number of instances is not set warns of what it means; with
// auto it counts them and admits its share in an outage.
func TestServiceCountsInstances(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	unset := start(t, onStore(t, n, 0))
	unset.logs.await(t, 1, "--nodes is not set")
	var services []*service
	for range 3 {
		services = append(services, start(t, onStore(t, n, config.AutoNodes)))
	}
	for i, s := range services {
		redistest.Eventually(t, "three instances", func() bool {
			return strings.Contains(call(t, "GET", s.admin+"/metrics", "").text, "\nweir_store_instances 3\n")
		})
		if i == 0 {
			s.logs.await(t, 1, "instances share the store")
		}
	}
	n.Kill()
	redistest.Eventually(t, "a third of the quota", func() bool {
		a := call(t, "POST", services[1].api+"/v1/take", `{"attributes":{"user":"42"}}`)
		return a.json["degraded"] == true && strings.Contains(a.text, `"quota":334`)
	})
}

// A service without a number of instances says so when rules come into force that
// admit a share of the quota in an outage, once, and not for others.
func TestServiceNeedsInstancesForLocalLimits(t *testing.T) {
	t.Parallel()
	const warning = "--nodes is not set"
	n := redistest.Server(t)
	path := rulesFile(t, "rules:\n"+
		"  - {name: open, per: [user], limit: 5, window: 1h, on_outage: allow}\n"+
		"  - {name: trial, per: [user], limit: 5, window: 2h, mode: shadow}\n"+
		"  - {name: views, per: [page], window: 1h}\n")
	s := start(t, func(c *config.Config) { c.Rules, c.Store, c.StoreTimeout = path, "redis://"+n.Addr(), patience })
	if s.logs.count(warning) != 0 {
		t.Error("got a warning about rules that admit nothing from memory")
	}
	for _, limit := range []string{"5", "6"} {
		write(t, path, "rules: [{name: posts, per: [user], limit: "+limit+", window: 1h}]")
		call(t, "POST", s.admin+"/-/reload", "")
		s.logs.await(t, 1, "rule=posts")
	}
	if got := s.logs.count(warning); got != 1 {
		t.Errorf("got %d warnings, want 1", got)
	}
}

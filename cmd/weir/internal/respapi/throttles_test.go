package respapi_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/respapi"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
)

// twoSpaces returns a server of the namespaces eu and shop, and its namespaces.
func twoSpaces(t *testing.T) (*respapi.Server, *namespace.Set) {
	t.Helper()
	var all []*namespace.Namespace
	for _, name := range []string{"eu", "shop"} {
		all = append(all, namespace.New(name, scripttest.Engine(t, scripttest.Rules(t, "rules: []")), 0, nil))
	}
	set := namespace.NewSet(all...)
	return newServer(t, "rules: []", func(c *respapi.Config) { c.Namespaces = set }), set
}

// A namespace has its own keys of CL.THROTTLE, and its own number of periods. A
// connection that changes its namespace changes both.
func TestThrottleNamespaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, set := twoSpaces(t)
		l := newPipes()
		serve(t, s, l)
		c := newClient(t, l.dial())
		defer c.Close()
		as := func(user string) {
			t.Helper()
			if got := c.do("AUTH", user, "any"); got != "+OK" {
				t.Fatalf("%s: got %s", user, got)
			}
		}
		throttle := func(want, period string) {
			t.Helper()
			if got := c.do("CL.THROTTLE", "user123", "0", "1", period); !strings.HasPrefix(got, want) {
				t.Errorf("period %s: got %s, want %s", period, got, want)
			}
		}
		as("eu")
		throttle("*[:0", "60")
		throttle("*[:1", "60")
		as("shop")
		throttle("*[:0", "60") // its first call
		as("eu")
		throttle("*[:1", "60")
		// In one pipeline, too.
		got := c.send(command("CL.THROTTLE", "a", "0", "1", "60")+command("AUTH", "shop", "any")+command("CL.THROTTLE", "a", "0", "1", "60")+command("CL.THROTTLE", "a", "0", "1", "60"), 4)
		if got := fmt.Sprint(got); got != "[*[:0 :1 :0 :-1 :60] +OK *[:0 :1 :0 :-1 :60] *[:1 :1 :0 :60 :60]]" {
			t.Errorf("got %s", got)
		}

		// One that has used up the periods does not lock out the other, nor itself for longer
		// than its counters last.
		as("eu")
		for i := range 255 {
			throttle("*[:0", fmt.Sprint(100+i))
		}
		const full = "-ERR more than 256 different periods are in use"
		throttle(full, "500")
		as("shop")
		throttle("*[:0", "500")
		as("eu")
		throttle(full, "500")
		time.Sleep(50 * time.Second)
		throttle("*[:1", "100") // is in use
		time.Sleep(52 * time.Second)
		throttle("*[:0", "500") // takes the place of 60
		throttle("*[:1", "354")
		throttle("-ERR more than 256", "60")

		// What was kept for a namespace that is gone goes with it.
		set.Replace(set.All()[1:])
		time.Sleep(2 * time.Second)
		if got := c.do("CL.THROTTLE", "user123", "0", "1", "60"); got != `-ERR namespace "eu": not found` {
			t.Errorf("got %s from a namespace that is gone", got)
		}
	})
}

// A limit that cannot be opened is an error, and is not kept.
func TestThrottleIsNotOpened(t *testing.T) {
	t.Parallel()
	s := newServer(t, "rules: []", func(c *respapi.Config) {
		c.Throttle = func(string, weir.Limit) (*weir.Limiter, error) { return nil, errors.New("no room") }
	})
	c := local(t, s)()
	for range 2 {
		if got := c.do("CL.THROTTLE", "a", "0", "1", "60"); got != "-ERR no room" {
			t.Errorf("got %s", got)
		}
	}
}

// A caller cannot make a key that outlives its token by more than a year.
func TestThrottleIsTooLong(t *testing.T) {
	t.Parallel()
	c := local(t, newServer(t, "rules: []", nil))()
	const tooLong = "-ERR a key would be in use for more than 366 days"
	for args, want := range map[string]string{
		"CL.THROTTLE a 0 1 31622400":        "*[:0 :1 :0 :-1 :31622400]",
		"CL.THROTTLE b 0 1 31622401":        tooLong,
		"CL.THROTTLE c 9 1 31622400":        tooLong,
		"CL.THROTTLE d 9 100 63244800":      "*[:0 :10 :9 :-1 :632448]",
		"GCRA e 0 1 31622401":               tooLong,
		"INCREX f UBOUND 5 EX 31622400 ENX": "*[:1 :1]",
		"INCREX g UBOUND 5 EX 31622401 ENX": tooLong,
	} {
		if got := c.do(strings.Fields(args)...); got != want {
			t.Errorf("%s: got %s, want %s", args, got, want)
		}
	}
}

// slow is a store that answers after a millisecond. It records how many calls were waiting at the same time, at most.
type slow struct {
	store.Store
	waiting, most atomic.Int64
}

func (s *slow) Do(ctx context.Context, calls []store.Call) error {
	if n := s.waiting.Add(1); n > s.most.Load() {
		s.most.Store(n)
	}
	time.Sleep(time.Millisecond)
	s.waiting.Add(-1)
	return s.Store.Do(ctx, calls)
}

// One pipeline does not take all calls that the shared store can decide at the same time.
func TestThrottlesTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		counts := &slow{Store: memstore.New()}
		s := newServer(t, "rules: []", func(c *respapi.Config) {
			c.Shared = true
			c.Throttle = func(_ string, l weir.Limit) (*weir.Limiter, error) {
				return weir.NewLimiter(l, weir.WithStore(counts), weir.WithName("CL.THROTTLE"))
			}
		})
		l := newPipes()
		serve(t, s, l)
		c := newClient(t, l.dial())
		defer c.Close()
		var all strings.Builder
		for i := range 500 {
			all.WriteString(command("CL.THROTTLE", fmt.Sprint(i), "0", "1", "60"))
		}
		c.send(all.String(), 500)
		if got := counts.most.Load(); got != 64 {
			t.Errorf("got %d calls at the same time, want 64", got)
		}
		_ = counts.Close()
	})
}

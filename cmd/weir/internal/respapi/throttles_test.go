package respapi_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/respapi"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
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

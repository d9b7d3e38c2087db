package redisstore_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir/store/redisstore/redistest"
)

const quota = 1_000_000 // nobody gets there

// A server that stands still for 5 seconds, with calls waiting for it: what
// they asked counts nothing when it goes on.
func TestServerStandsStill(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := openURL(t, at(n.Addr()))
	op := hourly(quota, "rule", "k")
	d := drive(t, s, 16, op)
	d.answers(200)
	n.Pause(5 * time.Second)
	d.fails(300)
	d.answers(200)
	d.end()
	// A call that was counted right before the stop has lost its answer.
	if got, want := used(t, s, op), d.admitted.Load(); got < want || got > want+16 {
		t.Errorf("used: got %d, want the %d admitted and few more", got, want)
	}
	t.Logf("%d admitted, %d used, %d outages, longest %v", d.admitted.Load(), used(t, s, op), d.outages.Load(), time.Duration(d.longest.Load()))
}

// A server that is killed and comes back with nothing: its scripts are gone
// too.
func TestServerIsKilled(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := openURL(t, at(n.Addr()))
	op := hourly(quota, "rule", "k")
	d := drive(t, s, 16, op)
	d.answers(200)
	n.Kill()
	d.fails(300)
	n.Restart()
	before := d.admitted.Load()
	d.answers(200)
	d.end()
	if got, want := used(t, s, op), d.admitted.Load()-before; got < want || got > want+16 {
		t.Errorf("used since the restart: got %d, want the %d admitted and few more", got, want)
	}
	t.Logf("%d outages, longest %v", d.outages.Load(), time.Duration(d.longest.Load()))
}

// A server that is restarted at once, under load, with what it has on disk.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t, "--appendonly", "yes", "--appendfsync", "always")
	s := openURL(t, at(n.Addr()))
	op := hourly(quota, "rule", "k")
	d := drive(t, s, 16, op)
	for range 3 {
		d.answers(200)
		n.Restart()
	}
	d.answers(200)
	d.end()
	if got, want := used(t, s, op), d.admitted.Load(); got < want || got > want+3*16 {
		t.Errorf("used: got %d, want the %d admitted and few more", got, want)
	}
	t.Logf("%d outages, longest %v", d.outages.Load(), time.Duration(d.longest.Load()))
}

// A network that is slow, breaks connections, or loses everything.
func TestNetworkFails(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		fail func(*redistest.Proxy)
	}{
		{"delays", func(p *redistest.Proxy) { p.Delay(100 * time.Millisecond) }},
		{"cuts", (*redistest.Proxy).Cut},
		{"loses everything", (*redistest.Proxy).Hold},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			n := redistest.Server(t)
			p := redistest.Through(t, n)
			s := openURL(t, at(p.Addr()))
			op := hourly(quota, "rule", "k")
			d := drive(t, s, 16, op)
			for range 3 {
				d.answers(200)
				test.fail(p)
				d.fails(300)
				p.Heal()
				d.answers(200)
				p.Reset()
			}
			d.answers(200)
			d.end()
			if got, want := used(t, s, op), d.admitted.Load(); got < want || got > want+6*16 {
				t.Errorf("used: got %d, want the %d admitted and few more", got, want)
			}
			t.Logf("%d admitted, %d used, %d outages, longest %v", d.admitted.Load(), used(t, s, op), d.outages.Load(), time.Duration(d.longest.Load()))
		})
	}
}

package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/conn"
	"github.com/weirhq/weir/store/redisstore/internal/keyname"
	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

// SetClock makes s use this clock and not the server's. Keys then stay an hour
// longer.
func SetClock(s *Store, now func() window.Instant) { s.clock = now }

// KeyName returns the name of op's key.
func KeyName(prefix string, op *store.Op) string {
	return string(keyname.Names{Prefix: prefix}.Append(nil, op))
}

// ErrStale is the error of a call that reached the server after its deadline.
var ErrStale = script.ErrStale

// LaterTimeout is the time that one Do has for what servers left for later.
const LaterTimeout = laterTimeout

// SlotOf returns the slot of a key.
var SlotOf = conn.SlotOf

// Call is a call with all that a store adds to its ops.
type Call struct{ Now, Near, Deadline window.Instant }

// Run runs verb for ops on the server of c.
func (o Call) Run(ctx context.Context, c rueidis.Client, prefix string, verb store.Verb, ops []store.Op) (window.Instant, error) {
	return conn.ForClient(c, script.NewCodec(prefix)).Run(ctx, 0, script.Call{
		Verb: verb, Ops: ops, Now: o.Now, Near: o.Near, Deadline: o.Deadline,
	})
}

// WavesOf returns the groups in which s decides calls, by the numbers of the calls.
func WavesOf(s *Store, calls []store.Call) (waves [][]int) {
	for _, wave := range s.waves(calls) {
		var numbers []int
		for i := range calls {
			if slices.Contains(wave, &calls[i]) {
				numbers = append(numbers, i)
			}
		}
		waves = append(waves, numbers)
	}
	return waves
}

// Sliced returns the number of calls in slices that are under way, without those of namespaces with a name.
func Sliced(s *Store) int64 { return s.slicedOf(make([]store.Call, 1)).Load() }

// LaterTurn waits for the turn of a namespace to have calls decided that servers left for later.
func LaterTurn(ctx context.Context, s *Store, namespace string) (end func(), err error) {
	return remote.Turn(ctx, &s.turns, "later of "+namespace)
}

// Ready reports whether the node of each slot may get a call.
func Ready(s *Store) bool {
	for slot := range 1 << 14 {
		if !s.servers.Ready(slot) {
			return false
		}
		if !s.servers.Sharded() {
			break
		}
	}
	return true
}

// Settled reports whether an attempt to connect to each known node has ended, other than with its time-out.
func Settled(s *Store) bool {
	for _, n := range s.servers.Nodes() {
		if errors.Is(n.Trouble(), remote.ErrUnavailable) {
			return false
		}
	}
	return true
}

// Peek returns the state of op's key in words, and the server's instant.
func (s *Store) Peek(ctx context.Context, op *store.Op) (window.State, window.Instant, error) {
	return s.peek(ctx, op)
}

// Details returns all that c states, with the logins.
func Details(c Config) string {
	var b strings.Builder
	fmt.Fprintf(&b, "addrs=%v db=%d login=%s:%s", c.Addrs, c.rest.DB, c.rest.Username, c.rest.Password)
	if c.rest.Mode == conn.Sentinel {
		fmt.Fprintf(&b, " primary=%s login=%s:%s", c.rest.Primary, c.rest.SentinelUsername, c.rest.SentinelPassword)
	}
	if c.TLS != nil {
		fmt.Fprintf(&b, " server_name=%q", c.TLS.ServerName)
	}
	fmt.Fprintf(&b, "\n  prefix=%s client_name=%s timeout=%v in_flight=%d wait_replicas=%d",
		c.prefix, c.rest.ClientName, c.Timeout, c.rest.InFlight, c.rest.WaitReplicas)
	return b.String()
}

// Whole reports whether c has what every store needs.
func Whole(c Config) bool {
	return len(c.Addrs) > 0 && c.prefix != "" && c.Timeout > 0 && c.rest.InFlight > 0
}

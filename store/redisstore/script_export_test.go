package redisstore

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// ErrStale answers a call that reached the server after its deadline.
var ErrStale = errStale

// KeyName is the name of op's key.
func KeyName(prefix string, op *store.Op) string {
	return string(namer{prefix}.append(nil, op))
}

// Call is a call with all that a store says besides its ops.
type Call struct{ Now, Near, Deadline window.Instant }

// Run runs verb for ops on the server behind c.
func (o Call) Run(ctx context.Context, c rueidis.Client, prefix string, verb store.Verb, ops []store.Op) (window.Instant, error) {
	return newProgram(prefix).run(ctx, c, verb, ops, upTo(len(ops)), callOptions{now: o.Now, near: o.Near, deadline: o.Deadline})
}

// InWords is what an inspection at 13:00 says of a packed state.
func InWords(state string) (text string, ok bool) {
	k := kept{state: state, now: window.At(time.Date(2026, 3, 2, 13, 0, 0, 0, time.UTC)), ttl: time.Hour}
	text, err := k.inWords("key")
	return text, err == nil
}

// Peek returns the state of op's key in words, and the server's instant.
func (s *Store) Peek(ctx context.Context, op *store.Op) (window.State, window.Instant, error) {
	return s.peek(ctx, op)
}

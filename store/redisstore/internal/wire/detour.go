package wire

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store"
)

// detour is a client that sends each command with another one before or behind
// it, on the same connection.
type detour struct {
	rueidis.Client
	asking   bool          // ASKING before, for a slot that is on its way to the node
	replicas int           // WAIT behind, for so many replicas to confirm
	timeout  time.Duration // of calls without a deadline; see patience
}

// detour returns the client for a call with verb.
func (n *Node) detour(c rueidis.Client, verb store.Verb, asking bool) rueidis.Client {
	replicas := n.config.WaitReplicas
	if verb == store.Check {
		replicas = 0
	}
	if !asking && replicas == 0 {
		return c
	}
	if replicas > 0 {
		c = n.confirmer(c)
	}
	return detour{c, asking, replicas, n.config.Timeout}
}

// patience returns how long WAIT waits: its answer has to be here in time. That of a train
// has to be here in the time of its most patient caller.
func patience(ctx context.Context, timeout time.Duration) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return time.Until(deadline) * 3 / 4
	}
	return timeout
}

// Do implements [rueidis.Client].
func (d detour) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	commands := make([]rueidis.Completed, 0, 3)
	if d.asking {
		commands = append(commands, d.B().Asking().Build())
	}
	at := len(commands)
	commands = append(commands, cmd)
	if d.replicas > 0 {
		commands = append(commands, wait(d, d.replicas, patience(ctx, d.timeout)))
	}
	replies := d.Client.DoMulti(ctx, commands...)
	if d.replicas > 0 && replies[at].Error() == nil {
		if err := confirmed(replies[at+1], d.replicas); err != nil {
			return rueidis.NewErrorResult(err)
		}
	}
	return replies[at]
}

// DoMulti implements [rueidis.Client] for commands that count, on the node that serves
// their slots.
func (d detour) DoMulti(ctx context.Context, commands ...rueidis.Completed) []rueidis.RedisResult {
	commands = append(commands[:len(commands):len(commands)], wait(d, d.replicas, patience(ctx, d.timeout)))
	replies := d.Client.DoMulti(ctx, commands...)
	last := len(replies) - 1
	if err := confirmed(replies[last], d.replicas); err != nil {
		for i := range replies[:last] {
			if replies[i].Error() == nil {
				replies[i] = rueidis.NewErrorResult(err)
			}
		}
	}
	return replies[:last]
}

// wait returns the command that waits for replicas to confirm all that was
// written before it on the connection. The library makes a connection for each
// command that it knows to wait, in the caller's time, so it does not get to know.
func wait(c rueidis.Client, replicas int, within time.Duration) rueidis.Completed {
	ms := max(1, within.Milliseconds())
	return c.B().Arbitrary("WAIT").Args(strconv.Itoa(replicas), strconv.FormatInt(ms, 10)).Build()
}

// confirmed returns an error if fewer replicas have confirmed.
func confirmed(reply rueidis.RedisResult, replicas int) error {
	n, err := reply.AsInt64()
	if err == nil && n < int64(replicas) {
		return errReplicas
	}
	return err
}

package conn

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

// maxBatchKeys is the most keys of a call that shares a command with others.
const maxBatchKeys = 24

// Pending is a call that a node decides. The goroutine that it belongs to fills in the first
// fields, and reads the results when it has been decided. A batcher may still read it when
// the caller has left, but not what Ops has: that is the caller's to use again.
type Pending struct {
	script.Call
	Slot int            // on a cluster
	At   window.Instant // the server's, set when the call was decided
	Err  error          // nil when the call was decided

	// What answers so far have asked for, besides what script.Call has.
	asking    bool // ASKING goes before it: its slot is on its way to the node
	keysMoved bool // some keys of its slot have
	stale     int  // how often it came too late

	// What is sent, and its answer: a reply or an error.
	program    *script.Program
	keys       []string
	room       [4]string // for keys
	args       string
	ownCommand bool // it shares no command
	confirms   bool // replicas have to confirm what it counts
	reply      script.Reply
	failure    error
	deadline   time.Duration // when the caller gives up; 0: it does not

	// Of the batcher.
	done      chan struct{} // gets one when the answer is set; nil in a slice
	timer     *time.Timer   // of the batcher's wait
	self      [1]*Pending   // itself, as a batch
	waits     bool          // the caller waits for done; guarded by the batcher's mu
	abandoned bool          // the caller has left, and the batcher may still have it
	counted   bool          // reply is set, and replicas have to confirm it; guarded by the mu of Node.confirms
}

func newPending() any {
	c := &Pending{done: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	c.timer.Stop()
	c.self[0] = c
	return c
}

// shares reports whether a command can decide c and other, which follows it.
func (c *Pending) shares(other *Pending) bool {
	return c.program == other.program && c.program.Batch != nil && c.Slot == other.Slot && c.Now == other.Now && !c.ownCommand && !other.ownCommand
}

// sortByCommand sorts calls so that those that can share a command are adjacent.
func sortByCommand(calls []*Pending) {
	for rest := calls; len(rest) > 0; {
		next := 1
		for i := 1; i < len(rest); i++ {
			if rest[0].shares(rest[i]) {
				rest[next], rest[i] = rest[i], rest[next]
				next++
			}
		}
		rest = rest[next:]
	}
}

// inOrder returns the first of calls that one round trip may decide in their order. A server can leave the end of a
// command for later, if its calls may have states of more than [script.MostRead] together; then no later command has
// their keys.
func inOrder(calls []*Pending) []*Pending {
	of := map[string]bool(nil) // keys of earlier commands of which the end can be left for later
	for from, to := 0, 0; from < len(calls); from = to {
		to = from + commandSize(calls[from:])
		words := 0
		for i, c := range calls[from:to] {
			for _, key := range c.keys {
				if of[key] {
					return calls[:from+i]
				}
			}
			for i := range c.Ops {
				words += c.Ops[i].Limit.MaxWords() + 8 // a state has more than its words
			}
		}
		if to-from == 1 || 8*words <= script.MostRead {
			continue
		}
		if of == nil {
			of = map[string]bool{}
		}
		for _, c := range calls[from:to] {
			for _, key := range c.keys {
				of[key] = true
			}
		}
	}
	return calls
}

// commandSize returns how many of calls the first command decides.
func commandSize(calls []*Pending) int {
	size := 1
	for size < min(len(calls), maxBatch) && calls[0].shares(calls[size]) {
		size++
	}
	return size
}

// command is one script call: a program that decides one call, or several that share it.
type command struct {
	calls   []*Pending
	settled bool   // the server has the program: text and err are the answer
	text    string // the reply
	err     error
}

// sendBuffer is the scratch buffer of a send.
type sendBuffer struct {
	commands   []command
	keys, args []string
}

var sendBuffers = sync.Pool{New: func() any { return new(sendBuffer) }}

// send makes the server decide calls on connection l, in their order, and sets their answers. A nil connection is one
// that was lost meanwhile. It is one round trip where all goes well, and one more for replicas: neighbours that can share a
// command are one command. A command whose program the server does not have is sent once more, with the text of the program; nothing
// else is sent twice.
func (n *Node) send(ctx context.Context, l *connection, calls []*Pending) {
	if l == nil {
		for _, c := range calls {
			c.failure = remote.ErrGone
		}
		return
	}
	if slices.ContainsFunc(calls, func(c *Pending) bool { return c.confirms }) {
		l = n.confirmer(l)
		defer l.users.Add(-1)
	}
	s := sendBuffers.Get().(*sendBuffer)
	for rest := calls; len(rest) > 0; {
		size := commandSize(rest)
		s.commands, rest = append(s.commands, command{calls: rest[:size]}), rest[size:]
	}
	n.roundTrip(ctx, l.Client, s, false)
	missing := false
	for i := range s.commands {
		r := &s.commands[i]
		r.settled = wordOf(r.err) != "NOSCRIPT"
		missing = missing || !r.settled
	}
	if missing {
		n.loaded.Clear()
		n.roundTrip(ctx, l.Client, s, true)
	}
	read, counted := remote.Elapsed(), []*Pending(nil)
	for i := range s.commands {
		r := &s.commands[i]
		replies := script.ReadReply(r.text)
		if replies.At != 0 && r.calls[0].Now == 0 {
			n.clock.learn(replies.At, read)
		}
		for _, c := range r.calls {
			if c.failure = r.err; r.err == nil {
				c.reply, c.failure = replies.Next(len(c.Ops))
			}
			if c.failure == nil && c.confirms {
				counted = append(counted, c)
			}
		}
	}
	if counted = n.count(counted); len(counted) > 0 { // apart, because a server ends a WAIT up to 100 ms late, and the library gives no replies then
		err := n.wait(ctx, l, counted)
		for _, c := range counted {
			c.failure = err
		}
	}
	clear(s.commands)
	s.commands = s.commands[:0]
	sendBuffers.Put(s)
}

// count returns those of calls whose replies count and whose callers have not left, who get to know that.
func (n *Node) count(calls []*Pending) []*Pending {
	if len(calls) == 0 {
		return nil
	}
	n.confirms.mu.Lock()
	defer n.confirms.mu.Unlock()
	return slices.DeleteFunc(calls, func(c *Pending) bool {
		c.counted = !c.abandoned && c.reply.Counts(&c.Call)
		return !c.counted
	})
}

// roundTrip sends the commands that have no answer yet, and waits for their replies. The first
// command with a program brings its text, and all do with texts. The client of a caller may send each to
// another server: what one of them has says nothing of the others.
func (n *Node) roundTrip(ctx context.Context, client rueidis.Client, s *sendBuffer, texts bool) {
	if first := &s.commands[0]; len(s.commands) == 1 && !first.calls[0].asking {
		first.text, first.err = client.Do(ctx, n.build(client, s, first, texts)).ToString()
		return
	}
	built := make([]rueidis.Completed, 0, 2*len(s.commands)) // the library may keep it
	for i := range s.commands {
		r := &s.commands[i]
		if r.settled {
			continue
		}
		if r.calls[0].asking {
			built = append(built, client.B().Asking().Build())
		}
		built = append(built, n.build(client, s, r, texts))
	}
	replies := client.DoMulti(ctx, built...)
	for i := range s.commands {
		r := &s.commands[i]
		if r.settled {
			continue
		}
		if r.calls[0].asking {
			replies = replies[1:]
		}
		r.text, r.err = replies[0].ToString()
		replies = replies[1:]
	}
}

// build returns r for the client, with the text of its program if the server may not have
// that.
func (n *Node) build(client rueidis.Client, s *sendBuffer, r *command, withText bool) rueidis.Completed {
	s.keys, s.args = s.keys[:0], s.args[:0]
	for _, c := range r.calls {
		s.keys, s.args = append(s.keys, c.keys...), append(s.args, c.args)
	}
	program, args := r.calls[0].program, s.args
	if len(r.calls) > 1 {
		program, args = program.Batch, script.BatchArgs(s.args, s.keys)
	}
	if !n.clustered {
		_, has := n.loaded.LoadOrStore(program, true)
		withText = withText || !has
	}
	if withText {
		return client.B().Eval().Script(program.Text).Numkeys(int64(len(s.keys))).Key(s.keys...).Arg(args...).Build()
	}
	return client.B().Evalsha().Sha1(program.SHA).Numkeys(int64(len(s.keys))).Key(s.keys...).Arg(args...).Build()
}

// wait waits until replicas have confirmed all that calls have written on connection l. The answer has to be here before
// the latest deadline of the calls, and within the usual time-out. The library makes a connection for each command that
// it knows to block, in the caller's time, so it does not get to know.
func (n *Node) wait(ctx context.Context, l *connection, calls []*Pending) error {
	var latest time.Duration
	for _, c := range calls {
		latest = max(latest, c.deadline)
	}
	within := n.config.Timeout
	if left := (latest - remote.Elapsed()) * 3 / 4; latest != 0 && (within == 0 || left < within) {
		within = left
	}
	ms := max(1, within.Milliseconds())
	wait := l.B().Arbitrary("WAIT").Args(strconv.Itoa(n.config.WaitReplicas), strconv.FormatInt(ms, 10)).Build()
	switch confirmed, err := l.Do(ctx, wait).AsInt64(); {
	case err != nil:
		return unconfirmed(err)
	case l.lost.Load(): // a new connection has written nothing that a replica would lack
		return unconfirmed(remote.ErrGone)
	case confirmed < int64(n.config.WaitReplicas):
		return errReplicas
	}
	return nil
}

func unconfirmed(err error) error { return fmt.Errorf("%w: %w", errReplicas, err) }

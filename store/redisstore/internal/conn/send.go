package conn

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/window"
)

type reply = script.Reply

// maxBatchKeys is the most keys of a call that shares a command with others.
const maxBatchKeys = 24

// Call is a step that a node decides. The goroutine that it belongs to fills it in, and
// reads the results when it has been decided.
type Call struct {
	Step script.Step
	Slot int            // on a cluster
	At   window.Instant // the server's, set when the step was decided
	Err  error          // nil when the step was decided

	alone bool // some keys of its slot have moved

	// What the answers so far have asked for.
	again script.Times // calendar periods, or the program for holds and bans
	off   int          // how often
	stale int          // how often it came too late

	call
}

// call is what is sent for a Call. It stays as it is when the caller leaves a flush.
type call struct {
	program *script.Program
	keys    []string
	room    [4]string // for keys
	args    string
	now     window.Instant // replaces the server's, in tests
	slot    int
	ops     int
	asking  bool // ASKING goes before it: its slot is on its way to the node
	single  bool // it is sent by itself, and shares no command
	counts  bool

	// Of the batcher.
	ctx       context.Context
	began     time.Duration
	deadline  time.Duration // 0: none
	done      chan answer   // has room for one; nil: the batcher does not send it
	self      [1]*call      // itself, as a batch
	at        int           // the index in batcher.live, or -1; guarded by its mu
	abandoned bool          // the batcher may still have it
}

// shares reports whether a command can decide c and other, which stands behind it.
func (c *call) shares(other *call) bool {
	return c.program == other.program && c.program.Batch != nil && c.slot == other.slot && c.now == other.now && !c.single && !other.single
}

// command is one script call: a program that decides one call, or several that share it.
type command struct {
	calls []*call
	text  string // the reply
	err   error

	unconfirmed error // of the calls that count
}

// program returns the program that decides r: one for several calls has another form.
func (r *command) program() *script.Program {
	if len(r.calls) > 1 {
		return r.calls[0].program.Batch
	}
	return r.calls[0].program
}

// sending is the scratch buffer of a send.
type sending struct {
	commands   []command
	left       []*command
	keys, args []string
}

var sendings = sync.Pool{New: func() any { return new(sending) }}

// send has the server behind client decide calls, in their order, and writes their
// answers. It is one round trip where all goes well: neighbours that can share a command are
// one command. The first command with a program that the server may not have brings its text. A
// command whose program the server does not have all the same is sent once more, with the text;
// nothing else is sent twice.
func (n *Node) send(ctx context.Context, client rueidis.Client, calls []*call, answers []answer) {
	s := sendings.Get().(*sending)
	defer s.release()
	for rest := calls; len(rest) > 0; {
		size := 1
		for size < min(len(rest), maxBatch) && rest[0].shares(rest[size]) {
			size++
		}
		s.commands, rest = append(s.commands, command{calls: rest[:size]}), rest[size:]
	}
	for i := range s.commands {
		s.left = append(s.left, &s.commands[i])
	}
	for again := range 2 {
		n.roundTrip(ctx, client, s, again > 0)
		s.left = slices.DeleteFunc(s.left, func(r *command) bool { return !n.unloaded(r) })
		if len(s.left) == 0 {
			break
		}
	}
	read := elapsed()
	for i := range s.commands {
		r := &s.commands[i]
		replies := script.RepliesIn(r.text)
		n.learnAt(replies.Now(), r.calls[0].now, read)
		for _, c := range r.calls {
			a := answer{reply: reply{Text: r.text}, err: r.err}
			if r.err == nil && len(r.calls) > 1 {
				a.reply, a.err = replies.Next(c.ops)
			}
			if a.err == nil && c.counts {
				a.err = r.unconfirmed
			}
			answers[0], answers = a, answers[1:]
		}
	}
}

func (s *sending) release() {
	clear(s.commands)
	clear(s.left)
	s.commands, s.left = s.commands[:0], s.left[:0]
	sendings.Put(s)
}

// sendOne sends c by itself.
func (n *Node) sendOne(ctx context.Context, client rueidis.Client, c *call) answer {
	var answers [1]answer
	n.send(ctx, client, c.self[:], answers[:])
	return answers[0]
}

// sendSolo sends c by itself: on the connection for that if it is free.
func (n *Node) sendSolo(ctx context.Context, client rueidis.Client, c *call) answer {
	own := n.takeSolo(client, c)
	if own == nil {
		return n.sendOne(ctx, client, c)
	}
	defer n.soloBusy.Store(false)
	// The library looks at the deadline of ctx alone there.
	caller, stop := callerOf(ctx), func() bool { return true }
	if caller.Done() != nil {
		stop = context.AfterFunc(caller, func() { _ = own.conn.Close() })
	}
	a := n.sendOne(ctx, own.Client, c)
	if aborted := !stop(); aborted && a.err != nil {
		a.err = caller.Err()
	} else if errors.Is(a.err, context.DeadlineExceeded) {
		<-ctx.Done() // it may end a moment after its deadline, and tells whose time is over
	}
	return a
}

// sendBatch sends calls of different callers. Those that can share a command are put beside
// each other.
func (n *Node) sendBatch(ctx context.Context, calls []*call, answers []answer) {
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
	l := n.client()
	if l == nil {
		for i := range answers {
			answers[i] = answer{err: errGone}
		}
		return
	}
	n.send(ctx, l.Client, calls, answers)
}

// roundTrip sends the commands that are left, and waits for their replies. Those that count are
// followed by one WAIT, if replicas have to confirm.
func (n *Node) roundTrip(ctx context.Context, client rueidis.Client, s *sending, again bool) {
	replicas, latest := 0, time.Duration(0)
	for _, r := range s.left {
		for _, c := range r.calls {
			if latest = max(latest, c.deadline); c.counts {
				replicas = n.config.WaitReplicas
			}
		}
	}
	first := s.left[0]
	if len(s.left) == 1 && replicas == 0 && !first.calls[0].asking {
		first.text, first.err = client.Do(ctx, s.command(client, first, n.brings(s.left, 0, again))).ToString()
		return
	}
	if replicas > 0 {
		client = n.confirmer(client)
	}
	commands := make([]rueidis.Completed, 0, 2*len(s.left)+1) // the library may keep it
	for i, r := range s.left {
		if r.calls[0].asking {
			commands = append(commands, client.B().Asking().Build())
		}
		commands = append(commands, s.command(client, r, n.brings(s.left, i, again)))
	}
	if replicas > 0 {
		commands = append(commands, n.wait(client, latest))
	}
	replies := client.DoMulti(ctx, commands...)
	var unconfirmed error
	if replicas > 0 {
		confirmed, err := replies[len(replies)-1].AsInt64()
		if unconfirmed = err; err == nil && confirmed < int64(replicas) {
			unconfirmed = errReplicas
		}
	}
	for _, r := range s.left {
		if r.calls[0].asking {
			replies = replies[1:]
		}
		r.text, r.err = replies[0].ToString()
		r.unconfirmed, replies = unconfirmed, replies[1:]
	}
}

// unloaded reports whether the server does not have the program of r, which was sent.
func (n *Node) unloaded(r *command) bool {
	if noScript(r.err) {
		n.loaded.Clear()
		return true
	}
	if r.err == nil {
		n.loaded.LoadOrStore(r.program(), true)
	}
	return false
}

// brings reports whether a command has the text of its program: the server may not have the
// program, and no command before it brings the text. The client of a caller may send each to
// another server: what one of them has says nothing of the others.
func (n *Node) brings(commands []*command, at int, again bool) bool {
	p := commands[at].program()
	if _, has := n.loaded.Load(p); !again && (has || n.apart) {
		return false
	}
	return n.apart || !slices.ContainsFunc(commands[:at], func(r *command) bool { return r.program() == p })
}

// command returns r for the client.
func (s *sending) command(client rueidis.Client, r *command, withText bool) rueidis.Completed {
	if len(r.calls) == 1 {
		c := r.calls[0]
		s.args = append(s.args[:0], c.args)
		return evaluate(client, c.program, c.keys, s.args, withText)
	}
	s.keys, s.args = s.keys[:0], s.args[:0]
	for _, c := range r.calls {
		s.keys, s.args = append(s.keys, c.keys...), append(s.args, c.args)
	}
	return evaluate(client, r.program(), s.keys, script.BatchArgs(s.args, s.keys), withText)
}

// evaluate returns the command that runs a program: by its hash, or with its text.
func evaluate(client rueidis.Client, p *script.Program, keys, args []string, withText bool) rueidis.Completed {
	if withText {
		return client.B().Eval().Script(p.Text).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
	}
	return client.B().Evalsha().Sha1(p.SHA).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
}

// noScript reports whether a server does not have the text of a program.
func noScript(err error) bool {
	text, _ := said(err)
	return firstWord(text) == "NOSCRIPT"
}

// wait returns the command that waits for replicas to confirm all that was written before
// it on the connection; its answer has to be here before the latest deadline of the calls. The
// library makes a connection for each command that it knows to block, in the caller's time, so
// it does not get to know.
func (n *Node) wait(client rueidis.Client, latest time.Duration) rueidis.Completed {
	within := n.config.Timeout
	if latest != 0 {
		within = (latest - elapsed()) * 3 / 4
	}
	ms := max(1, within.Milliseconds())
	return client.B().Arbitrary("WAIT").Args(strconv.Itoa(n.config.WaitReplicas), strconv.FormatInt(ms, 10)).Build()
}

// prepare sets what is sent for c, with a deadline on the server's clock.
func (n *Node) prepare(c *Call, aimed script.Times) error {
	if c.again.Near != 0 {
		aimed.Near = c.again.Near
	}
	aimed.Nears, aimed.Around = c.again.Nears, c.again.Around
	c.slot, c.ops, c.now, c.counts = c.Slot, len(c.Step.Which), aimed.Now, c.Step.Verb != store.Check
	if n.config.Mode != Cluster {
		c.slot = 0
	}
	var err error
	c.program, c.keys, c.args, err = n.codec.Command(&c.Step, aimed, c.room[:0])
	c.single = c.alone || c.asking || n.apart || len(c.keys) > maxBatchKeys
	return err
}

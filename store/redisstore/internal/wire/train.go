package wire

import (
	"context"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store/redisstore/internal/script"
)

// train is steps that travel together, in as many runs as they have places. One
// goroutine sends one train after the other. It keeps what they need.
type train struct {
	steps      []*traveller
	runs       []run
	keys, args []string // of all runs

	began  time.Duration
	ctx    context.Context // ends with the last of the callers
	cancel context.CancelFunc
	direct *direct // nil when the train goes on the link
	sent   bool    // the server may have got a command on the direct
	err    error   // of the direct until the train is back, then of the first run
	busy   bool    // the callers of the train before had much work of their own

	left   []*run // those without a reply
	landed []bool // of each step: it gets an answer

	// Of a train that is back.
	unloading sync.Mutex
	loaded    bool // guarded by unloading: it has answers to hand out
	node      *Node
	company   *company
	ended     time.Duration
	soon      *time.Timer // guarded by unloading; calls unload
	turn      chan struct{}
	pauses    bool // guarded by unloading: a caller sends to turn
}

// run is the steps of one place. They are decided by one command. A program without a
// form for runs decides each step by a command of its own.
type run struct {
	program    *script.Program
	steps      []*traveller
	keys, args []string
	text       string
	err        error
}

// couple puts the steps of one place beside each other, and makes their runs.
func (t *train) couple() {
	clear(t.runs)
	t.runs, t.keys, t.args = t.runs[:0], t.keys[:0], t.args[:0]
	for rest := t.steps; len(rest) > 0; {
		n := 1
		for i := 1; i < len(rest) && rest[0].program.Run != nil; i++ {
			if rest[i].place == rest[0].place {
				rest[n], rest[i] = rest[i], rest[n]
				n++
			}
		}
		keys, args := len(t.keys), len(t.args)
		for _, s := range rest[:n] {
			t.keys, t.args = append(t.keys, s.keys...), append(t.args, s.args)
		}
		r := run{program: rest[0].program, steps: rest[:n], keys: t.keys[keys:], args: t.args[args:]}
		if n > 1 {
			r.program, r.args = r.program.Run, script.Run(r.args, r.keys)
		}
		t.runs, rest = append(t.runs, r), rest[n:]
	}
}

// depart makes the runs of a train, and sends them: on a direct when one is free. A
// train that goes on the link is sent by arrive.
func (n *Node) depart(co *company, t *train) {
	t.began, t.sent, t.err = elapsed(), false, nil
	t.ctx, t.cancel = co.latest(t.steps)
	t.couple()
	if t.direct = n.take(t.steps[0].client, len(t.steps)); t.direct != nil {
		t.sent, t.err = t.direct.send(t.ctx, t.runs)
	}
}

// arrive waits for the replies to a train. It sends those runs with the link that the
// server has not got, or whose programs it does not have.
func (n *Node) arrive(t *train) {
	defer t.cancel()
	if t.direct != nil {
		if t.err == nil && !t.busy && len(t.steps) >= few {
			t.direct.watch()
		}
		t.sent = t.direct.receive(t.ctx, t.runs, t.sent, t.err)
	}
	client := t.steps[0].client
	t.left = t.left[:0]
	if !t.sent {
		for i := range t.runs {
			t.left = append(t.left, &t.runs[i])
		}
		t.evalAll(t.ctx, client, bySHA)
	}
	t.left = t.left[:0]
	for i := range t.runs {
		if noScript(t.runs[i].err) {
			t.left = append(t.left, &t.runs[i])
		}
	}
	if len(t.left) > 0 {
		t.evalAll(t.ctx, client, byText)
	}
	t.err = t.runs[0].err
}

// evalAll runs the programs of those runs that are left with c.
func (t *train) evalAll(ctx context.Context, c rueidis.Client, command func(rueidis.Client, *script.Program, []string, []string) rueidis.Completed) {
	commands := make([]rueidis.Completed, len(t.left)) // the client may keep it
	for i, r := range t.left {
		commands[i] = command(c, r.program, r.keys, r.args)
	}
	for i, reply := range c.DoMulti(ctx, commands...) {
		t.left[i].text, t.left[i].err = reply.ToString()
	}
}

// send writes the programs of runs. It reports whether the server may have got one of
// the commands. It needs take; receive ends the use.
func (d *direct) send(ctx context.Context, runs []run) (bool, error) {
	d.out = d.out[:0]
	for i := range runs {
		d.out = appendEvalsha(d.out, runs[i].program, runs[i].keys, runs[i].args)
	}
	return d.post(ctx, len(runs))
}

// receive waits for the replies to runs that send has sent, with its results. It
// returns false when the server has got none of the commands.
func (d *direct) receive(ctx context.Context, runs []run, sent bool, err error) bool {
	if err == nil {
		sent, err = true, d.await(ctx)
	}
	for i := range runs {
		if r := &runs[i]; i < len(d.ends) {
			r.text, r.err = d.reply(i)
		} else {
			r.err = err
		}
	}
	d.leave(ctx)
	return sent
}

// back notes that the replies to a train were read at ended. unload hands them out.
func (t *train) back(n *Node, co *company, ended time.Duration) {
	t.unloading.Lock()
	defer t.unloading.Unlock()
	t.loaded, t.node, t.company, t.ended = true, n, co, ended
}

// unloadSoon calls unload after unloadWithin, in another goroutine. A call that is late
// may be for the train that takes the place of this one: it is back then, too.
func (t *train) unloadSoon() {
	t.unloading.Lock()
	defer t.unloading.Unlock()
	if t.soon == nil {
		t.soon = time.AfterFunc(unloadWithin, t.unload)
	} else {
		t.soon.Reset(unloadWithin)
	}
}

// unload hands the replies out, unless that has been done. It waits for a call that does
// so.
func (t *train) unload() {
	t.unloading.Lock()
	defer t.unloading.Unlock()
	if !t.loaded {
		return
	}
	t.loaded = false
	if t.soon != nil {
		t.soon.Stop()
	}
	t.landed = t.company.land(t.landed[:0], t.steps)
	landed, last := t.landed, t.lastTurn()
	for i := range t.runs {
		r := &t.runs[i]
		replies := script.RepliesIn(r.text)
		t.node.learnAt(replies.Now(), r.steps[0].step.Times, t.ended)
		for _, s := range r.steps {
			own := answer{reply: script.Reply{Text: r.text}, err: r.err}
			if r.err == nil && len(r.steps) > 1 {
				own.reply, own.err = replies.Next(len(s.step.Which))
			}
			if last == 0 {
				own.turn, t.pauses = t.turn, true
			}
			if landed[0] {
				s.back <- own
			}
			landed, last = landed[1:], last-1
		}
	}
}

// lastTurn returns the index of the step whose caller runs last when the callers of
// landed are woken in their order, or -1: the runtime puts the goroutine that was woken
// last before all others.
func (t *train) lastTurn() int {
	if t.turn == nil {
		t.turn = make(chan struct{}, 1)
	}
	last, before := -1, -1
	for i, landed := range t.landed {
		if landed {
			last, before = i, last
		}
	}
	if before >= 0 {
		return before
	}
	return last
}

// pause lets the callers that unload has woken run: they may have another step for the
// next train. [runtime.Gosched] would not do so where a processor is idle: that one goes
// on with this goroutine at once.
func (t *train) pause() {
	t.unloading.Lock()
	pauses := t.pauses
	t.pauses = false
	t.unloading.Unlock()
	if pauses {
		<-t.turn
	}
}

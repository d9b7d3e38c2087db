package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/script"
)

// Job is a step of a batch.
type Job struct {
	Step script.Step // all jobs of a batch have the same Times
	Slot int
	Err  error // set by RunAll; nil when the step was decided

	asking  bool // its slot is on its way to the node
	alone   bool // and not in a run: some keys of its slot have moved
	keys    []string
	program *script.Program
	near    script.Times // calendar periods that an answer has asked for
	off     int          // how often one did
	stale   int          // how often it came too late
	text    text
}

// text is whether a job brings the text of its program, which the node may not
// have.
type text uint8

const (
	textNever text = iota
	textFirst      // if no job before it brings the text
	textAlways
	textTried // it did
)

// runAll has the node decide jobs, and writes their errors. spread is for a
// client that may send each of them to another server.
func (n *Node) runAll(ctx context.Context, jobs []*Job, spread bool) {
	c, began, err := n.enter(len(jobs))
	if err != nil {
		for _, j := range jobs {
			j.Err = n.missed(err)
		}
		return
	}
	n.decideAll(ctx, c, jobs, spread)
	answered := false
	for _, j := range jobs {
		answered = answered || answers(j.Err)
		if j.Err != nil && !errors.Is(j.Err, store.ErrRepeated) {
			j.Err = n.missed(j.Err)
		}
	}
	n.exit(ctx, len(jobs), began, answered)
}

// decideAll sends jobs, and those again that the server has not counted for a
// reason which is gone now: see decide.
func (n *Node) decideAll(ctx context.Context, c rueidis.Client, jobs []*Job, spread bool) {
	pending := make([]*Job, 0, len(jobs))
	for _, j := range jobs {
		if j.keys, j.Err = n.codec.Keys(&j.Step); j.Err == nil {
			pending = append(pending, j)
		}
	}
	for len(pending) > 0 {
		again := 0
		for i, reply := range n.send(ctx, c, pending, spread) {
			j := pending[i]
			if n.receive(ctx, j, reply) {
				pending[again] = j
				again++
			}
		}
		pending = pending[:again]
	}
}

// send sends jobs in one round trip, and returns their replies. Neighbours with
// the same program are decided in one run.
func (n *Node) send(ctx context.Context, c rueidis.Client, jobs []*Job, spread bool) []answer {
	aimed, err := n.aim(ctx, c, jobs[0].Step.Times, elapsed())
	if err != nil {
		return repeat(answer{err: err}, len(jobs))
	}
	args := make([]string, len(jobs))
	for i, j := range jobs {
		times := aimed
		if j.near.Near != 0 {
			times.Near = j.near.Near
		}
		times.Nears = j.near.Nears
		times.Around = j.near.Around
		j.program, args[i] = n.codec.Encode(&j.Step, times)
	}
	commands := make([]rueidis.Completed, 0, len(jobs)+1)
	var sent []*script.Program // with their text
	var sizes []int            // of the runs
	counts := false
	for i := 0; i < len(jobs); i += sizes[len(sizes)-1] {
		j, size, keys := jobs[i], 1, jobs[i].keys
		if !spread {
			size = n.runOf(jobs[i:])
		}
		with := args[i : i+size]
		if size > 1 {
			keys = nil
			for _, j := range jobs[i : i+size] {
				j.program = j.program.Run
				keys = append(keys, j.keys...)
			}
			with = script.Run(with, keys)
		}
		sizes = append(sizes, size)
		if j.asking {
			commands = append(commands, c.B().Asking().Build())
		}
		if n.withText(j, sent, spread) {
			sent = append(sent, j.program)
			commands = append(commands, byText(c, j.program, keys, with))
		} else {
			commands = append(commands, bySHA(c, j.program, keys, with))
		}
		for _, j := range jobs[i : i+size] {
			counts = counts || j.Step.Verb != store.Check
		}
	}
	waits := counts && n.config.WaitReplicas > 0
	if waits {
		c = n.confirmer(c)
		commands = append(commands, wait(c, n.config.WaitReplicas, patience(ctx, n.config.Timeout)))
	}
	replies := c.DoMulti(ctx, commands...)
	var unconfirmed error
	if waits {
		last := len(replies) - 1
		unconfirmed = confirmed(replies[last], n.config.WaitReplicas)
		replies = replies[:last]
	}
	return own(jobs, sizes, replies, unconfirmed)
}

// runOf returns how many of the first jobs are decided in one run.
func (n *Node) runOf(jobs []*Job) int {
	first := jobs[0]
	together := func(j *Job) bool {
		return !j.asking && !j.alone && len(j.keys) <= maxRunKeys && j.program == first.program && j.text == first.text &&
			(j.Slot == first.Slot || n.config.Mode != Cluster)
	}
	if first.program.Run == nil || !together(first) {
		return 1
	}
	size := 1
	for size < min(len(jobs), maxTrain) && together(jobs[size]) {
		size++
	}
	return size
}

// withText reports whether j has to bring the text of its program: the first job
// with a program that the node may not have brings it for all jobs behind it. A
// job without the text that meets a node without the program is sent again, and
// out of its order.
func (n *Node) withText(j *Job, sent []*script.Program, spread bool) bool {
	missing := j.text == textFirst || !spread && !n.loaded[j.program.Number].Load()
	if j.text == textAlways || missing && (spread || !slices.Contains(sent, j.program)) {
		if j.text != textNever {
			j.text = textTried
		}
		return true
	}
	return false
}

// own returns the replies to jobs, which went in runs of these sizes, among the
// replies to ASKING. Those that have counted get the error unconfirmed, if there
// is one.
func own(jobs []*Job, sizes []int, replies []rueidis.RedisResult, unconfirmed error) []answer {
	all := make([]answer, 0, len(jobs))
	at := 0
	for _, size := range sizes {
		if jobs[len(all)].asking {
			at++
		}
		text, err := replies[at].ToString()
		at++
		run := script.RepliesIn(text)
		for range size {
			j, a := jobs[len(all)], answer{reply: script.Reply{Text: text}, err: err}
			if err == nil && size > 1 {
				a.reply, a.err = run.Next(len(j.Step.Which))
			}
			if a.err == nil && unconfirmed != nil && j.Step.Verb != store.Check {
				a = answer{err: unconfirmed}
			}
			all = append(all, a)
		}
	}
	return all
}

func repeat(a answer, n int) []answer {
	all := make([]answer, n)
	for i := range all {
		all[i] = a
	}
	return all
}

// receive writes the results or the error in a reply to j, and reports whether j
// has to be sent again.
func (n *Node) receive(ctx context.Context, j *Job, reply answer) (again bool) {
	if err := reply.err; err != nil {
		j.Err = fmt.Errorf("%s: %w", script.Among(j.keys), err)
		if noScript(err) && j.text < textAlways {
			for i := range n.loaded {
				n.loaded[i].Store(false)
			}
			j.text++
			return true
		}
		return false
	}
	if loaded := &n.loaded[j.program.Number]; !loaded.Load() {
		loaded.Store(true)
	}
	at, err := n.codec.Decode(&j.Step, j.keys, reply.reply)
	n.learn(at, j.Step.Times)
	j.Err = err
	if err != nil {
		j.near, again = j.near.Again(err, at, j.off, len(j.Step.Which))
	}
	switch {
	case errors.Is(err, script.ErrStale) && j.stale < maxStale && ctx.Err() == nil:
		j.stale++
		return true
	case again:
		j.off++
		return true
	}
	return false
}

// RunAll implements [Servers]: each node decides its jobs, all nodes at the same
// time. Jobs that a node sends on are sent again.
func (c *cluster) RunAll(ctx context.Context, jobs []Job) {
	pending := make([]*Job, len(jobs))
	to := make([]*Node, len(jobs))
	for i := range jobs {
		pending[i], to[i] = &jobs[i], c.slots[jobs[i].Slot].Load()
	}
	for sent := 0; len(pending) > 0; sent++ {
		c.runOnNodes(ctx, pending, to)
		again, wait := 0, false
		for i, j := range pending {
			n, later := c.next(ctx, j, to[i])
			if n == nil || sent == maxRedirects || later && ctx.Err() != nil {
				continue
			}
			pending[again], to[again] = j, n
			again++
			wait = wait || later
		}
		pending, to = pending[:again], to[:again]
		if wait {
			select {
			case <-time.After(time.Millisecond << sent):
			case <-ctx.Done():
				return
			}
		}
	}
}

// runOnNodes has each job decided by its node.
func (c *cluster) runOnNodes(ctx context.Context, jobs []*Job, to []*Node) {
	var nodes []*Node
	var parts [][]*Job
	for i, j := range jobs {
		at := slices.Index(nodes, to[i])
		switch {
		case to[i] == nil:
			j.Err = errNoNode
			continue
		case at < 0:
			at = len(nodes)
			nodes, parts = append(nodes, to[i]), append(parts, nil)
		}
		parts[at] = append(parts[at], j)
	}
	var others sync.WaitGroup
	for i, n := range nodes {
		if i > 0 {
			others.Go(func() { n.runAll(ctx, parts[i], false) })
		}
	}
	if len(nodes) > 0 {
		nodes[0].runAll(ctx, parts[0], false)
	}
	others.Wait()
}

// next returns the node that n sends j on to, or nil when j is done; later when
// j should not be sent at once.
func (c *cluster) next(ctx context.Context, j *Job, n *Node) (_ *Node, later bool) {
	if j.Err == nil || errors.Is(j.Err, store.ErrRepeated) {
		return nil, false
	}
	c.ask()
	text, answered := said(j.Err)
	if n == nil || !answered {
		return nil, false
	}
	j.text = textNever
	switch verb, addr := redirect(text, n.addr); verb {
	case "MOVED":
		j.asking = false
		return c.moved(ctx, j.Slot, addr), false
	case "ASK":
		j.asking = true
		return c.asking(ctx, addr), false
	case "TRYAGAIN":
		j.alone = true
		return n, true
	}
	return nil, false
}

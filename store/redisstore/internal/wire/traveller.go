package wire

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/window"
)

// place is what the steps of a run have in common.
type place struct {
	slot    int // on a cluster; elsewhere 0
	program *script.Program
	now     window.Instant
}

// traveller is a step, which may wait for its train. The goroutine that it belongs to
// fills it in and reads the answer.
type traveller struct {
	step   script.Step
	room   [4]string // for keys
	keys   []string
	args   string
	ctx    context.Context
	client rueidis.Client
	place

	back chan answer // has room for one
	left bool        // the caller has left it to its train

	end     *decision // ends the step, or nil
	watched bool      // the caller can be cancelled
	at      int       // its index in company.live, or -1; guarded by the company's mu
}

// answer is the reply to a step.
type answer struct {
	reply script.Reply
	err   error
	stays bool // the traveller may be in a line or a train yet

	// turn, if it is not nil, gets one from the caller, which is the last of those that
	// have their answers: see [train.pause].
	turn chan<- struct{}
}

// traveller returns a traveller to use until forget.
func (n *Node) traveller() *traveller {
	if t, ok := n.travels.Get().(*traveller); ok {
		return t
	}
	return &traveller{back: make(chan answer, 1), at: -1}
}

// forget keeps t for another step, unless a train may still have it.
func (n *Node) forget(t *traveller) {
	if t.left {
		return
	}
	*t = traveller{back: t.back, at: -1}
	n.travels.Put(t)
}

// ask sends a step, together with others where callers wait for each other, and
// returns the reply to it.
func (n *Node) ask(ctx context.Context, c rueidis.Client, t *traveller) (script.Reply, error) {
	d, detours := c.(detour)
	if d.asking || n.apart || len(t.keys) > maxRunKeys {
		return n.eval(ctx, c, 1, t.program, t.keys, t.args)
	}
	t.ctx, t.client, t.now = ctx, c, t.step.Times.Now
	co := &n.company
	if detours {
		co = &n.confirms
	}
	var gone <-chan struct{}
	t.end, gone, t.watched = ends(ctx)
	if !co.join(t) {
		began := elapsed()
		reply, err := n.eval(ctx, c, 1, t.program, t.keys, t.args)
		n.back(co, began, err)
		return reply, err
	}
	var a answer
	if gone == nil {
		a = <-t.back
	} else {
		select {
		case a = <-t.back:
		case <-gone:
			if !co.abandon(t) {
				a = <-t.back // it is on its way
				break
			}
			t.left = true
			return script.Reply{}, ctx.Err()
		}
	}
	t.left = a.stays
	if a.turn != nil {
		a.turn <- struct{}{}
	}
	if a.err != nil && again(a.err) {
		return n.eval(ctx, c, 1, t.program, t.keys, t.args)
	}
	return a.reply, a.err
}

// again reports whether a step whose run ended with err should be sent alone. A
// slot that is on its way has only some keys of the run.
func again(err error) bool {
	text, _ := said(err)
	return firstWord(text) == "TRYAGAIN"
}

package wire

import (
	"context"
	"time"
)

// carry sends a train, hands the replies out, and goes on with the next one until
// there is none.
func (n *Node) carry(co *company, steps []*traveller) {
	t, next := &train{steps: steps}, &train{}
	n.depart(co, t)
	for {
		n.arrive(t)
		t.back(n, co, elapsed())
		early := co.crowded(len(t.steps))
		if !early {
			t.unload()
			t.pause()
		}
		next.steps = co.next(t.began, t.ended, t.err, next.steps[:0])
		if len(next.steps) > 0 {
			if early {
				t.unloadSoon() // the write may block
			}
			n.depart(co, next)
		}
		t.unload()
		t.pause()
		next.busy = elapsed()-t.ended > time.Duration(len(t.steps))*ownWork
		clear(t.steps)
		co.carriers.Done()
		if len(next.steps) == 0 {
			return
		}
		t, next = next, t
	}
}

// crowded reports whether as many callers stand in line as a train has that is back with
// so many steps. They leave before those of the train have their answers: the server
// decides their steps while this machine hands the answers out. Fewer callers wait for
// those, because smaller trains cost more for each step.
func (co *company) crowded(steps int) bool {
	co.mu.Lock()
	defer co.mu.Unlock()
	return len(co.waiting) >= max(few, steps)
}

// latest returns a context that ends with the last of the callers.
func (co *company) latest(steps []*traveller) (context.Context, context.CancelFunc) {
	var end time.Time
	var last context.Context
	for _, t := range steps {
		deadline, ok := t.ctx.Deadline()
		switch {
		case ok:
		case co.life != nil:
			return co.life, nothing
		default:
			return context.Background(), nothing
		}
		if deadline.After(end) {
			end, last = deadline, t.ctx
		}
	}
	if shared := sharedEnd(last); shared != nil {
		return shared, nothing
	}
	return context.WithDeadline(context.Background(), end)
}

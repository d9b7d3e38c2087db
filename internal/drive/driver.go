package drive

import (
	"context"

	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/internal/report"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Driver drives tasks. Its fields are set once, before its first use; it is
// safe for concurrent use then.
type Driver struct {
	Store store.Store

	// Timed is Store, if it bounds the time of a decision, and nil otherwise.
	Timed hook.Timed

	// Local decides in an outage for ops whose policy is local. Nil: they deny.
	Local Fallback

	// Told, when not nil, is called with the cause of each outage that a
	// decision met.
	Told func(ctx context.Context, verb store.Verb, err error)
}

// Fallback is a [Local]. It is an interface so that programs without a local store do
// not link what only a local store needs.
type Fallback interface {
	// share returns the part of limit that this process may admit.
	share(limit *window.Compiled) *window.Compiled
	// ask answers the local ops of t, from the one numbered from on.
	ask(ctx context.Context, t *Task, from int) error
	// end ends a task that met an outage.
	end(ctx context.Context, t *Task)
	// giveBack takes back what the local ops that pick picks have counted.
	giveBack(ctx context.Context, t *Task, pick func(*store.Op) bool)
	// endHere ends or renews the holds of t in local memory, if it was decided there.
	endHere(ctx context.Context, t *Task)

	read(ctx context.Context, op *store.Op) (window.Reading, error)
	// forget drops what is kept for the key of op, in the far store, too.
	forget(ctx context.Context, op *store.Op, far store.Store) error

	// answered is called when the store has answered.
	answered()
	// renew drops what was computed for limits.
	renew()
	stats() report.Stats
	close()
}

// Renew drops what d has computed for limits. The caller calls it when it
// replaces them.
func (d *Driver) Renew() {
	if d.Local != nil {
		d.Local.renew()
	}
}

// Reports returns the numbers of what local memory counted and reports.
func (d *Driver) Reports() (s report.Stats) {
	if d.Local != nil {
		s = d.Local.stats()
	}
	return s
}

// Close ends the reports. It does not close the stores.
func (d *Driver) Close() {
	if d.Local != nil {
		d.Local.close()
	}
}

func (d *Driver) tell(ctx context.Context, verb store.Verb, err error) {
	if d.Told != nil {
		d.Told(ctx, verb, err)
	}
}

// answered notes that the store has answered.
func (d *Driver) answered() {
	if d.Local != nil {
		d.Local.answered()
	}
}

// end ends a task.
func (d *Driver) end(ctx context.Context, t *Task) {
	if t.Outage != nil && t.Err == nil && d.Local != nil {
		d.Local.end(ctx, t)
	}
	t.foundHere()
}

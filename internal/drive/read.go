package drive

import (
	"context"
	"errors"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Read returns the numbers of op's key. When the store cannot answer and there
// is a local store, it returns those of local memory for an op whose policy is
// local, and degraded is true.
func (d *Driver) Read(ctx context.Context, op *store.Op, policy rule.Outage) (r window.Reading, degraded bool, err error) {
	r, err = d.Store.Read(ctx, op)
	if err == nil || d.Local == nil || policy != rule.OutageLocal {
		return r, false, err
	}
	if _, ok := errors.AsType[*store.OutageError](err); !ok {
		return r, false, err
	}
	d.tell(ctx, store.Check, err)
	r, err = d.Local.read(ctx, op)
	return r, true, err
}

// Forget drops what is kept for op's key, in the store and in local memory.
func (d *Driver) Forget(ctx context.Context, op *store.Op) error {
	if d.Local == nil {
		return d.Store.Forget(ctx, op)
	}
	return d.Local.forget(ctx, op, d.Store)
}

func (l *Local) read(ctx context.Context, op *store.Op) (window.Reading, error) {
	here := *op
	here.Limit = l.share(op.Limit)
	return l.Store.Read(ctx, &here)
}

func (l *Local) forget(ctx context.Context, op *store.Op, far store.Store) error {
	l.Reports.Forget(op)
	return errors.Join(far.Forget(ctx, op), l.Store.Forget(ctx, op))
}

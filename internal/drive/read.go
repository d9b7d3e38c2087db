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
	var out *store.OutageError
	if err == nil || !errors.As(err, &out) || d.Local == nil || policy != rule.OutageLocal {
		return r, false, err
	}
	d.tell(ctx, store.Check, err)
	here := *op
	here.Limit = d.share(op.Limit)
	r, err = d.Local.Read(ctx, &here)
	return r, true, err
}

// Forget drops what is kept for op's key, in the store and in local memory.
func (d *Driver) Forget(ctx context.Context, op *store.Op) error {
	d.Reports.Forget(op)
	err := d.Store.Forget(ctx, op)
	if d.Local != nil {
		err = errors.Join(err, d.Local.Forget(ctx, op))
	}
	return err
}

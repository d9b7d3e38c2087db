package replay

import (
	"context"
	"errors"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
)

// behindStore is a store in memory that answers for limits behind a verdict with
// `rest: count` as they would have decided. Such a limit counts a take whatever its quota says,
// and its answer is that the take was counted; a report states whether it was within the limit.
type behindStore struct {
	*memstore.Store
	asked []store.Op   // copies of the ops that are asked first
	at    []*store.Op  // the ops
	call  []store.Call // asks them
}

// countsRest reports whether some limit can stand behind a verdict.
func countsRest(rules *rule.Set) bool {
	for i := range rules.Len() {
		if rules.Rule(i).CountRest {
			return true
		}
	}
	return false
}

// Do implements [store.Store].
func (s *behindStore) Do(ctx context.Context, calls []store.Call) error {
	s.asked, s.at = s.asked[:0], s.at[:0]
	for i := range calls {
		for n := range calls[i].Ops {
			if op := &calls[i].Ops[n]; calls[i].Verb == store.Take && op.Role == store.Always {
				s.asked, s.at = append(s.asked, *op), append(s.at, op)
			}
		}
	}
	if len(s.asked) == 0 {
		return s.Store.Do(ctx, calls)
	}
	s.call = append(s.call[:0], store.Call{Verb: store.Check, Ops: s.asked})
	if err := errors.Join(s.Store.Do(ctx, s.call), s.call[0].Err); err != nil {
		return err
	}
	err := s.Store.Do(ctx, calls)
	for i, op := range s.at {
		op.Result.Allowed = s.asked[i].Result.Allowed
	}
	return err
}

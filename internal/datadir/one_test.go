package datadir_test

import (
	"context"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// one decides a call with one op, of hits for a key under a limit.
func one(ctx context.Context, s store.Store, verb store.Verb, space *store.Space, limit *window.Compiled, key, member string, n int64) (window.Result, error) {
	ops := []store.Op{{Space: space, Limit: limit, Key: []byte(key), Member: []byte(member), N: n}}
	err := store.Do(ctx, s, verb, ops)
	return ops[0].Result, err
}

package server

import (
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

const (
	beatEvery = 3 * time.Second
	beatRetry = time.Second // at the start, and without an answer
	beatTTL   = 10 * time.Second
	beatsKept = 4 // they take longer than beatTTL

	maxInstances = 1000
)

// instances counts the instances that share a store: each records itself every
// few seconds in one key, a window that counts distinct members. Members leave
// the window beatTTL after their last beat, and the store drops the key with
// the last one.
//
// The number can rise with each beat. It falls when all beats of a whole window
// have found fewer: after an outage the instances come back one after the
// other. Without an answer it stays as it is.
type instances struct {
	store  store.Store
	op     store.Op
	recent []int // the last answers, the newest at the end; used by beat only
	known  atomic.Int64
}

func newInstances(s store.Store) *instances {
	limit := window.Limit{Quota: maxInstances, Measure: window.Distinct, Window: window.Sliding(beatTTL)}
	return &instances{store: s, op: store.Op{
		Space: store.NewSpace("", "instances", "instances", 0), Limit: window.MustCompile(limit),
		Key: []byte("instances"), Member: []byte(rand.Text()), N: 1,
	}}
}

// number returns how many instances there are, or 0 when the store has never
// answered.
func (i *instances) number() int { return int(i.known.Load()) }

// beat records this instance, and logs when the number changes. It reports
// whether the store answered.
func (i *instances) beat(ctx context.Context, log *slog.Logger) bool {
	ops := [1]store.Op{i.op}
	if err := store.Do(ctx, i.store, store.Record, ops[:]); !hook.HasResults(err) {
		return false // the store's nodes are reported elsewhere
	}
	i.recent = append(i.recent, int(ops[0].Result.Used))
	i.recent = i.recent[max(0, len(i.recent)-beatsKept):]
	now := int64(slices.Max(i.recent))
	if before := i.known.Swap(now); before != now {
		log.Info("instances share the store", "instances", now, "before", before)
	}
	return true
}

// run beats until ctx is done.
func (i *instances) run(ctx context.Context, log *slog.Logger) {
	wait := beatRetry // so that instances that start together soon have a number
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if wait = beatRetry; i.beat(ctx, log) {
			wait = beatEvery
		}
		timer.Reset(wait)
	}
}

package datadir_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/datadir"
	"github.com/weirhq/weir/internal/once"
	"github.com/weirhq/weir/store"
)

// A process that is killed leaves no record of a call without what the call has counted: a retry would be answered as if
// it had counted.
func TestKillBetweenRecordAndCount(t *testing.T) {
	t.Parallel()
	records, limit := store.NewSpace("", once.Space, once.Space, 0), once.NewLimit()
	do := func(s *datadir.Store, id, n int64, keep time.Duration) (found bool) {
		calls := []store.Call{{
			Verb: store.Take,
			Ops:  []store.Op{{Space: space, Limit: ever, Key: fmt.Append(nil, id), N: n}},
			Once: &store.Op{Space: records, Limit: limit, Key: fmt.Append(nil, "of ", id), Member: make([]byte, 16), N: keep.Microseconds()},
		}}
		if err := s.Do(t.Context(), calls); err != nil || calls[0].Err != nil {
			t.Error(err, calls[0].Err)
		}
		return calls[0].Once.Result.Before > 0
	}
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 20 {
		disk := datadir.NewDisk()
		s := mustOpen(t, disk)
		var last atomic.Int64
		enough, stop := make(chan struct{}), make(chan struct{})
		target := int64(500 + r.IntN(3000))
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					id := last.Add(1)
					if do(s, id, 1, time.Hour); id == target {
						close(enough)
					}
				}
			})
		}
		<-enough
		left := disk.Clone()
		close(stop)
		group.Wait()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		next := mustOpen(t, left)
		for id := int64(1); id <= last.Load(); id++ {
			if do(next, id, 0, 0) && usedOf(t, next, int(id)) == 0 {
				t.Errorf("round %d: call %d has a record and has not counted", round, id)
			}
		}
		next.Close()
	}
}

package redisstore_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore"
	"github.com/weirhq/weir/window"
)

// BenchmarkMemory measures how much used_memory grows for each of a million
// users with one hit. It counts what MEMORY USAGE leaves out: the tables of keys
// and of expiries.
//
//	go test -run '^$' -bench Memory -benchtime 1x ./store/redisstore
func BenchmarkMemory(b *testing.B) {
	const users, size = 1_000_000, 1000
	limit := window.MustCompile(window.Limit{Quota: 1000, Window: window.Sliding(time.Hour)})
	for b.Loop() {
		n := redistest.Server(b)
		s := redisstore.New(connect(b, n.Addr()), "")
		space := store.NewSpace("", "posts", "posts-per-hour", 0)
		used := func() int64 {
			v, err := strconv.ParseInt(n.Info("used_memory"), 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			return v
		}
		before := used()
		calls := make([]store.Call, size)
		for first := 0; first < users; first += size {
			for i := range calls {
				key := fmt.Appendf(nil, "user-%06d", first+i)
				calls[i] = store.Call{Verb: store.Take, Ops: []store.Op{{Space: space, Limit: limit, Key: key, N: 1}}}
			}
			if err := s.Do(context.Background(), calls); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(used()-before)/users, "B/user")
	}
}

package memstore_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/journal"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// BenchmarkChanges measures what it takes to read a key that has changed, where 60,000
// of a million have.
func BenchmarkChanges(b *testing.B) {
	s := memstore.New(memstore.WithJournal(secret))
	defer s.Close()
	limit := window.MustCompile(window.Limit{Quota: 1 << 40, Window: window.Fixed(24 * time.Hour)})
	space := store.NewSpace("", "posts", "posts", 0)
	names := make([]string, 1_000_000)
	take := func(i int) {
		if _, err := one(b.Context(), s, store.Take, space, limit, names[i], "", 1); err != nil {
			b.Fatal(err)
		}
	}
	for i := range names {
		names[i] = "user-" + strconv.Itoa(i)
		take(i)
	}
	changes, r := s.Journal().Changes(), rand.New(rand.NewPCG(1, 2))
	keys, sum := 0, uint64(0)
	read := func() {
		for more := true; more; {
			more = changes.Next(func(_ journal.Part, key uint64, state []uint64) { keys, sum = keys+1, sum+key+state[0] })
		}
	}
	read()
	b.ReportAllocs()
	var took time.Duration
	keys = 0
	for b.Loop() {
		b.StopTimer()
		for range 60_000 {
			take(r.IntN(len(names)))
		}
		b.StartTimer()
		begun := time.Now()
		read()
		took += time.Since(begun)
	}
	b.ReportMetric(float64(took.Nanoseconds())/float64(keys), "ns/key")
}

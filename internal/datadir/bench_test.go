package datadir_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/datadir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// BenchmarkEngine measures what a directory costs a decision: by one key that is hot,
// and by a million keys, all as likely, or some more likely than others.
func BenchmarkEngine(b *testing.B) {
	set, err := rule.New([]rule.Rule{{Name: "posts", Per: []string{"user"}, Quota: &rule.Quota{Value: window.MaxHits}, Window: window.Fixed(24 * time.Hour)}}, nil)
	if err != nil {
		b.Fatal(err)
	}
	const keys = 1_000_000
	r := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(r, 1.1, 1, keys-1)
	draw := map[string]func() int{
		"hot": func() int { return 42 }, "zipf": func() int { return int(zipf.Uint64()) }, "uniform": func() int { return r.IntN(keys) },
	}
	names := make([]string, keys)
	for i := range names {
		names[i] = "user-" + strconv.Itoa(i)
	}
	for _, row := range []string{"hot", "zipf", "uniform"} {
		users := make([]string, 1<<20)
		for i := range users {
			users[i] = names[draw[row]()]
		}
		for _, where := range []string{"memory", "data"} {
			b.Run(row+"/"+where, func(b *testing.B) {
				s := store.Store(memstore.New())
				if where == "data" {
					if s, err = datadir.Open(b.TempDir()); err != nil {
						b.Fatal(err)
					}
				}
				defer s.Close()
				e, err := weir.NewEngine(set, weir.WithStore(s))
				if err != nil {
					b.Fatal(err)
				}
				req, d := weir.Request{Attributes: weir.Attributes("user", "")}, weir.Decision{}
				take := func(user string) {
					req.Attributes[0].Value = user
					if err := e.Do(b.Context(), store.Take, &req, &d); err != nil || !d.Allowed {
						b.Fatal(d, err)
					}
				}
				for _, name := range names {
					take(name)
				}
				if kept, ok := s.(*datadir.Store); ok {
					for kept.Stats().Compactions == 0 { // until the keys are on the disk
						if err := kept.Flush(b.Context()); err != nil {
							b.Fatal(err)
						}
					}
				}
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					take(users[i&(1<<20-1)])
					i++
				}
			})
		}
	}
}

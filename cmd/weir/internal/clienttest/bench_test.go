package clienttest_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
)

// BenchmarkTake takes with 64 callers, of a service in the same process.
func BenchmarkTake(b *testing.B) {
	for name, option := range modes {
		b.Run(name, func(b *testing.B) {
			w := newPair(b)
			_, target := serve(b, grpcserver.Config{}, w.plain)
			c := open(b, target, option)
			b.ReportAllocs()
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					r := weir.Request{Attributes: weir.Attributes("action", "login", "user", strconv.Itoa(i%1000))}
					if _, err := c.Check(context.Background(), r); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

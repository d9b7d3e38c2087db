package weir_test

import (
	"context"
	"testing"
	"time"

	"github.com/weirhq/weir"
)

// BenchmarkLimits takes under one limit, and under several that admit a hit together.
func BenchmarkLimits(b *testing.B) {
	for _, row := range []struct {
		name    string
		limit   weir.Limit
		further []weir.Limit
	}{
		{"one sliding", weir.Sliding(100, 5*time.Microsecond), nil},
		{"two sliding", weir.Sliding(100, 5*time.Microsecond), []weir.Limit{weir.Sliding(100, 10*time.Microsecond)}},
		{"one bucket", weir.Bucket(1e9, time.Second, 0), nil},
		{"two buckets", weir.Bucket(1e9, time.Second, 0), []weir.Limit{weir.Bucket(1e9, time.Minute, 0)}},
		{"one fixed", weir.Fixed(1e9, time.Minute), nil},
		{"two fixed", weir.Fixed(1e9, time.Minute), []weir.Limit{weir.Fixed(1e9, time.Hour)}},
		{"three fixed", weir.Fixed(1e9, time.Minute), []weir.Limit{weir.Fixed(1e9, time.Hour), weir.Fixed(1e9, 24*time.Hour)}},
	} {
		b.Run(row.name, func(b *testing.B) {
			m := weir.MustLimiter(row.limit, weir.And(row.further...))
			defer m.Close()
			b.ReportAllocs()
			ctx := b.Context()
			for b.Loop() {
				if _, err := m.Allow(ctx, "user:0000000000000000000"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWait compares a wait that is over at once with Allow.
func BenchmarkWait(b *testing.B) {
	for _, row := range []struct {
		name string
		ask  func(m *weir.Limiter, ctx context.Context, key string) error
	}{
		{"allow", func(m *weir.Limiter, ctx context.Context, key string) error { _, err := m.Allow(ctx, key); return err }},
		{"wait", (*weir.Limiter).Wait},
	} {
		b.Run(row.name, func(b *testing.B) {
			m := weir.MustLimiter(weir.Bucket(1e9, time.Second, 0))
			defer m.Close()
			b.ReportAllocs()
			ctx := b.Context()
			for b.Loop() {
				if err := row.ask(m, ctx, "user:0000000000000000000"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package memstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// BenchmarkSteps measures the steps of a take of three ops each alone, which no call of
// several rules can do without: exact sliding windows of 100 hits in 5, 10 and 15
// microseconds, at calls that are 190 ns apart. The row take is the call with all of them.
func BenchmarkSteps(b *testing.B) {
	s := New()
	var ops [3]place
	var results [3]window.Result
	set := func(ops []place) {
		for i := range ops {
			ops[i].Set(spaces[i], limits[i], store.Enforce, s.Hash([]byte("\x0242")), window.Hits{N: 1}, &results[i])
		}
	}
	take := func() {
		var room [UsualFew]place
		set(room[:3])
		if allowed, done, err := s.Few(context.Background(), store.Take, room[:3]); !allowed || !done || err != nil {
			b.Fatal(allowed, done, err)
		}
	}
	take() // which makes the keys
	set(ops[:])
	for i := range ops {
		p := &ops[i]
		p.keyspace = s.keyspaces.of(p.space, p.limit)
		p.shard = p.keyspace.shard(s.numberOf(p.key))
	}
	b.Run("clock", func(b *testing.B) {
		for b.Loop() {
			s.clock.now(false)
		}
	})
	b.Run("hash", func(b *testing.B) {
		key := []byte("\x0242")
		for b.Loop() {
			s.Hash(key)
		}
	})
	b.Run("lock", func(b *testing.B) {
		for b.Loop() {
			st := ops[0].shard.stripe
			st.lock()
			st.mu.Unlock()
		}
	})
	b.Run("find", func(b *testing.B) {
		for b.Loop() {
			for i := range ops {
				p := &ops[i]
				p.keyspace = s.keyspaces.of(p.space, p.limit)
				p.shard = p.keyspace.shard(s.numberOf(p.key))
				p.at = p.shard.table.Find(p.key)
			}
		}
	})
	b.Run("count", func(b *testing.B) {
		var states [3]window.State
		for i := range states {
			states[i] = make(window.State, 0, 128)
		}
		nanoseconds := window.Instant(0)
		for b.Loop() {
			nanoseconds += 190
			for i := range states {
				r, hit := &results[i], window.Hits{N: 1}
				*r = window.Result{}
				looked := limits[i].Look(r, states[i], nanoseconds/1000, hit)
				if !r.Allowed {
					b.Fatal(r)
				}
				states[i], _ = limits[i].TakeLooked(r, states[i], hit, &looked)
			}
		}
	})
	b.Run("take", func(b *testing.B) {
		for b.Loop() {
			take()
		}
	})
}

// spaces and limits are those of BenchmarkSteps.
var spaces, limits = func() (spaces [3]*store.Space, limits [3]*window.Compiled) {
	for i := range spaces {
		name := fmt.Sprint("s", i)
		spaces[i] = store.NewSpace("", name, name, 0)
		limits[i] = window.MustCompile(window.Limit{Quota: 100, Window: window.Sliding(5 * time.Microsecond * time.Duration(i+1))})
	}
	return spaces, limits
}()

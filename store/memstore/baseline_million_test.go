package memstore_test

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// slots is the least that a limiter of many keys has to do: it hashes the key, reads the
// clock, locks one of 32 parts, and changes one word in a slot of 32 bytes. It does not
// grow, forgets nothing and answers yes or no.
type slots struct {
	seed  maphash.Seed
	start time.Time
	parts [32]struct {
		mu    sync.Mutex
		slots []slot
		_     [32]byte // a cache line for each part
	}
}

type slot struct{ hash, full, _, _ uint64 }

func newSlots(keys int) *slots {
	s := &slots{seed: maphash.MakeSeed(), start: time.Now()}
	for i := range s.parts {
		s.parts[i].slots = make([]slot, keys/len(s.parts)*3/2)
	}
	return s
}

func (s *slots) take(key []byte) bool {
	const interval, burst = uint64(time.Minute) / 1000, uint64(time.Minute)
	h := maphash.Bytes(s.seed, key)
	now := uint64(time.Since(s.start))
	p := &s.parts[h>>59]
	p.mu.Lock()
	defer p.mu.Unlock()
	at, _ := bits.Mul64(h<<5, uint64(len(p.slots)))
	for p.slots[at].hash != h && p.slots[at].hash != 0 {
		if at++; at == uint64(len(p.slots)) {
			at = 0
		}
	}
	e := &p.slots[at]
	full := max(e.full, now) + interval
	if full-now > burst {
		return false
	}
	e.hash, e.full = h, full
	return true
}

// BenchmarkBaselineMillion compares takes of a million keys with the least program. Keys
// are read from memory of their own, as those of requests are.
func BenchmarkBaselineMillion(b *testing.B) {
	const length = 24
	text := make([]byte, benchKeys*length)
	for i := range benchKeys {
		binary.BigEndian.PutUint32(text[i*length:], uint32(i))
	}
	least := newSlots(benchKeys)
	s := memstore.New()
	space := store.NewSpace("", "s", "", 0)
	limit := window.MustCompile(window.Limit{Quota: 1000, Window: window.Fixed(time.Minute)})
	for _, row := range []struct {
		name string
		take func(key []byte)
	}{
		{"baseline", func(key []byte) { least.take(key) }},
		{"weir", func(key []byte) {
			ops := [1]store.Op{{Space: space, Limit: limit, Key: key, N: 1}}
			if err := s.Decide(b.Context(), store.Take, ops[:]); err != nil {
				b.Fatal(err)
			}
		}},
	} {
		for _, order := range []string{"zipf", "uniform"} {
			draws := draw(order)
			b.Run(row.name+"/keys="+order, func(b *testing.B) {
				for i := range benchKeys {
					row.take(text[i*length:][:length])
				}
				i := 0
				for b.Loop() {
					row.take(text[int(draws[i%len(draws)])*length:][:length])
					i++
				}
			})
		}
	}
}

package memstore_test

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/stated"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// sumOf returns the bytes of all spaces, added up from the tables themselves.
func sumOf(s *memstore.Store) (n int64) {
	for _, st := range s.Stats() {
		n += st.Bytes
	}
	return n
}

// A flood of new keys stops at the bound. What was counted before stays, and
// goes on counting.
func TestMaxBytes(t *testing.T) {
	t.Parallel()
	const bound = 4 << 20
	o := open(t, memstore.WithMaxBytes(bound))
	o.Set(1e15)
	s := o.Store.(*memstore.Store)
	limit := window.MustCompile(window.Limit{Quota: 50, Window: window.Sliding(time.Hour)})
	victim := hit("victims", limit, "victim")
	victim.N = 7
	take(t, s, victim)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 100_000 {
				op := hit(fmt.Sprint("flood", g%2), limit, fmt.Sprint(g, "/", i))
				if err := store.Do(t.Context(), s, store.Take, []store.Op{op}); err != nil {
					if !errors.Is(err, memstore.ErrMemory) || !errors.Is(err, store.ErrFull) || strings.Contains(err.Error(), "max_keys") {
						t.Errorf("got %v, want that the memory is full", err)
					}
					return
				}
			}
			t.Error("got no end of new keys")
		})
	}
	wg.Wait()
	const slack = 4 * 200 << 10 // of the calls that ran at the same time
	if got := sumOf(s); got > bound+slack || got < bound*8/10 {
		t.Errorf("got %d bytes, want about %d", got, bound)
	}
	if got, want := memstore.BytesOf(s), sumOf(s); got != want {
		t.Errorf("got %d bytes in the store's books, want %d, as the tables say", got, want)
	}
	// The state of a known key may still grow.
	victim.N = 1
	for i := range 40 {
		if r := take(t, s, victim); r.Used != int64(8+i) {
			t.Fatalf("victim: got %+v, want %d used", r, 8+i)
		}
	}
	// Known keys that grow stop at the bound, too.
	grown := 0
	for i := 0; ; i++ {
		op := hit("flood0", limit, fmt.Sprint("0/", i%1000))
		if err := store.Do(t.Context(), s, store.Take, []store.Op{op}); err != nil {
			break
		}
		if grown++; grown > 1_000_000 {
			t.Fatal("got no end of larger states")
		}
	}
	if got := sumOf(s); got > bound+slack {
		t.Errorf("got %d bytes after known keys have grown, want about %d", got, bound)
	}

	o.Set(1e15 + 3*3600e6)
	for range 100 {
		s.Sweep(1 << 20)
	}
	if r := take(t, s, hit("flood0", limit, "later")); !r.Allowed {
		t.Errorf("after all has expired: got %+v, want allowed", r)
	}
	if got, want := memstore.BytesOf(s), sumOf(s); got != want || got > bound/8 {
		t.Errorf("got %d bytes in the books, want %d, which is little", got, want)
	}
	runtime.KeepAlive(s)
}

// The books stay right while keys come and go, are refunded, forgotten and swept.
func TestBytesAreCounted(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.Set(1e15)
	s := o.Store.(*memstore.Store)
	limit := window.MustCompile(window.Limit{Quota: 50, Window: window.Sliding(time.Minute)})
	for i := range 20_000 {
		op := hit(fmt.Sprint("space", i%3), limit, fmt.Sprint(i%5000))
		switch i % 11 {
		case 3:
			if err := s.Forget(t.Context(), &op); err != nil {
				t.Fatal(err)
			}
		case 5:
			if err := store.Do(t.Context(), s, store.Refund, []store.Op{op}); err != nil {
				t.Fatal(err)
			}
		default:
			take(t, s, op)
		}
		if i%1000 == 0 {
			o.Set(1e15 + window.Instant(i)*10_000)
			s.Sweep(500)
		}
	}
	for range 3 {
		if got, want := memstore.BytesOf(s), sumOf(s); got != want {
			t.Errorf("got %d bytes in the books, want %d, as the tables say", got, want)
		}
		o.Set(1e15 + 4*3600e6)
		for range 400 {
			s.Sweep(1000)
		}
	}
}

// A full table says when its first key expires.
func TestFullSaysWhen(t *testing.T) {
	t.Parallel()
	o := open(t)
	s := o.Store.(*memstore.Store)
	limit := window.MustCompile(window.Limit{Quota: 5, Window: window.Fixed(time.Hour)})
	op := func(key string) store.Op {
		op := hit("small", limit, key)
		op.Space = store.NewSpace("", "small", "", 3)
		return op
	}
	for i := range 3 {
		o.Set(1e15 + window.Instant(i)*60e6)
		take(t, s, op(fmt.Sprint("k", i)))
	}
	for _, ops := range [][]store.Op{{op("new")}, {op("new"), op("newer"), op("k0")}} {
		err := store.Do(t.Context(), s, store.Take, ops)
		var full *store.OutageError
		if !errors.As(err, &full) {
			t.Fatalf("got %v, want it full", err)
		}
		// With a clock that may go back, keys stay for another hour. What
		// expires first does so 58 minutes from now.
		if want := 58 * time.Minute; full.RetryAfter != want {
			t.Errorf("got a wait of %v, want %v", full.RetryAfter, want)
		}
	}
}

// Limits that callers state leave a quarter of the memory to others: no rule bounds how many keys they have, and for
// how long.
func TestStatedLimitsLeaveRoom(t *testing.T) {
	t.Parallel()
	o := open(t, memstore.WithMaxBytes(4<<20))
	o.Set(1e15)
	limit := window.MustCompile(window.Limit{Quota: 1, Window: window.Bucket(365*24*time.Hour, 1)})
	op := hit("stated", limit, "")
	op.Space = store.NewSpace("shop", "stated", stated.Command, 0)
	var err error
	for i := 0; err == nil && i < 1_000_000; i++ {
		op.Key = strconv.AppendInt(nil, int64(i), 10)
		err = store.Do(t.Context(), o.Store, store.Take, []store.Op{op})
	}
	if !errors.Is(err, memstore.ErrMemory) {
		t.Errorf("got %v, want that the memory is full", err)
	}
	for i := range 1000 {
		take(t, o.Store, hit("rule", limit, fmt.Sprint(i)))
	}
}

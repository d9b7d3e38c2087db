package redisstore_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore"
	"github.com/weirhq/weir/store/storetest"
	"github.com/weirhq/weir/window"
)

// holdOf returns op with a hold of that number.
func holdOf(op store.Op, n uint64) store.Op {
	op.Hold = new(store.Hold)
	binary.BigEndian.PutUint64(op.Hold.ID[:], n)
	return op
}

func opUnder(l window.Limit, key string) store.Op {
	return store.Op{Space: store.NewSpace("", "rule", "rule", 0), Limit: window.MustCompile(l), Key: []byte(key), N: 1}
}

// A place in flight and a hold take at most 60 bytes.
func TestHoldsAreSmall(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := redisstore.New(connect(t, n.Addr()), "")
	for name, l := range map[string]window.Limit{
		"in flight": {Quota: 1000, Window: window.Held(time.Hour)},
		"sliding":   {Quota: 1000, Window: window.Sliding(time.Hour), Hold: time.Hour},
		"cells":     {Quota: 1000, Window: window.Cells(time.Hour, 0), Hold: time.Hour},
		"fixed":     {Quota: 1000, Window: window.Fixed(time.Hour), Hold: time.Hour},
		"bucket":    {Quota: 1000, Window: window.Bucket(time.Hour, 0), Hold: time.Hour},
		"ever":      {Quota: 1000, Window: window.Ever(), Hold: time.Hour},
	} {
		size := func(holds int) int64 {
			op := opUnder(l, fmt.Sprint(name, holds))
			for i := range holds {
				ops := []store.Op{holdOf(op, uint64(i+1))}
				if err := store.Do(t.Context(), s, store.Take, ops); err != nil || !ops[0].Result.Held {
					t.Fatalf("%s: got %+v and error %v, want it held", name, ops[0].Result, err)
				}
			}
			return n.Must("MEMORY", "USAGE", redisstore.KeyName("weir", &op)).(int64)
		}
		one, many := size(1), size(513)
		each := float64(many-one) / 512
		t.Logf("%s: a key with one hold %d bytes, each further one %.1f", name, one, each)
		if each > 60 {
			t.Errorf("%s: got %.1f bytes a hold, want at most 60", name, each)
		}
	}
}

// held is long enough for a look at places that a process took before it was killed, on a busy machine.
const held = 5 * time.Second

const holderURL = "WEIR_TEST_HOLDER" // in the environment of a process that holds places

// holdForever holds two hits until the process is killed. TestMain calls it in a
// process that TestKilledHolder starts.
func holdForever(url string) error {
	s, err := redisstore.Open(context.Background(), url)
	if err != nil {
		return err
	}
	op := twoPlaces()
	for i := range 2 {
		ops := []store.Op{holdOf(op, uint64(i+1))}
		if err := store.Do(context.Background(), s, store.Take, ops); err != nil || !ops[0].Result.Held {
			return fmt.Errorf("got %+v and error %w, want it held", ops[0].Result, err)
		}
	}
	fmt.Println("held")
	_, err = io.Copy(io.Discard, os.Stdin) // until the test ends
	return err
}

func twoPlaces() store.Op {
	return opUnder(window.Limit{Quota: 2, Window: window.Held(held)}, "k")
}

// Places of a process that is killed are free a length after it took them, not
// before.
func TestKilledHolder(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	url := "redis://" + n.Addr() + "?timeout=20s"
	s := openURL(t, url)
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), holderURL+"="+url)
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.StdinPipe(); err != nil { // it ends with this process
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fscanln(out, new(string))
	if errors.Join(err, holder.Process.Kill()) != nil {
		t.Fatal(err)
	}
	if err := holder.Wait(); err == nil {
		t.Error("got a holder that ended well, want it killed")
	}
	look := func() (r window.Result, at window.Instant) {
		ops := []store.Op{holdOf(twoPlaces(), 0)}
		if err := store.Do(t.Context(), s, store.Check, ops); err != nil {
			return r, 0
		}
		return ops[0].Result, ops[0].Hold.Decided
	}
	r, now := look()
	if r.Allowed || r.Used != 2 || r.RetryAfter <= 0 || r.RetryAfter > held {
		t.Fatalf("after the kill: got %+v, want 2 places held for %v at most", r, held)
	}
	until := now.Add(r.RetryAfter)
	redistest.Eventually(t, "a place is free", func() bool {
		r, now = look()
		if now < until && now > 0 && r.Allowed {
			t.Errorf("got a place %v too early", until.Sub(now))
		}
		return r.Allowed
	})
}

// Among many holds that end in another order than they were taken, some of them kept and some
// not, every number of hits waits as long as in package window.
func TestWaitsAmongManyHolds(t *testing.T) {
	t.Parallel()
	const quota, start = 60, window.Instant(1_800_000_000_000_000)
	c := connect(t, redistest.Server(t).Addr())
	for name, w := range map[string]window.Window{
		"sliding": window.Sliding(time.Minute), "cells": window.Cells(time.Minute, 10), "fixed": window.Fixed(time.Minute),
		"calendar": window.Calendar(window.Minute, nil), "bucket": window.Bucket(time.Minute, 0), "ever": window.Ever(),
	} {
		for _, length := range []time.Duration{10 * time.Second, time.Minute, 2 * time.Minute} {
			for seed := range uint64(12) {
				redis, model := open(t, c), storetest.NewModel()
				r, now := rand.New(rand.NewPCG(seed, 0)), start
				keeps := window.Limit{Quota: quota, Window: w, Hold: length}
				do := func(verb store.Verb, n int64, id uint64, release bool) {
					redis.Set(now)
					model.Set(now)
					l := keeps
					l.Release = release
					op := holdOf(opUnder(l, "k"), id)
					op.N, op.Hold.At, op.Hold.End = n, now, now.Add(length)
					got, want := []store.Op{op}, []store.Op{op}
					if err := store.Do(t.Context(), redis.Store, verb, got); err != nil {
						t.Fatal(err)
					}
					if err := store.Do(t.Context(), model.Store, verb, want); err != nil {
						t.Fatal(err)
					}
					if got[0].Result != want[0].Result {
						t.Fatalf("%s, hold %v, seed %d: %v of %d at %v: got  %+v\nwant %+v", name, length, seed, verb, n, now.Sub(start), got[0].Result, want[0].Result)
					}
				}
				for id := range uint64(quota) {
					do(store.Take, 1+r.Int64N(2), id+1, seed%3 == 1 && r.IntN(4) == 0 || seed%3 == 2)
					now = now.Add(time.Duration(r.IntN(300)) * time.Millisecond)
				}
				for range r.IntN(quota) {
					do(store.Renew, 1, 1+r.Uint64N(quota), false)
				}
				for range 4 {
					for _, n := range []int64{1, 2, 3, quota / 2, quota - 1, quota} {
						do(store.Check, n, 0, false)
					}
					now = now.Add(time.Duration(r.Int64N(int64(length) / 2)))
					if r.IntN(2) == 0 {
						do(store.Record, 1, 0, false) // what has ended becomes final
					}
				}
			}
		}
	}
}

// A call decodes few of the holds of a key. So a key with 1,000 holds, of which none ends, costs a server only a few
// times what one with a single hold does, most of it to copy the state.
func TestManyHoldsCostLittle(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s, m := openURL(t, "redis://"+n.Addr()+"?timeout=20s"), meter{connect(t, n.Addr())}
	const many = 1000
	for name, l := range map[string]window.Limit{
		"sliding": {Window: window.Sliding(time.Hour)}, "fixed": {Window: window.Fixed(time.Hour)},
		"bucket": {Window: window.Bucket(time.Hour, 0)}, "bucket, released": {Window: window.Bucket(time.Hour, 0), Release: true},
	} {
		l.Hold = time.Hour
		cost := func(holds, quota int64, verb store.Verb) float64 {
			l := l
			l.Quota = quota
			op := opUnder(l, fmt.Sprint(name, holds))
			best := math.Inf(1)
			for range 20 { // other programs interrupt the server
				calls, usec, _ := m.read(t, "evalsha")
				for range 20 {
					if err := store.Do(t.Context(), s, verb, []store.Op{op}); err != nil {
						t.Fatal(err)
					}
				}
				calls2, usec2, _ := m.read(t, "evalsha")
				best = min(best, (usec2-usec)/(calls2-calls))
			}
			return best
		}
		for _, holds := range []int64{1, many} {
			l.Quota = holds
			for range holds {
				ops := []store.Op{holdOf(opUnder(l, fmt.Sprint(name, holds)), rand.Uint64())}
				if err := store.Do(t.Context(), s, store.Take, ops); err != nil || !ops[0].Result.Held {
					t.Fatalf("%s: got %+v and error %v, want it held", name, ops[0].Result, err)
				}
			}
		}
		for what, quota := range map[string]int64{"denied": 0, "admitted": many} {
			one, all := cost(1, 1+quota, store.Check), cost(many, many+quota, store.Check)
			t.Logf("%s, %s: %.1f µs with one hold, %.1f µs with %d", name, what, one, all, many)
			if all > 10*one {
				t.Errorf("%s, %s: got %.1f µs with %d holds and %.1f µs with one, want at most ten times that", name, what, all, many, one)
			}
		}
	}
}

// BenchmarkHold takes under a limit that holds, and under the same that does not,
// each on 10,000 keys of which each is used a few times.
//
//	go test -run '^$' -bench Hold ./store/redisstore
func BenchmarkHold(b *testing.B) {
	n := redistest.Server(b)
	s := openURL(b, at(n.Addr()))
	for _, kind := range []struct {
		name string
		w    window.Window
		hold time.Duration
	}{
		{"sliding/plain", window.Sliding(time.Hour), 0}, {"sliding/hold", window.Sliding(time.Hour), time.Minute},
		{"fixed/plain", window.Fixed(time.Hour), 0}, {"fixed/hold", window.Fixed(time.Hour), time.Minute},
		{"bucket/plain", window.Bucket(time.Hour, 0), 0}, {"bucket/hold", window.Bucket(time.Hour, 0), time.Minute},
		{"cells/plain", window.Cells(time.Hour, 0), 0}, {"cells/hold", window.Cells(time.Hour, 0), time.Minute},
		{"calendar/plain", window.Calendar(window.Day, nil), 0}, {"calendar/hold", window.Calendar(window.Day, nil), time.Minute},
		{"ever/plain", window.Ever(), 0}, {"ever/hold", window.Ever(), time.Minute},
		{"flight", window.Held(time.Minute), 0},
	} {
		b.Run(kind.name, func(b *testing.B) {
			n.Must("FLUSHALL")
			ops := []store.Op{holdOf(opUnder(window.Limit{Quota: 1000, Window: kind.w, Hold: kind.hold}, ""), 0)}
			taken := uint64(0)
			for b.Loop() {
				taken++
				ops[0].Key = fmt.Appendf(ops[0].Key[:0], "user-%06d", taken%10_000)
				binary.BigEndian.PutUint64(ops[0].Hold.ID[:], taken)
				if err := store.Do(context.Background(), s, store.Take, ops); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDeniedAmongHolds is denied under a limit that holds, on a key with 1,000
// holds: the wait for the first hits that leave is in the answer.
//
//	go test -run '^$' -bench DeniedAmongHolds ./store/redisstore
func BenchmarkDeniedAmongHolds(b *testing.B) {
	n := redistest.Server(b)
	s := openURL(b, "redis://"+n.Addr()+"?timeout=1s")
	for name, w := range map[string]window.Window{
		"sliding": window.Sliding(time.Hour), "cells": window.Cells(time.Hour, 0), "fixed": window.Fixed(time.Hour),
		"bucket": window.Bucket(time.Hour, 0), "flight": window.Held(time.Hour),
	} {
		b.Run(name, func(b *testing.B) {
			n.Must("FLUSHALL")
			limit := window.Limit{Quota: 1000, Window: w}
			if name != "flight" {
				limit.Hold = time.Hour
			}
			for i := range 1001 {
				ops := []store.Op{holdOf(opUnder(limit, "k"), uint64(i+1))}
				if err := store.Do(context.Background(), s, store.Take, ops); err != nil || ops[0].Result.Held != (i < 1000) {
					b.Fatalf("take %d: got %+v and error %v", i, ops[0].Result, err)
				}
			}
			ops := []store.Op{holdOf(opUnder(limit, "k"), 1<<40)}
			ops[0].N = 500
			for b.Loop() {
				if err := store.Do(context.Background(), s, store.Take, ops); err != nil || ops[0].Result.Allowed {
					b.Fatalf("got %+v and error %v, want it denied", ops[0].Result, err)
				}
			}
		})
	}
}

package memstore_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

func TestMachineClock(t *testing.T) {
	t.Parallel()
	for _, w := range []window.Window{
		window.Sliding(time.Hour), window.Cells(time.Hour, 0), window.Fixed(time.Hour),
		window.Calendar(window.Day, nil), window.Bucket(time.Hour, 0),
	} {
		synctest.Test(t, func(t *testing.T) {
			s := memstore.New()
			op := hit("s", window.MustCompile(window.Limit{Quota: 2, Window: w}), "k")
			take(t, s, op)
			take(t, s, op)
			denied := take(t, s, op)
			if denied.Allowed {
				t.Fatalf("%v: got %+v, want denied", w, denied)
			}
			time.Sleep(denied.RetryAfter - time.Microsecond)
			if r := take(t, s, op); r.Allowed {
				t.Errorf("%v: 1µs before retry-after: got %+v, want denied", w, r)
			}
			time.Sleep(time.Microsecond)
			if r := take(t, s, op); !r.Allowed {
				t.Errorf("%v: after retry-after: got %+v, want allowed", w, r)
			}
		})
	}
}

// When the wall clock is set, calendar windows follow it, and no other ones.
func TestWallClockSteps(t *testing.T) {
	t.Parallel()
	day := window.MustCompile(window.Limit{Quota: 1, Window: window.Calendar(window.Day, nil)})
	hour := window.MustCompile(window.Limit{Quota: 1, Window: window.Sliding(time.Hour)})
	noon := window.At(time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC))

	for _, test := range []struct {
		name string
		step time.Duration // from noon; then back to noon
		day  bool          // is a take per day admitted after the step?
	}{
		{"back a second", -time.Second, false},
		{"back two days", -48 * time.Hour, false},
		{"ahead an hour", time.Hour, false},
		{"ahead to the next day", 12 * time.Hour, true},
		{"ahead a year", 365 * 24 * time.Hour, true},
	} {
		steady, wall := noon, noon
		s := memstore.New(memstore.WithMachine(func() (window.Instant, window.Instant) { return steady, wall }))
		daily, hourly := hit("day", day, "k"), hit("hour", hour, "k")
		untouched := hit("day", day, "untouched")
		for _, op := range []store.Op{daily, hourly, untouched} {
			if r := take(t, s, op); !r.Allowed {
				t.Fatalf("%s: first take: got %+v, want allowed", test.name, r)
			}
		}
		steady, wall = steady.Add(time.Second), wall.Add(test.step)
		if r := take(t, s, daily); r.Allowed != test.day {
			t.Errorf("%s: per day: got allowed %v, want %v", test.name, r.Allowed, test.day)
		}
		if r := take(t, s, hourly); r.Allowed || r.RetryAfter != time.Hour-time.Second {
			t.Errorf("%s: per hour: got %+v, want denied for 59m59s", test.name, r)
		}
		s.Sweep(1 << 20)
		wall = noon.Add(time.Second)
		for _, op := range []store.Op{daily, untouched} {
			if r := take(t, s, op); r.Allowed {
				t.Errorf("%s and back: %s: got %+v, want denied", test.name, op.Key, r)
			}
		}
	}
}

// A reclaimed key has forgotten when it was used. After that, no call is dated
// before the key's expiry.
func TestTimeBeforeReclaimedKeys(t *testing.T) {
	t.Parallel()
	o := open(t)
	op := hit("s", window.MustCompile(window.Limit{Quota: 1, Window: window.Calendar(window.Day, nil)}), "k")
	noon := window.At(time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC))
	o.Set(noon)
	take(t, o.Store, op)
	o.Set(noon.Add(48 * time.Hour))
	if got := o.Store.(*memstore.Store).Sweep(1000); got != 1 {
		t.Fatalf("got %d keys reclaimed, want 1", got)
	}
	o.Set(noon)
	r := take(t, o.Store, op)
	reading, _ := o.Store.Read(t.Context(), &op)
	if reading.At < noon.Add(12*time.Hour) || r.ResetAfter > 24*time.Hour {
		t.Errorf("got a take at %v, want one after the day that was used up", reading.At.Time())
	}
}

// A stage is a store on a machine whose clocks a test sets. It can hold a call
// back between its reading of the clock and its locks.
type stage struct {
	*memstore.Store
	mu           sync.Mutex
	steady, wall window.Instant
	held         chan chan struct{} // not nil: the next reading waits here
}

func newStage(t *testing.T, now window.Instant) *stage {
	c := &stage{steady: now, wall: now}
	c.Store = memstore.New(memstore.WithMachine(c.tell))
	t.Cleanup(func() { c.Close() })
	return c
}

func (c *stage) tell() (steady, wall window.Instant) {
	c.mu.Lock()
	steady, wall = c.steady, c.wall
	held := c.held
	c.held = nil
	c.mu.Unlock()
	if held != nil {
		release := make(chan struct{})
		held <- release
		<-release
	}
	return steady, wall
}

// set sets the steady clock and the one on the wall.
func (c *stage) set(steady, wall window.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steady, c.wall = steady, wall
}

// late runs call in a goroutine until it has read the clock, then between, and
// returns when call has ended.
func (c *stage) late(call, between func()) {
	held := make(chan chan struct{})
	c.mu.Lock()
	c.held = held
	c.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		call()
	}()
	release := <-held
	between()
	close(release)
	<-ended
}

// A call that reads the clock and then waits for its lock, while the key that
// it wants expires and is reclaimed, does not count before that expiry.
func TestLateCallAfterReclaim(t *testing.T) {
	t.Parallel()
	const start, length = window.Instant(1e15), time.Minute
	s := newStage(t, start)
	op := hit("s", window.MustCompile(window.Limit{Quota: 1, Window: window.Sliding(length)}), "k")
	take(t, s, op)

	set := func(d time.Duration) { s.set(start.Add(d), start.Add(d)) }
	var second window.Result
	set(length - time.Microsecond)
	s.late(func() { second = take(t, s, op) }, func() {
		set(length)
		if got := s.Sweep(1000); got != 1 {
			t.Errorf("got %d keys reclaimed, want 1", got)
		}
	})
	if !second.Allowed {
		t.Fatalf("after the first hit was reclaimed: got %+v, want allowed", second)
	}
	set(2*length - time.Microsecond)
	if r := take(t, s, op); r.Allowed {
		t.Errorf("a microsecond before the second hit leaves: got %+v, want denied", r)
	}
}

// A call that reads the clock and then waits for its lock, while a call with a
// later reading is decided, is dated after that: a bucket which never filled
// denies neither of them.
func TestLateCallInBucket(t *testing.T) {
	t.Parallel()
	start := window.At(time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC))
	// Two at once, one a second.
	bucket := window.Limit{Quota: 60, Window: window.Bucket(time.Minute, 2)}
	daily := bucket // from the second hit of a day on, by the wall clock
	daily.After = window.After{Count: 2, Window: window.Calendar(window.Day, nil)}

	for name, l := range map[string]window.Limit{"bucket": bucket, "bucket on the wall clock": daily} {
		limit := window.MustCompile(l)
		op, other := hit("s", limit, "k"), hit("other", limit, "k")
		one := func(s *stage) window.Result {
			r, err := one(t.Context(), s, store.Take, op.Space, limit, "k", "", 1)
			if err != nil {
				t.Error(err)
			}
			return r
		}
		single := func(s *stage) window.Result { return take(t, s, op) }
		several := func(s *stage) window.Result {
			ops := []store.Op{other, op}
			if err := store.Do(t.Context(), s, store.Take, ops); err != nil {
				t.Error(err)
			}
			return ops[1].Result
		}
		read := func(s *stage) window.Result {
			reading, err := s.Read(t.Context(), &op)
			if err != nil {
				t.Error(err)
			}
			reading.Result.Allowed = reading.Used < 2 // the second one's hit
			return reading.Result
		}
		for path, call := range map[string]func(*stage) window.Result{"one": one, "a call": single, "a call of two": several, "read": read} {
			s := newStage(t, start)
			if l.After.Count > 0 { // the first hit of a day is free
				take(t, s, op)
			}
			take(t, s, op)
			var late window.Result
			s.late(func() { late = call(s) }, func() {
				later := start.Add(time.Second) // the bucket is empty again
				s.set(later, later)
				if r := take(t, s, op); !r.Allowed || r.Used != 1 {
					t.Errorf("%s, %s: second take: got %+v, want allowed with 1 used", name, path, r)
				}
			})
			if !late.Allowed {
				t.Errorf("%s, %s: late: got %+v, want allowed: there was room for one more at all times", name, path, late)
			}
		}
	}
}

// A late call follows the wall clock when that was set back meanwhile.
func TestLateCallFollowsTheWall(t *testing.T) {
	t.Parallel()
	midnight := window.At(time.Date(2026, time.March, 3, 0, 0, 0, 0, time.UTC))
	s := newStage(t, midnight)
	op := hit("s", window.MustCompile(window.Limit{Quota: 5, Window: window.Calendar(window.Day, nil)}), "k")
	other := op
	other.Key = []byte("other") // in the same shard, or not
	var late window.Result
	s.late(func() { late = take(t, s, op) }, func() {
		s.set(midnight.Add(time.Second), midnight.Add(-time.Second))
		take(t, s, op)
		take(t, s, other)
	})
	if !late.Allowed || late.Used != 2 || late.ResetAfter != time.Second {
		t.Errorf("got %+v, want 2 used in a day that ends in a second", late)
	}
}

// A refund that makes a key expire earlier makes it be reclaimed earlier.
func TestReclaimAfterRefund(t *testing.T) {
	t.Parallel()
	const start = window.Instant(1e15)
	s := newStage(t, start)
	at := func(d time.Duration) { s.set(start.Add(d), start.Add(d)) }
	op := hit("s", window.MustCompile(window.Limit{Quota: 5, Window: window.Sliding(time.Minute)}), "k")
	for _, d := range []time.Duration{0, 50 * time.Second, 59 * time.Second} {
		at(d)
		take(t, s, op)
	}
	at(time.Minute)
	s.Sweep(1000) // finds that the key expires at 119s
	if err := store.Do(t.Context(), s, store.Refund, []store.Op{op}); err != nil {
		t.Fatal(err)
	}
	at(110 * time.Second)
	if got := s.Sweep(1000); got != 1 {
		t.Errorf("when the hit at 50s leaves: got %d keys reclaimed, want 1", got)
	}
}

// Instants that the caller gives may go back: no other key's use holds them.
func TestGivenInstantsGoBack(t *testing.T) {
	t.Parallel()
	o := open(t, memstore.WithShards(1))
	limit := window.MustCompile(window.Limit{Quota: 1, Window: window.Bucket(time.Minute, 0)})
	o.Set(1e15 + 10e6)
	take(t, o.Store, hit("s", limit, "ann"))
	o.Set(1e15)
	take(t, o.Store, hit("s", limit, "bob"))
	o.Set(1e15 + 60e6)
	if r := take(t, o.Store, hit("s", limit, "bob")); !r.Allowed {
		t.Errorf("a minute after the first hit: got %+v, want allowed", r)
	}
}

// take takes one op and returns its result.
func take(t testing.TB, s store.Store, op store.Op) window.Result {
	t.Helper()
	ops := []store.Op{op}
	if err := store.Do(t.Context(), s, store.Take, ops); err != nil {
		t.Fatalf("take of %s: got error %v", op.Key, err)
	}
	return ops[0].Result
}

// hit returns an op of one hit on a key.
func hit(space string, limit *window.Compiled, key string) store.Op {
	return store.Op{Space: store.NewSpace("", space, "", 0), Limit: limit, Key: []byte(key), N: 1}
}

// keysOf returns how many keys s has of the space with the ID.
func keysOf(s *memstore.Store, id string) int64 {
	return memstore.KeysOf(s, store.NewSpace("", id, "", 0))
}

// do decides calls in s, and fails the test on an error.
func do(t testing.TB, s store.Store, calls []store.Call) {
	if err := s.Do(t.Context(), calls); err != nil || calls[0].Err != nil {
		t.Fatal(err, calls[0].Err)
	}
}

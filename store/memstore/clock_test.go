package memstore_test

import (
	"strconv"
	"sync/atomic"
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

// The wall clock is set; the steady one goes on.
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

// A key that was reclaimed has forgotten when it was used: the clock is kept
// from telling a time when it still had no quota.
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

// take takes one op and returns its result.
func take(t testing.TB, s store.Store, op store.Op) window.Result {
	t.Helper()
	ops := []store.Op{op}
	if err := store.Do(t.Context(), s, store.Take, ops); err != nil {
		t.Fatalf("take of %s: got error %v", op.Key, err)
	}
	return ops[0].Result
}

// hit is one hit on a key.
func hit(space string, limit *window.Compiled, key string) store.Op {
	return store.Op{Space: store.NewSpace("", space, "", 0), Limit: limit, Key: []byte(key), N: 1}
}

// A call that reads the clock and then waits for its locks, while the key that
// it wants expires and is reclaimed, does not count before that expiry.
func TestWaitingCall(t *testing.T) {
	t.Parallel()
	const start, length = window.Instant(1e15), time.Minute
	var now atomic.Int64
	now.Store(int64(start))
	read := make(chan struct{}, 8)
	s := memstore.New(memstore.WithMachine(func() (steady, wall window.Instant) {
		at := window.Instant(now.Load())
		select {
		case read <- struct{}{}:
		default:
		}
		return at, at
	}))
	defer s.Close()
	limit, space := window.MustCompile(window.Limit{Quota: 1, Window: window.Sliding(length)}), store.NewSpace("", "x", "", 0)
	take := func(keys int) bool {
		ops := make([]store.Op, keys)
		for i := range ops {
			ops[i] = store.Op{Space: space, Limit: limit, Key: []byte(strconv.Itoa(i)), N: 1, Role: store.Shadow}
		}
		if err := store.Do(t.Context(), s, store.Take, ops); err != nil {
			t.Error(err)
		}
		return ops[0].Result.Allowed
	}
	if !take(1) {
		t.Fatal("first hit: got denied, want allowed")
	}

	// The time is read before so many keys are put in order, which takes a while.
	<-read
	now.Store(int64(start.Add(length - time.Microsecond)))
	waiting := make(chan bool)
	go func() { waiting <- take(50_000) }()
	<-read
	now.Store(int64(start.Add(length)))
	s.Sweep(1000)

	if !<-waiting {
		return // the sweep came too late to matter
	}
	now.Store(int64(start.Add(2*length - time.Microsecond)))
	if take(1) {
		t.Error("a microsecond before the second hit leaves: got allowed, want denied")
	}
}

// keysOf returns how many keys s has of the space with the ID.
func keysOf(s *memstore.Store, id string) int64 { return s.Keys(store.NewSpace("", id, "", 0)) }

// do has s decide calls.
func do(t testing.TB, s store.Store, calls []store.Call) {
	if err := s.Do(t.Context(), calls); err != nil || calls[0].Err != nil {
		t.Fatal(err, calls[0].Err)
	}
}

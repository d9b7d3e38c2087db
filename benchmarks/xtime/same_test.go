package xtime_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// FuzzSame makes the same random calls on both packages, at times that do not go back, and
// compares all answers. They are equal to the last bit. (On a processor where the compiler
// fuses a multiplication with an addition they could differ in it.) The calls end where
// x/time gives back more than a reservation took, because from there on the packages
// differ.
func FuzzSame(f *testing.F) {
	for seed := range uint64(2000) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { same(t, seed, 200) })
}

// TestRandomRunsAreLong counts the calls that FuzzSame compares.
func TestRandomRunsAreLong(t *testing.T) {
	t.Parallel()
	calls := 0
	for seed := range uint64(1000) {
		calls += same(t, seed, 200)
	}
	if calls < 1000*100 {
		t.Errorf("got %d calls on average, want at least 100 of 200", calls/1000)
	}
}

// A taken is a reservation of both packages, and the tokens that it holds.
type taken struct {
	weir, xtime reservation
	tokens      int
}

// same makes up to calls random calls, and returns their number.
func same(t *testing.T, seed uint64, calls int) int {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 1))
	limits := []float64{0.1, 1, 3, 10, 7.7, 1000, 1e6, 3e9}
	limit, burst := limits[rnd.IntN(len(limits))], rnd.IntN(12)
	weir, xtime := newWeir(limit, burst), newXTime(limit, burst)
	now, log := start, fmt.Sprintf("NewLimiter(%v, %d)\n", limit, burst)
	var held []*taken
	for call := range calls {
		if rnd.IntN(3) > 0 {
			now = now.Add(time.Duration(rnd.Float64() * 3e9 / min(max(limit, 0.1), 1e9)))
		}
		n := rnd.IntN(max(burst, 1) + 2)
		var got, want any
		switch op := rnd.IntN(20); {
		case op < 6:
			if call%9 == 0 {
				n = -n
			}
			log += fmt.Sprintf("%v: AllowN(%d)\n", now.Sub(start), n)
			got, want = weir.AllowN(now, n), xtime.AllowN(now, n)
		case op < 12:
			log += fmt.Sprintf("%v: ReserveN(%d)\n", now.Sub(start), n)
			r := &taken{weir.ReserveN(now, n), xtime.ReserveN(now, n), n}
			if limit == inf || !r.xtime.OK() {
				r.tokens = 0
			}
			if limit > 0 { // what cannot be had for centuries is not cancelled
				held = append(held, r)
			}
			got = fmt.Sprint(r.weir.OK(), r.weir.DelayFrom(now), r.weir.DelayFrom(now.Add(time.Second)))
			want = fmt.Sprint(r.xtime.OK(), r.xtime.DelayFrom(now), r.xtime.DelayFrom(now.Add(time.Second)))
		case op < 17:
			if len(held) == 0 {
				continue
			}
			i := rnd.IntN(len(held))
			r := held[i]
			held[i] = held[len(held)-1]
			held = held[:len(held)-1] // a second cancel differs
			log += fmt.Sprintf("%v: CancelAt for %d\n", now.Sub(start), r.tokens)
			before := xtime.TokensAt(now)
			r.weir.CancelAt(now)
			r.xtime.CancelAt(now)
			if w, x := weir.TokensAt(now), xtime.TokensAt(now); w != x {
				const rounding = 1e-9
				if taken := float64(r.tokens); w-before > taken+rounding || x-before < taken-rounding {
					t.Fatalf("%sgot %v tokens back, and %v from x/time, want at most %v", log, w-before, x-before, taken)
				}
				return call
			}
		case op < 18:
			limit = append(limits, 0, inf)[rnd.IntN(len(limits)+2)]
			log += fmt.Sprintf("%v: SetLimitAt(%v)\n", now.Sub(start), limit)
			weir.SetLimitAt(now, limit)
			xtime.SetLimitAt(now, limit)
			got, want = weir.Limit(), xtime.Limit()
		case op < 19:
			burst = rnd.IntN(12)
			log += fmt.Sprintf("%v: SetBurstAt(%d)\n", now.Sub(start), burst)
			weir.SetBurstAt(now, burst)
			xtime.SetBurstAt(now, burst)
			got, want = weir.Burst(), xtime.Burst()
		default:
			later := now.Add(time.Duration(rnd.Int64N(int64(time.Second))))
			log += fmt.Sprintf("%v: TokensAt(%v)\n", now.Sub(start), later.Sub(start))
			got, want = weir.TokensAt(later), xtime.TokensAt(later)
		}
		if got != want {
			t.Fatalf("%sgot %v, want %v", log, got, want)
		}
		if got, want := weir.TokensAt(now), xtime.TokensAt(now); got != want {
			t.Fatalf("%sgot %v tokens, want %v", log, got, want)
		}
	}
	return calls
}

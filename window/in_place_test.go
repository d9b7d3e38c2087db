package window_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirhq/weir/window"
)

// A take in place gives the answers of Take, and leaves the same states.
func inPlaceLaws(t *testing.T, data []byte) (compared int) {
	g := &source{data}
	l := g.limit()
	c, err := window.Compile(l)
	if err != nil {
		return 0
	}
	var s window.State
	now := window.Instant(1_700_000_000_000_000)
	for len(g.data) > 0 {
		call := g.call(&l, now, 0)
		now = call.now
		if len(s) > 0 {
			room := append(make(window.State, 0, len(s)+len(g.data)%4), s...)
			var r window.Result
			if next, ok := c.TakeInPlace(&r, room, now, call.hits); ok {
				compared++
				want, answer := c.Take(slices.Clone(s), now, call.hits)
				if r != answer {
					t.Fatalf("%+v: %+v at %d on %v: got %+v, want %+v", l, call.hits, now, s, r, answer)
				}
				if !slices.Equal(next, want) {
					t.Fatalf("%+v: %+v at %d on %v: got state %v, want %v", l, call.hits, now, s, next, want)
				}
				if len(next) > 0 && &next[0] != &room[0] {
					t.Fatalf("%+v: %+v at %d on %v: the next state is not in place", l, call.hits, now, s)
				}
			} else if !slices.Equal(room, s) {
				t.Fatalf("%+v: %+v at %d: a take that does not fit changed %v to %v", l, call.hits, now, s, room)
			}
		}
		switch call.verb {
		case record:
			s, _ = c.Record(s, now, call.hits)
		case refund:
			s, _ = c.Refund(s, now, call.hits)
		default:
			s, _ = c.Take(s, now, call.hits)
		}
	}
	return compared
}

func TestInPlaceLaws(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(13, 14))
	compared := 0
	for range 6000 {
		compared += inPlaceLaws(t, randomBytes(rnd, 400))
	}
	if compared < 10_000 {
		t.Errorf("got %d takes in place, want more", compared)
	}
}

func FuzzInPlaceLaws(f *testing.F) {
	f.Add(randomBytes(rand.New(rand.NewPCG(1, 2)), 400))
	f.Fuzz(func(t *testing.T, data []byte) { inPlaceLaws(t, data) })
}

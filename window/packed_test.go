package window_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/window"
)

// A state that fits in a word gives the same answers there, and becomes the same
// state.
func packedLaws(t *testing.T, data []byte) (packed int) {
	g := &source{data}
	l := g.limit()
	c, err := window.Compile(l)
	if err != nil || !c.Packs() {
		return 0
	}
	var s window.State
	now := window.Instant(1_700_000_000_000_000)
	for len(g.data) > 0 {
		call := g.call(&l, now, 0)
		now = call.now
		n := max(call.hits.N, 0)
		if len(s) > 0 && n > 0 {
			p, word, ok := c.Pack(slices.Clone(s))
			if ok {
				if back := p.Unpack(nil, word); !slices.Equal(back, s) {
					t.Fatalf("%+v: state %v comes back as %v", l, s, back)
				}
				for range 3 {
					var r window.Result
					next, ok := p.Take(&r, word, now, n)
					if !ok {
						break
					}
					packed++
					want, answer := c.Take(slices.Clone(s), now, window.Hits{N: n})
					if r != answer {
						t.Fatalf("%+v: %d hits at %d on %v: got %+v, want %+v", l, n, now, s, r, answer)
					}
					if got := p.Unpack(nil, next); !slices.Equal(got, want) {
						t.Fatalf("%+v: %d hits at %d on %v: got state %v, want %v", l, n, now, s, got, want)
					}
					if !r.Allowed && next != word {
						t.Fatalf("%+v: a denied take changed the word", l)
					}
					if again, ok := p.Repack(want); ok && again != next {
						t.Fatalf("%+v: state %v is the word %d and %d", l, want, again, next)
					}
					s, word = want, next
				}
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
	return packed
}

func TestPackedLaws(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(11, 12))
	packed := 0
	for range 6000 {
		packed += packedLaws(t, randomBytes(rnd, 400))
	}
	if packed < 10_000 {
		t.Errorf("got %d takes from words, want more", packed)
	}
}

func FuzzPackedLaws(f *testing.F) {
	f.Add(randomBytes(rand.New(rand.NewPCG(1, 2)), 400))
	f.Fuzz(func(t *testing.T, data []byte) { packedLaws(t, data) })
}

// TakeInPlace gives the answers of Take, and leaves the same states.
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
			compareEnds(t, c, s, now)
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

// compareEnds checks that TakeEnds, where it decides, gives the answer of Take and leaves
// the same state.
func compareEnds(t *testing.T, c *window.Compiled, s window.State, now window.Instant) (compared bool) {
	t.Helper()
	var r window.Result
	word, ok := c.TakeEnds(&r, window.Ends{First: s[0], Last: s[len(s)-1], Words: len(s)}, now)
	if !ok {
		if r != (window.Result{}) {
			t.Fatalf("%+v: at %d on %v: got %+v where TakeEnds does not decide", c.Limit(), now, s, r)
		}
		return false
	}
	next := slices.Clone(s)
	if r.Allowed {
		next = append(next, word)
	}
	want, answer := c.Take(slices.Clone(s), now, window.Hits{N: 1})
	if r != answer || !slices.Equal(next, want) {
		t.Fatalf("%+v: at %d on %v: got %+v and state %v, want %+v and %v", c.Limit(), now, s, r, next, answer, want)
	}
	return true
}

// TestTakeEnds takes one hit after another from plain logs of all lengths. TestInPlaceLaws
// compares TakeEnds on random states of all kinds.
func TestTakeEnds(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(15, 16))
	decided, left := 0, 0
	for range 200 {
		c := window.MustCompile(window.Limit{Quota: 1 + rnd.Int64N(20), Window: window.Sliding(time.Millisecond)})
		var s window.State
		now := window.Instant(1_700_000_000_000_000)
		for range 200 {
			if len(s) > 0 {
				switch {
				case compareEnds(t, c, s, now):
					decided++
				case window.Instant(s[0]) > now-1000:
					t.Fatalf("at %d on %v: TakeEnds does not decide although no hit has left", now, s)
				default:
					left++
				}
			}
			s, _ = c.Take(s, now, window.Hits{N: 1})
			now += window.Instant(rnd.Int64N(200) - 20)
		}
	}
	if decided < 1000 || left < 1000 {
		t.Errorf("got %d takes from ends, and %d where hits had left, want more", decided, left)
	}
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

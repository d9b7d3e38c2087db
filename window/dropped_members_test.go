package window_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/window"
)

// visits are the members of a key with all of their uses.
type visits struct {
	l      *window.Compiled
	inside map[uint64]*visit
	to     window.Instant // the end of the period; not for sliding windows
}

// visit is a member. It keeps the date of its newest use until all of them were given back.
type visit struct {
	newest window.Instant
	all    int
	uses   []window.Instant // inside and not given back
}

func (v *visits) left(at, now window.Instant) bool {
	if v.l.Window.Kind == window.KindSliding {
		return at.Add(v.l.Window.Length) <= now
	}
	return v.to <= now
}

func (v *visits) forget(now window.Instant) {
	for member, m := range v.inside {
		m.uses = slices.DeleteFunc(m.uses, func(at window.Instant) bool { return v.left(at, now) })
		if v.left(m.newest, now) {
			delete(v.inside, member)
		}
	}
}

// add adds a use. A period ends where r says.
func (v *visits) add(now window.Instant, member uint64, r window.Result) {
	m := v.inside[member]
	if m == nil {
		m = &visit{}
		v.inside[member] = m
	}
	m.newest, m.all, m.uses, v.to = now, m.all+1, append(m.uses, now), now.Add(r.ResetAfter)
}

func (v *visits) refund(member uint64) {
	m := v.inside[member]
	if m == nil {
		return
	}
	m.uses = m.uses[:max(0, len(m.uses)-1)]
	if m.all--; m.all == 0 {
		delete(v.inside, member)
	}
}

// used returns how many members have uses inside.
func (v *visits) used() (n int64) {
	for _, m := range v.inside {
		if len(m.uses) > 0 {
			n++
		}
	}
	return n
}

// However many members are recorded past the quota and refunded, a take admits no new member
// while as many as the quota are inside, and a denied one fits when it was told to come back.
func TestDroppedMembersStayCounted(t *testing.T) {
	t.Parallel()
	for _, w := range []window.Window{window.Sliding(time.Minute), window.Fixed(time.Minute), window.Calendar(window.Minute, nil)} {
		for _, quota := range []int64{1, 2, 3, 10} {
			t.Run(fmt.Sprintf("%v/quota=%d", w.Kind, quota), func(t *testing.T) {
				t.Parallel()
				rnd := rand.New(rand.NewPCG(6, uint64(quota)))
				l := window.MustCompile(window.Limit{Quota: quota, Measure: window.Distinct, Window: w})
				truth := &visits{l: l, inside: map[uint64]*visit{}}
				var s window.State
				var r window.Result
				now, admitted, denied := window.Instant(1e9), 0, 0
				for i := range 20_000 {
					if now += window.Instant(rnd.Int64N(20e6 / quota)); rnd.IntN(50) == 0 {
						now += 40e6
					}
					c := call{
						[]verb{take, take, record, refund, refund}[rnd.IntN(5)], now,
						window.Hits{N: 1, Member: uint64(rnd.Int64N(2*quota + 2))},
					}
					truth.forget(now)
					before, known := truth.used(), truth.inside[c.hits.Member] != nil
					s, r = c.do(l, s)
					switch {
					case c.verb == refund:
						truth.refund(c.hits.Member)
					case r.Allowed:
						if c.verb == take && !known && before >= quota {
							t.Fatalf("call %d: member %d was admitted at %d beside %d", i, c.hits.Member, now, before)
						}
						truth.add(now, c.hits.Member, r)
						admitted++
					default:
						denied++
						if again := l.Check(s, now.Add(r.RetryAfter), c.hits); !again.Allowed {
							t.Fatalf("call %d: denied for %v, and after that: %+v", i, r.RetryAfter, again)
						}
					}
					if len(s) > l.MaxWords() {
						t.Fatalf("call %d: got %d words, want at most %d", i, len(s), l.MaxWords())
					}
				}
				if admitted < 1000 || denied < 1000 {
					t.Errorf("got %d calls counted and %d denied, want many of both", admitted, denied)
				}
			})
		}
	}
}

package window_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/window"
)

// FuzzLaws checks the laws that all kinds share, with any limit and any calls.
// Its bytes are a limit and then calls. Limits that Validate refuses are skipped.
// The seeds are four of each pair of a kind and a measure.
func FuzzLaws(f *testing.F) {
	rnd := rand.New(rand.NewPCG(1, 2))
	type pair struct {
		kind    window.Kind
		measure window.Measure
	}
	seeds := map[pair]int{}
	for range 2000 {
		data := randomBytes(rnd, 250)
		l := (&source{data}).limit()
		if p := (pair{l.Window.Kind, l.Measure}); l.Validate() == nil && seeds[p] < 4 {
			seeds[p]++
			f.Add(data)
		}
	}
	if got, want := len(seeds), len(allKinds)*3-3; got != want { // no members in cells, buckets and ever
		f.Fatalf("got seeds for %d pairs of kind and measure, want %d", got, want)
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkLaws(t, data) })
}

// TestLaws checks the same laws in a fixed run, and that the run meets every kind
// with every measure that it counts.
func TestLaws(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	type pair struct {
		kind    window.Kind
		measure window.Measure
		after   bool
	}
	runs := map[pair]int{}
	for range 5_000 {
		if l, ok := checkLaws(t, randomBytes(rnd, 40+rnd.IntN(300))); ok {
			runs[pair{l.Window.Kind, l.Measure, l.After.Count > 0}]++
		}
	}
	for _, kind := range allKinds {
		for measure := window.Count; measure <= window.Distinct; measure++ {
			if measure == window.Distinct && (kind == window.KindCells || kind == window.KindBucket || kind == window.KindEver) {
				continue
			}
			if got := runs[pair{kind, measure, false}]; got < 100 {
				t.Errorf("%v of %v: got %d runs, want at least 100", kind, measure, got)
			}
			if got := runs[pair{kind, measure, true}]; measure != window.Distinct && got < 10 {
				t.Errorf("%v of %v after a count: got %d runs, want at least 10", kind, measure, got)
			}
		}
	}
}

// checkLaws decodes and runs data. It returns false when the limit is invalid.
func checkLaws(t *testing.T, data []byte) (window.Limit, bool) {
	g := &source{data}
	l := g.limit()
	compiled, err := window.Compile(l)
	if err != nil {
		return l, false
	}
	k := &checker{t: t, Compiled: compiled, l: l}
	now := window.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))
	if g.below(8) == 0 {
		now = 0
	}
	var last time.Duration
	for len(g.data) > 0 && !t.Failed() {
		c := g.call(&l, now, last)
		last = max(0, k.call(c).RetryAfter)
		now = c.now
	}
	return l, true
}

// checker checks the laws for the calls of one key.
type checker struct {
	t *testing.T
	*window.Compiled
	l window.Limit // what it was compiled from
	s window.State
	c call // the one that is looked at

	// past reports whether more was counted than Used shows: hits were recorded
	// past the quota, or a bucket's clock ran backwards.
	past   bool
	latest window.Instant
}

func (k *checker) want(law bool, what string, args ...any) {
	if !law {
		k.t.Helper()
		k.t.Fatalf("%+v\n%s of %+v at %d, state %v:\n"+what, append([]any{k.l, k.c.verb, k.c.hits, k.c.now, k.s}, args...)...)
	}
}

// call makes c and checks every law around it.
func (k *checker) call(c call) window.Result {
	before := slices.Clone(k.s)
	k.c = c
	look := k.look(c.now)
	k.past = len(k.s) > 0 && (k.past || k.l.Window.Kind == window.KindBucket && c.now < k.latest)
	k.latest = max(k.latest, c.now)
	asked := k.Check(k.s, c.now, c.hits)
	k.bounds(asked)
	k.want(slices.Equal(k.s, before), "check changed the state from %v", before)
	k.backwards(look)

	room := k.RecordWords(k.s, c.hits)
	k.want(room <= k.MaxWords() || len(before) > k.MaxWords(), "got room %d, want at most MaxWords, %d", room, k.MaxWords())
	if c.verb == take {
		most := room
		room = k.TakeWords(k.s, c.hits)
		k.want(room <= max(most, len(before)), "got room %d for a take, want at most %d", room, most)
	}
	reserved := append(make(window.State, 0, max(room, len(before))), before...)
	s, r := c.do(k.Compiled, reserved)
	k.withoutLog(c, before, s, r)
	k.s = slices.Clone(s)
	k.bounds(r)
	k.want(len(s) <= k.MaxWords(), "got %d words, want at most MaxWords, %d", len(s), k.MaxWords())
	if c.verb == take || c.verb == record {
		k.want(len(s) <= room || len(s) <= len(before), "got %d words, want at most the room, %d", len(s), room)
		k.want(len(s) == 0 || cap(s) == 0 || &s[:1][0] == &reserved[:1][0], "got a new array although there was room")
	}
	switch {
	case c.verb == check || c.hits.N <= 0:
		k.want(slices.Equal(s, before), "a look changed the state from %v", before)
		k.want(c.verb == check || r == look, "a call without hits: got %+v, want what a look says, %+v", r, look)
	case c.verb == take && !r.Allowed:
		k.want(slices.Equal(s, before), "a denied take changed the state from %v", before)
		k.denied(c, before, r)
	case c.verb == refund:
		k.refunded(c, look, r)
	default:
		k.counted(c, look, r)
	}
	if c.verb == take {
		k.want(asked.Allowed == r.Allowed && asked.RetryAfter == r.RetryAfter && asked.Before == r.Before,
			"check said %+v, the take that followed %+v", asked, r)
	}
	if c.verb == take && r.Allowed && c.hits.N > 0 {
		next, counted := k.Count(asked, before, c.now, c.hits)
		k.want(counted == r && slices.Equal(next, s), "got %+v and state %v by a check and a count, want %+v and %v of the take", counted, next, r, s)
	}
	k.expires(r)
	k.leaves(c.now)
	return r
}

// leaves checks that the hits in the history of a sliding or held window leave when it says.
func (k *checker) leaves(now window.Instant) {
	l := &k.l
	if l.After.Count > 0 || l.Window.Kind != window.KindSliding && l.Window.Kind != window.KindHeld {
		return
	}
	reading := k.Read(k.s, now)
	left := int64(0)
	for _, c := range reading.History {
		left += c.Hits
	}
	k.want(min(left, window.MaxHits) == reading.Used, "got %d hits in the history, want %d", left, reading.Used)
	for _, c := range reading.History {
		left -= c.Hits
		at := c.Start.Add(l.Window.Length)
		k.want(c.Hits > 0 && c.Length == 0 && at > reading.At, "got %+v in the history at %d", c, reading.At)
		if at <= latestInstant {
			got := k.look(at).Used
			k.want(got == min(left, window.MaxHits), "%+v has left: got %d used, want %d", c, got, left)
		}
	}
}

// withoutLog checks that the fast path of logs of dates returns the result and the
// state that the sliding window returns without it.
func (k *checker) withoutLog(c call, before, after window.State, r window.Result) {
	s, want := c.do(k.WithoutLog(), slices.Clone(before))
	k.want(r == want, "got %+v, want what the sliding window answers, %+v", r, want)
	k.want(slices.Equal(after, s), "got state %v, want that of the sliding window, %v", after, s)
}

// endless reports whether hits may stay for good.
func (k *checker) endless() bool {
	return k.l.Window.Kind == window.KindEver || k.l.After.Count > 0 && k.l.After.Window.Kind == window.KindEver
}

// estimate reports whether Used is not exact: a counter in cells weighs its
// oldest cell.
func (k *checker) estimate() bool {
	return k.l.Quota == window.Unlimited && k.l.Window.Kind == window.KindCells
}

func (k *checker) look(now window.Instant) window.Result { return k.Check(k.s, now, window.Hits{}) }

// bounds checks the laws of a single result.
func (k *checker) bounds(r window.Result) {
	l := &k.l
	k.want(r.Used >= 0 && r.Used <= window.MaxHits, "got used %d, want 0 to 2^53-1", r.Used)
	k.want(r.Before >= 0 && r.Before <= window.MaxHits, "got before %d, want 0 to 2^53-1", r.Before)
	if l.Quota == window.Unlimited {
		k.want(r.Quota == window.Unlimited && r.Remaining == window.Unlimited && r.Allowed && r.RetryAfter == 0, "a counter: got %+v", r)
	} else {
		quota := l.Quota
		if l.Window.Kind == window.KindBucket && l.Window.Burst > 0 && quota > 0 {
			quota = l.Window.Burst
		}
		k.want(r.Quota == quota, "got quota %d, want %d", r.Quota, quota)
		k.want(r.Remaining == max(0, quota-r.Used), "got remaining %d, want %d", r.Remaining, max(0, quota-r.Used))
	}
	k.want(r.Allowed == (r.RetryAfter == 0), "got allowed %v and retry after %v, want denied ⇔ a wait", r.Allowed, r.RetryAfter)
	k.want(r.RetryAfter >= 0 || r.RetryAfter == window.Never, "got retry after %v", r.RetryAfter)
	k.want(r.ResetAfter >= 0 || r.ResetAfter == window.Never && k.endless(), "got reset after %v", r.ResetAfter)
}

// backwards checks that an earlier instant frees nothing.
func (k *checker) backwards(look window.Result) {
	for _, back := range []window.Instant{1, window.Instant(k.l.Window.Length.Microseconds() / 2), 1 << 40} {
		earlier := k.look(k.c.now - back)
		if k.l.Quota == window.Unlimited {
			k.want(earlier.Used >= look.Used, "%dµs earlier: got %d used, want at least %d", back, earlier.Used, look.Used)
			continue
		}
		k.want(earlier.Remaining <= look.Remaining, "%dµs earlier: got %d left, want at most %d", back, earlier.Remaining, look.Remaining)
	}
}

// instantFor returns the instant that now counts as, from which waits are measured.
func (k *checker) clock(s window.State, now window.Instant) window.Instant { return k.Read(s, now).At }

// denied checks that the same hits fit after RetryAfter and not a microsecond
// before, and that hits which never fit do not fit an unused key either.
func (k *checker) denied(c call, s window.State, r window.Result) {
	l := &k.l
	if r.RetryAfter == window.Never && k.endless() {
		k.want(!k.Check(s, latestInstant, c.hits).Allowed, "got never, yet the hits fit in the end")
		return
	}
	if r.RetryAfter == window.Never {
		fits := l.Measure == window.Distinct && r.Quota > 0 || l.Measure != window.Distinct && c.hits.N <= r.Quota
		k.want(!fits, "got never, want a wait: %+v", r)
		k.want(!k.Check(nil, c.now, c.hits).Allowed, "got never, yet an unused key admits it")
		return
	}
	now := k.clock(s, c.now)
	k.want(now >= c.now, "got waits measured from %d, before the call", now)
	at := now.Add(r.RetryAfter)
	if at > latestInstant {
		return
	}
	after, before := k.Check(s, at, c.hits), k.Check(s, at-1, c.hits)
	k.want(after.Allowed, "denied for %v, and after that long: %+v", r.RetryAfter, after)
	k.want(!before.Allowed, "denied for %v, and yet allowed 1µs before: %+v", r.RetryAfter, before)
}

// counted checks that used holds what was admitted or recorded.
func (k *checker) counted(c call, look, r window.Result) {
	n := c.hits.N
	k.want(r.Before == look.Used, "got before %d, want what a look says, %d", r.Before, look.Used)
	k.past = k.past && look.Used > 0
	switch {
	case k.l.After.Count > 0:
		k.want(r.Used >= min(r.Before, r.Quota) && r.Used <= r.Before+n, "got %d used after %d and %d hits", r.Used, r.Before, n)
	case k.l.Measure == window.Distinct:
		k.want(r.Used >= r.Before && r.Used <= r.Before+1, "got %d used after %d and a member", r.Used, r.Before)
	case k.estimate():
		k.want(r.Used >= r.Before && r.Used <= r.Before+min(n, window.MaxHits), "got %d used after %d and %d hits", r.Used, r.Before, n)
	case c.verb == take:
		k.want(r.Used == min(window.MaxHits, r.Before+min(n, window.MaxHits)), "got %d used after %d and %d hits", r.Used, r.Before, n)
	case c.verb == record && k.l.Quota != window.Unlimited:
		all := min(window.MaxHits, r.Before+min(n, window.MaxHits))
		k.want(r.Used <= all && r.Used >= min(all, r.Quota), "recorded %d on %d: got %d used", n, r.Before, r.Used)
		k.past = k.past || n > r.Quota-r.Before
	}
	if c.verb == take && k.l.Quota != window.Unlimited && k.l.Measure != window.Distinct && k.l.After.Count == 0 {
		k.want(r.Used <= r.Quota, "admitted over the quota: %+v", r)
	}
}

// refunded checks that used falls by n, or to 0.
func (k *checker) refunded(c call, look, r window.Result) {
	n := c.hits.N
	k.want(r.Before == look.Used, "got before %d, want what a look says, %d", r.Before, look.Used)
	k.want(r.Used <= r.Before, "a refund raised used from %d to %d", r.Before, r.Used)
	switch {
	case k.l.After.Count > 0:
	case k.l.Measure == window.Distinct:
		k.want(r.Used >= r.Before-1, "one member's refund: used fell from %d to %d", r.Before, r.Used)
	case k.estimate():
	default:
		lowered := max(0, r.Before-n)
		k.want(r.Used >= lowered, "a refund of %d: used fell from %d to %d", n, r.Before, r.Used)
		k.want(r.Used == lowered || k.past, "a refund of %d: used fell from %d to %d", n, r.Before, r.Used)
	}
}

// expires checks that the state is as good as none from Expires on, and not
// before.
func (k *checker) expires(r window.Result) {
	l, at := &k.l, k.Expires(k.s)
	if len(k.s) == 0 {
		k.want(at == 0, "an empty state: got expiry %d, want 0", at)
		return
	}
	if at > latestInstant {
		return
	}
	for _, h := range []window.Hits{{}, {N: 1, Member: k.c.hits.Member}, k.c.hits} {
		got, want := k.Check(k.s, at, h), k.Check(nil, at, h)
		k.want(got == want, "expired at %d: check of %+v got %+v, want that of an unused key, %+v", at, h, got, want)
	}
	if r.Used > 0 && !k.estimate() && l.After.Count == 0 {
		k.want(k.look(at-1).Used > 0 || keepsClosed(k.Compiled), "unused 1µs before it expires at %d", at)
		k.want(r.ResetAfter > 0, "got reset after %v with %d used", r.ResetAfter, r.Used)
	}
}

package script_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/window"
)

// TestFastPath runs the same calls in the program with the fast path, in the one without it,
// and as a call of a batch. The replies and the states are equal, byte for byte.
func TestFastPath(t *testing.T) {
	t.Parallel()
	quotas := []int64{7, 1000, 900, 0} // 900: another group of a sliding window
	for name, of := range map[string]struct {
		window window.Window
		quotas []int64
	}{
		"sliding": {window.Sliding(time.Minute), quotas}, "fixed": {window.Fixed(time.Minute), quotas}, "bucket": {window.Bucket(time.Minute, 0), quotas},
		"sliding in groups":      {window.Window{Kind: window.KindSliding, Length: time.Minute, Precision: 5}, []int64{1001, 1000, 900, 0}},
		"sliding, a log of hits": {window.Sliding(time.Minute), []int64{40, 30, 50, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var limits []*window.Compiled
			for _, quota := range of.quotas {
				limits = append(limits, window.MustCompile(window.Limit{Quota: quota, Window: of.window}))
			}
			runFastPath(t, limits, 2)
		})
	}
}

// TestFastPathOfSeveralKinds does the same for keys of several kinds.
func TestFastPathOfSeveralKinds(t *testing.T) {
	t.Parallel()
	for name, quotas := range map[string][]int64{"few hits": {7, 8, 9}, "in groups": {1001, 1000, 1200}, "logs": {40, 60, 50}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var limits []*window.Compiled
			for i, w := range []window.Window{window.Sliding(time.Minute), window.Fixed(30 * time.Second), window.Bucket(time.Minute, 0)} {
				limits = append(limits, window.MustCompile(window.Limit{Quota: quotas[i], Window: w}))
			}
			runFastPath(t, limits, len(limits))
		})
	}
}

// runFastPath makes calls for four keys. Most of them have the same limit each time, of the
// first usual ones.
func runFastPath(t *testing.T, limits []*window.Compiled, usual int) {
	n := redistest.Server(t)
	codec := script.NewCodec("p")
	mixed := codec.Mixed()
	rng := rand.New(rand.NewPCG(3, 9))
	decided := 0 // calls that the fast path decides
	exact := 0   // those of them that add a hit to a log of hits
	loaded := map[*script.Program]bool{}
	now := window.At(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC))
	calls := 2400
	if testing.Short() {
		calls = 800
	}
	for call := range calls {
		paces := []time.Duration{1, time.Second, 10 * time.Second, 70 * time.Second}
		now = now.Add(time.Duration(rng.Int64N(int64(paces[min(rng.IntN(12), 3)]))))
		if rng.IntN(20) == 0 {
			now -= 1_000_000 // a clock that was set back
		}
		step := script.Call{Verb: store.Take}
		if rng.IntN(5) == 0 {
			step.Verb = store.Check
		}
		for _, key := range rng.Perm(4)[:1+rng.IntN(3)] {
			limit := limits[key%usual]
			if rng.IntN(15) == 0 {
				limit = limits[rng.IntN(len(limits))]
			}
			step.Ops = append(step.Ops, store.Op{
				Space: store.NewSpace("", "s", "", 0), Limit: limit, Key: fmt.Append(nil, key), N: rng.Int64N(1 + max(2, limit.Capacity()/30)),
			})
		}
		step.Now = now
		fast, _, args, err := codec.Encode(&step, 0, 0, nil)
		if err != nil || !codec.IsFast(fast) {
			t.Fatalf("call %d: got another program for %v of %d ops, or error %v", call, step.Verb, len(step.Ops), err)
		}
		_, _, stale, err := codec.Encode(&step, 0, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		var late string
		run := func(p *script.Program, prefix string, neighbours ...string) (reply, states string) {
			if !loaded[p] {
				n.Must("SCRIPT", "LOAD", p.Text)
				loaded[p] = true
			}
			command := []string{"EVALSHA", p.SHA, strconv.Itoa(len(step.Ops) * (1 + len(neighbours)))}
			for _, prefix := range append(neighbours, prefix) {
				for i := range step.Ops {
					command = append(command, prefix+string(step.Ops[i].Key))
				}
			}
			with := []string{args}
			if len(neighbours) > 0 {
				with = script.BatchArgs(append(slices.Repeat([]string{args}, len(neighbours)-1), late, args), command[3:])
			}
			reply = n.Must(append(command, with...)...).(string)
			keys := command[len(command)-len(step.Ops):]
			return reply, fmt.Sprintf("%q", n.Must(append([]string{"MGET"}, keys...)...))
		}
		got, gotStates := run(fast, "fast")
		want, wantStates := run(mixed, "mixed")
		if got != want || gotStates != wantStates {
			t.Fatalf("call %d, %v of %d ops:\ngot  %q, states %s\nwant %q, states %s", call, step.Verb, len(step.Ops), got, gotStates, want, wantStates)
		}
		for what, p := range map[string]*script.Program{"fast": fast.Batch, "mixed": mixed.Batch} {
			// The call follows another one, which is the same on other keys, and
			// one that is too late, or only one like itself.
			neighbours := []string{what + "neighbour", what + "late"}
			if late = stale; call%2 == 0 {
				neighbours, late = neighbours[:1], args
			}
			all, states := run(p, what+"batch", neighbours...)
			replies := script.ReadReply(all)
			first, err := replies.Next(len(step.Ops))
			if first.Shares() {
				decided++
				if op := step.Ops[0]; len(step.Ops) == 1 && !script.InGroups(op.Limit) && step.Verb == store.Take && op.N > 0 {
					exact++
				}
			}
			if err == nil && call%2 == 1 {
				var tooLate script.Reply
				tooLate, err = replies.Next(len(step.Ops))
				if _, why := codec.Decode(&step, nil, tooLate); !errors.Is(why, script.ErrStale) {
					t.Fatalf("call %d: got error %v, want %v", call, why, script.ErrStale)
				}
			}
			var second script.Reply
			if err == nil {
				second, err = replies.Next(len(step.Ops))
			}
			if err != nil || first.Whole() != want || second.Whole() != want || replies.Rest() != "" || states != wantStates {
				t.Fatalf("call %d, %v of %d ops in a batch:\ngot  %q and %q, error %v, states %s\nwant %q, states %s", call, step.Verb, len(step.Ops), first.Whole(), second.Whole(), err, states, want, wantStates)
			}
		}
		// A call that stands twice in a batch is decided twice.
		if call%4 == 0 {
			one, _ := run(mixed, "twice")
			two, wantStates := run(mixed, "twice")
			late = args
			for what, p := range map[string]*script.Program{"fast": fast.Batch, "mixed": mixed.Batch} {
				all, states := run(p, what+"pair", what+"pair")
				replies := script.ReadReply(all)
				first, err := replies.Next(len(step.Ops))
				second, other := replies.Next(len(step.Ops))
				if err != nil || other != nil || first.Whole() != one || second.Whole() != two || states != wantStates {
					t.Fatalf("call %d, %v of %d ops twice in a batch:\ngot  %q and %q, errors %v and %v, states %s\nwant %q and %q, states %s", call, step.Verb, len(step.Ops),
						first.Whole(), second.Whole(), err, other, states, one, two, wantStates)
				}
			}
		}
	}
	if decided < calls/40 {
		t.Errorf("got %d of %d batches that the fast path decides, want a twentieth", decided, calls/2)
	}
	if limit := limits[0]; limit.Window.Kind == window.KindSliding && limit.Capacity() == 40 && exact < calls/100 {
		t.Errorf("got %d of %d calls that add a hit to a log of hits, want a fiftieth", exact, calls/2)
	}
}

// A step whose calendar periods are off is sent again with those that the server names,
// twice for each op and once more. That a key has a ban does not count.
func TestAgain(t *testing.T) {
	t.Parallel()
	const now, later = window.Instant(1e15), window.Instant(2e15)
	call := script.Call{Ops: make([]store.Op, 1)}
	again := func(err error, want bool) {
		t.Helper()
		if got := call.Again(err, now); got != want {
			t.Errorf("after %v: got %t, want %t", err, got, want)
		}
	}
	ban := &script.StateError{Head: "\x01\x0d"}
	again(errors.New("another"), false)
	again(ban, true)
	if full, _, _ := call.Retries(); !full {
		t.Error("got no program for bans")
	}
	again(ban, false)
	again(&script.CalendarError{At: later}, true)
	if _, near, first := call.Retries(); near != 0 || first != later {
		t.Errorf("a key that has seen a later instant: got %v and %v, want 0 and %v", near, first, later)
	}
	again(&script.CalendarError{At: now}, true) // its state is gone meanwhile
	if _, near, first := call.Retries(); near != now || first != now {
		t.Errorf("without the key: got %v and %v, want the server's instant", near, first)
	}
	again(&script.CalendarError{At: later}, true)
	again(&script.CalendarError{At: later}, false)
}

// Hits of a limit with a condition are given back while they are in both of
// its windows. The key stays in use for longer.
func TestInside(t *testing.T) {
	t.Parallel()
	at := window.At(time.Date(2026, 3, 2, 12, 0, 59, 800e6, time.UTC)) // 200 ms before a minute ends
	day, minute := window.Calendar(window.Day, nil), window.Calendar(window.Minute, nil)
	for _, test := range []struct {
		base, inner window.Window
		want        time.Duration
	}{
		{day, minute, 200 * time.Millisecond},
		{minute, day, 200 * time.Millisecond},
		{day, window.Sliding(2 * time.Second), 2 * time.Second},
		{window.Sliding(3 * time.Second), window.Sliding(time.Hour), 3 * time.Second},
		{day, window.Bucket(time.Second, 0), 100 * time.Millisecond},
	} {
		op := store.Op{Limit: window.MustCompile(window.Limit{
			Quota: 10, Window: test.inner, After: window.After{Count: 2, Window: test.base},
		})}
		op.Result.ResetAfter = 12 * time.Hour
		if got := script.Inside(&op, at); got != test.want {
			t.Errorf("%v after %v: got %v, want %v", test.inner, test.base, got, test.want)
		}
	}
}

// Hits that never leave can be given back at any time, also those of a limit after a count that
// never ends.
func TestInsideForEver(t *testing.T) {
	t.Parallel()
	at := window.At(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC))
	for _, limit := range []window.Limit{
		{Quota: 10, Window: window.Ever()},
		{Quota: 10, Window: window.Sliding(time.Minute), After: window.After{Count: 2, Window: window.Ever()}},
	} {
		op := store.Op{Limit: window.MustCompile(limit)}
		op.Result.ResetAfter = window.Never
		if got := script.Inside(&op, at); got < time.Minute {
			t.Errorf("%v: got %v, want at least a minute", op.Limit, got)
		}
	}
}

// The plan of a run names all keys that repeat earlier ones, and few others.
func TestRepeats(t *testing.T) {
	t.Parallel()
	var keys []string
	for i := range 64 {
		keys = append(keys, fmt.Sprintf("weir:{user-%d}:rule:%016x", i, uint64(i)*0x9e3779b97f4a7c15))
	}
	if got := script.Repeats(keys); len(got) > 6 {
		t.Errorf("different keys: got %d that are read again, want 6 at most: %v", len(got), got)
	}
	keys[10], keys[20], keys[63] = keys[3], keys[3], keys[62]
	got := map[int]bool{}
	for _, i := range script.Repeats(keys) {
		got[i] = true
	}
	for _, want := range []int{11, 21, 64} { // from 1 on
		if !got[want] {
			t.Errorf("got %v, want key %d among them", got, want)
		}
	}
	if got[4] || got[63] {
		t.Errorf("got %v, want no key before the one that repeats it", got)
	}
}

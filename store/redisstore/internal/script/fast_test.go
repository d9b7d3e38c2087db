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

// TestFastPrograms runs the same calls in the fast programs, in the general ones,
// and as a step of a run. The replies and the states are equal, byte for byte.
func TestFastPrograms(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]window.Window{
		"sliding": window.Sliding(time.Minute), "fixed": window.Fixed(time.Minute), "bucket": window.Bucket(time.Minute, 0),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var limits []*window.Compiled
			for _, quota := range []int64{7, 1000, 900, 0} { // 900: another group of a sliding window
				limits = append(limits, window.MustCompile(window.Limit{Quota: quota, Window: w}))
			}
			runFastPrograms(t, limits)
		})
	}
}

func runFastPrograms(t *testing.T, limits []*window.Compiled) {
	n := redistest.Server(t)
	codec := script.NewCodec("p")
	rng := rand.New(rand.NewPCG(3, 9))
	sliding := limits[0].Limit().Window.Kind == window.KindSliding
	now := window.At(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC))
	for call := range 4000 {
		now = now.Add(time.Duration(rng.Int64N(int64([]time.Duration{1, time.Second, 10 * time.Second, 70 * time.Second}[min(rng.IntN(12), 3)]))))
		if rng.IntN(20) == 0 {
			now -= 1_000_000 // a clock that was set back
		}
		step := script.Step{Verb: []store.Verb{store.Take, store.Take, store.Record, store.Check}[rng.IntN(4)]}
		if rng.IntN(2) == 0 {
			step.Verb = store.Take
		}
		ops := 1
		if sliding {
			ops += rng.IntN(3)
		}
		for i, key := range rng.Perm(4)[:ops] {
			limit := limits[key%2]
			if rng.IntN(15) == 0 {
				limit = limits[rng.IntN(len(limits))]
			}
			step.Ops = append(step.Ops, store.Op{
				Space: store.NewSpace("", "s", "", 0), Limit: limit, Key: fmt.Append(nil, key), N: rng.Int64N(1 + max(2, limit.Capacity()/30)),
			})
			step.Which = append(step.Which, i)
		}
		if len(step.Ops) > 1 && step.Verb == store.Record {
			step.Verb = store.Take
		}
		fast, general, args, ok := codec.EncodeFast(&step, script.Times{Now: now})
		if !ok {
			t.Fatalf("call %d: got no fast program for %v of %d ops", call, step.Verb, len(step.Ops))
		}
		_, _, stale, _ := codec.EncodeFast(&step, script.Times{Now: now, Deadline: 1})
		var late string
		run := func(p *script.Program, prefix string, neighbours ...string) (reply any, states []any) {
			command := []string{"EVAL", p.Text, strconv.Itoa(len(step.Ops) * (1 + len(neighbours)))}
			for _, prefix := range append(neighbours, prefix) {
				for i := range step.Ops {
					command = append(command, prefix+string(step.Ops[i].Key))
				}
			}
			with := []string{args}
			if len(neighbours) > 0 {
				with = script.Run(append(slices.Repeat([]string{args}, len(neighbours)-1), late, args))
			}
			reply = n.Must(append(command, with...)...)
			for i := range step.Ops {
				states = append(states, n.Must("GET", prefix+string(step.Ops[i].Key)))
			}
			return reply, states
		}
		got, gotStates := run(fast, "fast")
		want, wantStates := run(general, "general")
		if got != want || fmt.Sprintf("%q", gotStates) != fmt.Sprintf("%q", wantStates) {
			t.Fatalf("call %d, %v of %d ops:\ngot  %q, states %q\nwant %q, states %q", call, step.Verb, len(step.Ops), got, gotStates, want, wantStates)
		}
		for what, p := range map[string]*script.Program{"fast": fast.Run, "general": general.Run} {
			// The step stands behind another one, which is the same on other keys, and
			// one that comes too late, or behind one like itself only.
			neighbours := []string{what + "neighbour", what + "late"}
			if late = stale; call%2 == 0 {
				neighbours, late = neighbours[:1], args
			}
			all, states := run(p, what+"run", neighbours...)
			replies := script.RepliesIn(all.(string))
			first, err := replies.Next(len(step.Ops))
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
			if err != nil || first.Whole() != want || second.Whole() != want || replies.Rest() != "" || fmt.Sprintf("%q", states) != fmt.Sprintf("%q", wantStates) {
				t.Fatalf("call %d, %v of %d ops in a run:\ngot  %q and %q, error %v, states %q\nwant %q, states %q", call, step.Verb, len(step.Ops), first.Whole(), second.Whole(), err, states, want, wantStates)
			}
		}
	}
	if n.Info("cmdstat_setrange") == "" {
		t.Error("got no call that a fast program decided and counted, want many")
	}
}

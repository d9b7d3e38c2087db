package script_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/store/redisstore/redistest"
	"github.com/weirhq/weir/window"
)

// TestFastPrograms runs the same calls in the fast programs, in the general ones,
// and as a step of a run. The replies and the states are equal, byte for byte.
func TestFastPrograms(t *testing.T) {
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
			runFastPrograms(t, limits, 2)
		})
	}
}

// TestFastMixed does the same for keys of several kinds.
func TestFastMixed(t *testing.T) {
	t.Parallel()
	for name, quotas := range map[string][]int64{"few hits": {7, 8, 9}, "in groups": {1001, 1000, 1200}, "logs": {40, 60, 50}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var limits []*window.Compiled
			for i, w := range []window.Window{window.Sliding(time.Minute), window.Fixed(30 * time.Second), window.Bucket(time.Minute, 0)} {
				limits = append(limits, window.MustCompile(window.Limit{Quota: quotas[i], Window: w}))
			}
			runFastPrograms(t, limits, len(limits))
		})
	}
}

// TestFastHolds does the same for the program for holds and bans.
func TestFastHolds(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]window.Window{
		"sliding": window.Sliding(time.Minute), "cells": window.Cells(time.Minute, 7), "fixed": window.Fixed(time.Minute),
		"bucket": window.Bucket(time.Minute, 0), "bucket with a burst": window.Bucket(7*time.Second, 100), "held": window.Held(20 * time.Second),
		"calendar": window.Calendar(window.Minute, nil), "ever": window.Ever(),
	} {
		for _, unsettled := range []window.Unsettled{window.Keep, window.Release} {
			t.Run(fmt.Sprint(name, ", ", unsettled), func(t *testing.T) {
				t.Parallel()
				var limits []*window.Compiled
				for _, quota := range []int64{30, 1000, 900, 0, 11, 41} {
					l := window.Limit{Quota: quota, Window: w, Measure: window.Sum}
					if w.Kind != window.KindHeld && quota != 41 {
						l.Hold, l.Unsettled = 20*time.Second, unsettled
						if quota == 900 {
							l.Hold = 90 * time.Second
						}
					}
					if quota == 11 {
						l.MaxHolds = 4
						if w.Kind == window.KindSliding {
							l.Window.Precision = 2
						}
					}
					limits = append(limits, window.MustCompile(l))
				}
				runFastPrograms(t, limits, 2)
			})
		}
	}
}

// runFastPrograms makes calls for four keys. Most of them have the same limit each time, of the
// first usual ones.
func runFastPrograms(t *testing.T, limits []*window.Compiled, usual int) {
	n := redistest.Server(t)
	codec := script.NewCodec("p")
	rng := rand.New(rand.NewPCG(3, 9))
	holds := limits[0].Holds()
	sliding := limits[0].Limit().Window.Kind == window.KindSliding
	var taken []window.HoldID
	decided := 0 // by the fast part of the program for holds
	few := 0     // calls with several ops that the fast part admits
	exact := 0   // calls that add a hit to a log of hits
	loaded := map[*script.Program]bool{}
	now := window.At(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC))
	calls := 4000
	if holds {
		calls = 300 // the program is long, and there are more limits
	}
	for call := range calls {
		paces := []time.Duration{1, time.Second, 10 * time.Second, 70 * time.Second}
		pace := paces[min(rng.IntN(12), 3)]
		if holds {
			pace = []time.Duration{1, 100 * time.Millisecond, time.Second, 2 * time.Second, 30 * time.Second}[rng.IntN(5)]
		}
		now = now.Add(time.Duration(rng.Int64N(int64(pace))))
		if rng.IntN(20) == 0 {
			now -= 1_000_000 // a clock that was set back
		}
		step := script.Step{Verb: []store.Verb{store.Take, store.Take, store.Record, store.Check}[rng.IntN(4)]}
		if rng.IntN(2) == 0 {
			step.Verb = store.Take
		}
		ops := 1
		if !holds || rng.IntN(20) == 0 {
			ops += rng.IntN(3)
		}
		var id window.HoldID
		if holds {
			binary.BigEndian.PutUint64(id[:], uint64(call+1))
			if taken = append(taken, id); rng.IntN(4) == 0 {
				step.Verb = store.Settle + store.Verb(rng.IntN(3))
			}
			if step.Verb.Ends() || rng.IntN(20) == 0 {
				id = taken[len(taken)-1-rng.IntN(min(len(taken), 12))]
			}
		}
		for i, key := range rng.Perm(4)[:ops] {
			limit := limits[key%usual]
			if rng.IntN(15) == 0 {
				limit = limits[rng.IntN(len(limits))]
			}
			var hold *store.Hold
			if holds && (step.Verb.Ends() || rng.IntN(10) > 0) {
				hold = &store.Hold{Hold: window.Hold{ID: id, At: now - 1, End: now + 5_000_000}}
			}
			step.Ops = append(step.Ops, store.Op{
				Space: store.NewSpace("", "s", "", 0), Limit: limit, Key: fmt.Append(nil, key), N: rng.Int64N(1 + max(2, limit.Capacity()/30)),
				Hold: hold,
			})
			step.Which = append(step.Which, i)
		}
		if len(step.Ops) > 1 && step.Verb == store.Record && !holds {
			step.Verb = store.Take
		}
		fast, general, args, ok := codec.EncodeFast(&step, script.Times{Now: now, Near: now})
		if !ok {
			if holds { // an op under the limit that does not hold
				continue
			}
			t.Fatalf("call %d: got no fast program for %v of %d ops", call, step.Verb, len(step.Ops))
		}
		_, _, stale, _ := codec.EncodeFast(&step, script.Times{Now: now, Near: now, Deadline: 1})
		var late string
		run := func(p *script.Program, prefix string, neighbours ...string) (reply any, states []any) {
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
				with = script.Run(append(slices.Repeat([]string{args}, len(neighbours)-1), late, args), command[3:])
			}
			reply = n.Must(append(command, with...)...)
			for i := range step.Ops {
				states = append(states, n.Must("GET", prefix+string(step.Ops[i].Key)))
			}
			return reply, states
		}
		alone := ""
		if holds {
			for i := range step.Ops {
				n.Must("DEL", "only"+string(step.Ops[i].Key))
				n.Must("COPY", "fast"+string(step.Ops[i].Key), "only"+string(step.Ops[i].Key))
			}
			if reply, _ := run(script.FastAround(), "only"); reply != "slow" {
				alone = reply.(string)
				decided++
			}
		}
		got, gotStates := run(fast, "fast")
		if alone != "" && alone != got {
			t.Fatalf("call %d: got %q of the fast part alone, want %q", call, alone, got)
		}
		want, wantStates := run(general, "general")
		if !holds {
			if text := got.(string); text[0] == script.StatusAdmitted {
				used := math.Float64frombits(binary.LittleEndian.Uint64([]byte(text[8:])))
				switch {
				case len(step.Ops) > 1:
					few++
				case sliding && step.Ops[0].Limit.Group() == 1 && step.Verb != store.Check && step.Ops[0].N > 0 && used > 1:
					exact++
				}
			}
			got = script.Reply{Text: got.(string)}.Whole(&step)
		}
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
			if err != nil || first.Whole(&step) != want || second.Whole(&step) != want || replies.Rest() != "" || fmt.Sprintf("%q", states) != fmt.Sprintf("%q", wantStates) {
				t.Fatalf("call %d, %v of %d ops in a run:\ngot  %q and %q, error %v, states %q\nwant %q, states %q", call, step.Verb, len(step.Ops), first.Whole(&step), second.Whole(&step), err, states, want, wantStates)
			}
		}
		// A step that stands twice in a run is decided twice.
		if call%4 == 0 {
			one, _ := run(general, "twice")
			two, wantStates := run(general, "twice")
			late = args
			for what, p := range map[string]*script.Program{"fast": fast.Run, "general": general.Run} {
				all, states := run(p, what+"pair", what+"pair")
				replies := script.RepliesIn(all.(string))
				first, err := replies.Next(len(step.Ops))
				second, other := replies.Next(len(step.Ops))
				if err != nil || other != nil || first.Whole(&step) != one || second.Whole(&step) != two || fmt.Sprintf("%q", states) != fmt.Sprintf("%q", wantStates) {
					t.Fatalf("call %d, %v of %d ops twice in a run:\ngot  %q and %q, errors %v and %v, states %q\nwant %q and %q, states %q", call, step.Verb, len(step.Ops),
						first.Whole(&step), second.Whole(&step), err, other, states, one, two, wantStates)
				}
			}
		}
	}
	if kind := limits[0].Limit().Window.Kind; holds && decided < calls/10 {
		t.Errorf("%v: got %d of %d calls that the fast part decides, want a tenth", kind, decided, calls)
	}
	least := 0
	switch {
	case limits[0].Limit().Window.Precision == 5:
		least = calls / 10
	case usual > 2: // more calls are denied
		least = calls / 40
	}
	if few < least {
		t.Errorf("got %d of %d calls with several ops that the fast part admits, want %d", few, calls, least)
	}
	log := sliding && !holds && limits[0].Capacity() == 40
	if log && exact < calls/50 {
		t.Errorf("got %d of %d calls that add a hit to a log of hits, want a fiftieth", exact, calls)
	}
	if !holds && !log && n.Info("cmdstat_setrange") == "" {
		t.Error("got no call that a fast program decided and counted, want many")
	}
}

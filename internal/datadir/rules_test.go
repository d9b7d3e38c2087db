package datadir_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/datadir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// changedRule returns a rule in one of the forms that an operator may give it: some keep
// its counters, and some do not.
func changedRule(r *rand.Rand, name string) rule.Rule {
	ru := rule.Rule{Name: name, Per: []string{"user"}, Quota: &rule.Quota{Value: int64(3 + r.IntN(5))}, Window: window.Sliding(time.Hour)}
	switch r.IntN(9) {
	case 0:
		ru.Window = window.Sliding(2 * time.Hour)
	case 1:
		ru.Window = window.Fixed(time.Hour)
	case 2:
		ru.Per = nil
	case 3:
		ru.Ban = window.Ban{For: 10 * time.Minute}
	case 4:
		ru.CountDenied = true
	case 5:
		ru.Mode = rule.Shadow
	case 6:
		ru.Hold = time.Minute
	case 7:
		ru.Name = name + "-new"
	}
	return ru
}

// Rules that change between two processes keep their counters as a reload does.
func TestRulesChangeAcrossARestart(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 8))
		rules := func() *rule.Set {
			set, err := rule.New([]rule.Rule{changedRule(r, "a"), changedRule(r, "b")}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return set
		}
		var now atomic.Int64
		now.Store(int64(window.At(time.Date(2026, time.May, 1, 12, 0, 0, 0, time.UTC))))
		clock := func() window.Instant { return window.Instant(now.Load()) }
		set := rules()
		inMemory := memstore.New(memstore.WithClock(clock))
		reloaded, err := weir.NewEngine(set, weir.WithStore(inMemory))
		if err != nil {
			t.Fatal(err)
		}
		disk := datadir.NewDisk()
		for restart := range 8 {
			s := mustOpen(t, disk, datadir.WithClock(clock))
			restarted, err := weir.NewEngine(set, weir.WithStore(s))
			if err != nil {
				t.Fatal(err)
			}
			for range 12 {
				req := weir.Request{Attributes: weir.Attributes("user", fmt.Sprint(r.IntN(2)))}
				verb := []store.Verb{store.Take, store.Take, store.Check, store.Record}[r.IntN(4)]
				var got, want weir.Decision
				if err := restarted.Do(t.Context(), verb, &req, &got); err != nil {
					t.Fatal(err)
				}
				if err := reloaded.Do(t.Context(), verb, &req, &want); err != nil {
					t.Fatal(err)
				}
				if g, w := fmt.Sprintf("%+v", got.Usages), fmt.Sprintf("%+v", want.Usages); g != w {
					t.Fatalf("seed %d, restart %d, %v %+v:\nrestarted %s\nreloaded  %s", seed, restart, verb, req, g, w)
				}
				now.Add(r.Int64N(300e6))
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			set = rules()
			if err := reloaded.SetRules(set); err != nil {
				t.Fatal(err)
			}
		}
		inMemory.Close()
	}
}

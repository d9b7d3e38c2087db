package drive_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/drive"
	"github.com/weirhq/weir/internal/plan"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/store/storetest"
	"github.com/weirhq/weir/window"
)

// failing is a store that answers outages for the ops that fail picks.
type failing struct {
	store.Store
	fail func(round, op int) bool
	full bool // the cause is a lack of room
	at   int  // the round, from 0
}

func (f *failing) Do(ctx context.Context, calls []store.Call) error {
	round := f.at
	f.at++
	for i := range calls {
		c := &calls[i]
		out := &store.OutageError{Err: errors.New("unavailable")}
		if f.full {
			out.Err = store.ErrFull
		}
		for n := range c.Ops {
			if f.fail(round, n) {
				out.Ops = append(out.Ops, n)
			}
		}
		if c.Err = error(out); out.Ops == nil {
			c.Err = store.Do(ctx, f.Store, c.Verb, c.Ops)
		}
	}
	return nil
}

// policies are the outage policies of ops, by what they belong to.
type policies []rule.Outage

func (p policies) OnOutage(of int) rule.Outage { return p[of] }

// op returns an op of one hit that belongs to of, with a quota.
func op(of int, quota int64, role store.Role) store.Op {
	limit := window.MustCompile(window.Limit{Quota: quota, Window: window.Fixed(time.Hour)})
	name := fmt.Sprint("rule", of)
	return store.Op{Space: store.NewSpace("", name, name, 0), Limit: limit, Key: []byte("k"), N: 1, Role: role}
}

func used(t *testing.T, s store.Store, o *store.Op) int64 {
	t.Helper()
	r, err := s.Read(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r.Used
}

// However a store fails, a take counts in all of its enforcing ops that can
// count, or in none of them; and every op counts once at most. It holds for
// memory that stands in for the store, too.
func TestTakesAreAllOrNothing(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		inner, local := storetest.NewModel().Store, storetest.NewModel().Store
		s := &failing{Store: inner, full: r.IntN(5) == 0}
		d := &drive.Driver{Store: s, Local: &drive.Local{Store: local, Nodes: 1}}
		n := 1 + r.IntN(4)
		var task drive.Task
		var policy policies
		for i := range n {
			o := op(i, int64(r.IntN(3)), []store.Role{store.Enforce, store.Enforce, store.Shadow, store.Always}[r.IntN(4)])
			o.CountDenied = o.Role == store.Enforce && r.IntN(6) == 0
			task.Ops, task.Of = append(task.Ops, o), append(task.Of, i)
			policy = append(policy, []rule.Outage{rule.OutageLocal, rule.OutageAllow, rule.OutageDeny}[r.IntN(3)])
		}
		ops := slices.Clone(task.Ops)
		chance := r.Float64()
		s.fail = func(int, int) bool { return r.Float64() < chance }
		task.Verb, task.Policies = store.Take, policy
		d.Run(t.Context(), &task, nil)
		if task.Err != nil {
			t.Fatalf("seed %d: got error %v", seed, task.Err)
		}
		if !slices.IsSorted(task.Of) {
			t.Errorf("seed %d: got ops of %v, want them in order", seed, task.Of)
		}
		denied := task.IsDenied()
		for i := range ops {
			got := used(t, inner, &ops[i]) + used(t, local, &ops[i])
			answered := slices.Contains(task.Of, i)
			switch o := &ops[i]; {
			case got > 1:
				t.Errorf("seed %d, op %d: got %d counted for one hit", seed, i, got)
			case o.Role == store.Enforce && !o.CountDenied && denied && got != 0:
				t.Errorf("seed %d, op %d: got %d counted for a take that was denied", seed, i, got)
			case o.Role == store.Enforce && !denied && answered && got != 1:
				t.Errorf("seed %d, op %d: got %d counted for a take that was admitted", seed, i, got)
			case !answered && got != 0:
				t.Errorf("seed %d, op %d: got %d counted without an answer", seed, i, got)
			}
		}
		for n, of := range task.Of {
			if task.Ops[n].Result.Used != used(t, inner, &ops[of])+used(t, local, &ops[of]) {
				t.Errorf("seed %d, op %d: got %+v, want what was counted", seed, of, task.Ops[n].Result)
			}
		}
	}
}

// Local memory without room denies: a full table never hands out fresh quota.
func TestLocalMemoryWithoutRoom(t *testing.T) {
	t.Parallel()
	local := memstore.New()
	defer local.Close()
	s := &failing{Store: storetest.NewModel().Store, fail: func(_, op int) bool { return op == 0 }}
	d := &drive.Driver{Store: s, Local: &drive.Local{Store: local, Nodes: 3}}
	limit := window.MustCompile(window.Limit{Quota: 5, Window: window.Fixed(time.Hour)})
	space := store.NewSpace("", "small", "small", 1)
	for i, want := range []bool{true, false} {
		var task drive.Task
		task.Verb, task.Policies, task.Of = store.Take, policies{rule.OutageLocal, rule.OutageLocal}, []int{0, 1}
		task.Ops = []store.Op{{Space: space, Limit: limit, Key: fmt.Append(nil, i), N: 1}, op(1, 9, store.Enforce)}
		d.Run(t.Context(), &task, nil)
		if task.Err != nil || task.IsDenied() == want || (task.Denied == 0) == want {
			t.Errorf("key %d: got denied %v by %d, %v, want %v", i, task.IsDenied(), task.Denied, task.Err, !want)
		}
	}
}

// loading is memory whose counters are still being loaded.
type loading struct{ store.Store }

var errLoading = &store.OutageError{Reason: "loading", Err: errors.New("counters are being loaded"), Uncounted: true}

func (loading) Do(_ context.Context, calls []store.Call) error {
	for i := range calls {
		calls[i].Err = errLoading
	}
	return nil
}

func (loading) Read(context.Context, *store.Op) (window.Reading, error) {
	return window.Reading{}, errLoading
}

func (loading) Forget(context.Context, *store.Op) error { return errLoading }

// What needs local memory that is still being loaded fails, and counts nothing: in an outage, and for holds that may be
// there. Other calls are decided, also in the same batch.
func TestLocalMemoryThatIsLoading(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		verb   store.Verb
		policy rule.Outage // of the first op
		outage bool        // for the first op
		want   error
	}{
		{"a take", store.Take, rule.OutageLocal, false, nil},
		{"a take in an outage", store.Take, rule.OutageLocal, true, errLoading},
		{"a take in an outage that the policy allows", store.Take, rule.OutageAllow, true, nil},
		{"a settle", store.Settle, rule.OutageLocal, false, errLoading},
		{"a cancel in an outage", store.Cancel, rule.OutageLocal, true, errLoading},
	} {
		inner := storetest.NewModel().Store
		s := &failing{Store: inner, fail: func(round, op int) bool { return round+op == 0 && test.outage }}
		d := &drive.Driver{Store: s, Local: &drive.Local{Store: loading{}, Nodes: 1}}
		task := func() *drive.Task {
			ops := []store.Op{op(0, 9, store.Enforce), op(1, 9, store.Enforce)}
			for i := range ops {
				ops[i].Hold = &store.Hold{}
			}
			return &drive.Task{
				Verb: test.verb, Policies: policies{test.policy, rule.OutageLocal}, HeldLocally: test.verb.NeedsReceipt(),
				Step: plan.Step{Of: []int{0, 1}, Ops: ops},
			}
		}
		alone, batched := task(), task()
		other := &drive.Task{Verb: store.Check, Policies: policies{0, 0, 0, rule.OutageAllow}, Step: plan.Step{Of: []int{3}, Ops: []store.Op{op(3, 9, store.Enforce)}}}
		d.Run(t.Context(), alone, nil)
		s.at = 0
		d.RunAll(t.Context(), []*drive.Task{batched, other})
		if !errors.Is(alone.Err, test.want) || !errors.Is(batched.Err, test.want) || other.Err != nil {
			t.Errorf("%s: got %v, %v in a batch, and %v of another call, want %v and none", test.name, alone.Err, batched.Err, other.Err, test.want)
		}
		last := op(1, 9, store.Enforce)
		if got := used(t, inner, &last); (got == 0) != (test.want != nil) {
			t.Errorf("%s: got %d counted, want some only without an error", test.name, got)
		}
	}
}

// A correction while local memory is being loaded changes nothing in the store either, so that it can be repeated.
func TestCorrectionsWhileLoading(t *testing.T) {
	t.Parallel()
	inner := storetest.NewModel().Store
	d := &drive.Driver{Store: inner, Local: &drive.Local{Store: loading{}, Nodes: 1}}
	three := op(0, 9, store.Enforce)
	three.N = 3
	if err := store.Do(t.Context(), inner, store.Take, []store.Op{three}); err != nil {
		t.Fatal(err)
	}
	corrected := op(0, 9, store.Enforce)
	for name, err := range map[string]error{
		"set": d.Correct(t.Context(), store.Set, &corrected), "unban": d.Correct(t.Context(), store.Unban, &corrected),
		"forget": d.Forget(t.Context(), &corrected),
	} {
		if got := used(t, inner, &three); !errors.Is(err, errLoading) || got != 3 {
			t.Errorf("%s: got %v and %d counted in the store, want %v and 3", name, err, got, errLoading)
		}
	}
}

// What cannot be given back is told, and the decision stands.
func TestGiveBackThatFails(t *testing.T) {
	t.Parallel()
	local := storetest.NewModel().Store
	s := &failing{Store: storetest.NewModel().Store}
	s.fail = func(round, op int) bool {
		if round == 1 { // memory has counted, and goes away before the store denies
			_ = local.Close()
		}
		return round == 0 && op == 0
	}
	var told []string
	tell := func(_ context.Context, verb store.Verb, err error) {
		told = append(told, verb.String()+": "+err.Error())
	}
	d := &drive.Driver{Store: s, Local: &drive.Local{Store: local, Nodes: 1, Told: tell}, Told: tell}
	task := drive.Task{Verb: store.Take, Policies: policies{rule.OutageLocal, rule.OutageLocal}}
	task.Of = []int{0, 1}
	task.Ops = []store.Op{op(0, 5, store.Enforce), op(1, 0, store.Enforce)}
	d.Run(t.Context(), &task, nil)
	if task.Err != nil || !task.IsDenied() {
		t.Errorf("got denied %v, %v, want denied", task.IsDenied(), task.Err)
	}
	if len(told) != 2 || !strings.HasPrefix(told[1], "refund: give back") || !strings.Contains(told[1], "closed") {
		t.Errorf("got told %q, want the outage and the give-back", told)
	}
}

// A reading that memory answers is not reported as a decision in an outage: a store can refuse a large reading while it
// decides.
func TestReadInAnOutage(t *testing.T) {
	t.Parallel()
	d := &drive.Driver{
		Store: &unreadable{}, Local: &drive.Local{Store: storetest.NewModel().Store, Nodes: 1},
		Told: func(_ context.Context, verb store.Verb, err error) { t.Errorf("got told of %v: %v", verb, err) },
	}
	o := op(0, 5, store.Enforce)
	if _, degraded, err := d.Read(t.Context(), &o, rule.OutageLocal); err != nil || !degraded {
		t.Errorf("got degraded %v, %v, want what memory has", degraded, err)
	}
}

// unreadable is a store that answers no reading, and forgets nothing.
type unreadable struct{ store.Store }

func (*unreadable) Read(context.Context, *store.Op) (window.Reading, error) {
	return window.Reading{}, &store.OutageError{Reason: "busy", Err: errors.New("too many wait"), Uncounted: true}
}

func (*unreadable) Forget(context.Context, *store.Op) error {
	return &store.OutageError{Reason: "busy", Err: errors.New("too many wait"), Uncounted: true}
}

// What memory has counted in an outage stays if the store cannot forget.
func TestForgetInAnOutage(t *testing.T) {
	t.Parallel()
	local := storetest.NewModel().Store
	d := &drive.Driver{Store: &unreadable{}, Local: &drive.Local{Store: local, Nodes: 1}}
	o := op(0, 5, store.Enforce)
	if err := store.Do(t.Context(), local, store.Take, []store.Op{o}); err != nil {
		t.Fatal(err)
	}
	if err := d.Forget(t.Context(), &o); err == nil {
		t.Error("got no error")
	}
	if got := used(t, local, &o); got != 1 {
		t.Errorf("got %d used, want 1", got)
	}
}

// An error that is no outage ends a task, and what memory counted for it is
// given back.
func TestErrorsEndATask(t *testing.T) {
	t.Parallel()
	local, inner := storetest.NewModel().Store, storetest.NewModel().Store
	s := &failing{Store: inner, fail: func(round, op int) bool { return round == 0 && op == 0 }}
	d := &drive.Driver{Store: s, Local: &drive.Local{Store: local, Nodes: 1}}
	ops := []store.Op{op(0, 5, store.Enforce), op(1, 5, store.Enforce), op(1, 5, store.Enforce)}
	task := drive.Task{Verb: store.Take, Policies: policies{0, 0, 0}, Step: plan.Step{Of: []int{0, 1, 2}, Ops: slices.Clone(ops)}}
	other := drive.Task{Verb: store.Take, Policies: policies{3: 0}, Step: plan.Step{Of: []int{3}, Ops: []store.Op{op(3, 5, store.Shadow)}}}
	s.fail = func(round, op int) bool { return round == 0 && op == 0 }
	d.RunAll(t.Context(), []*drive.Task{&task, &other})
	if !errors.Is(task.Err, store.ErrRepeated) || other.Err != nil || len(other.Ops) != 1 {
		t.Errorf("got %v and %v, want %v and none", task.Err, other.Err, store.ErrRepeated)
	}
	for i := range ops {
		if got := used(t, local, &ops[i]) + used(t, inner, &ops[i]); got != 0 {
			t.Errorf("op %d: got %d counted, want none", i, got)
		}
	}
	task.Reset()
	if task.Err != nil || task.Outage != nil || task.Policies != nil {
		t.Errorf("after a reset: got %+v", task)
	}
}

// A take up to what fits that memory decides in part counts as many hits in the store as in
// memory, or none.
func TestUpToInAPartialOutage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		quota int64 // of the op in the store
		want  int64 // that each op counts
	}{{10, 3}, {3, 3}, {2, 0}} {
		inner, local := storetest.NewModel().Store, storetest.NewModel().Store
		s := &failing{Store: inner, fail: func(round, op int) bool { return round == 0 && op == 0 }}
		d := &drive.Driver{Store: s, Local: &drive.Local{Store: local, Nodes: 1}}
		task := drive.Task{Verb: store.Take, Policies: policies{rule.OutageLocal, rule.OutageLocal}}
		task.Of = []int{0, 1}
		task.Ops = []store.Op{op(0, 3, store.Enforce), op(1, test.quota, store.Enforce)}
		for i := range task.Ops {
			task.Ops[i].N, task.Ops[i].UpTo = 5, true
		}
		ops := slices.Clone(task.Ops)
		d.Run(t.Context(), &task, nil)
		if task.Err != nil || task.IsDenied() != (test.want == 0) {
			t.Errorf("quota %d: got denied %v, %v", test.quota, task.IsDenied(), task.Err)
		}
		if a, b := used(t, local, &ops[0]), used(t, inner, &ops[1]); a != test.want || b != test.want {
			t.Errorf("quota %d: got %d in memory and %d in the store, want %d", test.quota, a, b, test.want)
		}
		for i := range task.Ops {
			if got := task.Ops[i].N; test.want > 0 && got != test.want {
				t.Errorf("quota %d, op %d: got %d hits, want %d", test.quota, i, got, test.want)
			}
		}
	}
}

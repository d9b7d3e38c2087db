package drive_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/drive"
	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/internal/plan"
	"github.com/weirhq/weir/internal/report"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/storetest"
	"github.com/weirhq/weir/window"
)

// losing is a store whose answers get lost for a reason, after it has counted the calls, if there is one.
type losing struct {
	store.Store
	lost store.Reason
	away bool // it does not even count
	full bool // it answers, but refuses what it would have to write
}

func (l *losing) Do(ctx context.Context, calls []store.Call) error {
	if l.full {
		return l.refuse(ctx, calls)
	}
	if !l.away {
		if err := l.Store.Do(ctx, calls); err != nil || l.lost == "" {
			return err
		}
	}
	for i := range calls {
		calls[i].Err = &store.OutageError{Reason: l.lost, Err: errors.New("lost"), Uncounted: l.lost == ""}
	}
	return nil
}

// refuse answers what a full store does. No test has it end a hold, or give back all it has.
func (l *losing) refuse(ctx context.Context, calls []store.Call) error {
	for i := range calls {
		if c := &calls[i]; c.Once != nil || c.Verb == store.Take || c.Verb == store.Record {
			c.Err = &store.OutageError{Reason: "full", Err: errors.New("full"), Uncounted: true}
		} else if err := l.Store.Do(ctx, calls[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// holding are the limits of two ops whose takes hold.
var holding = []*window.Compiled{
	window.MustCompile(window.Limit{Quota: 1000, Measure: window.Sum, Window: window.Sliding(time.Hour), Hold: time.Hour}),
	window.MustCompile(window.Limit{Quota: 10, Window: window.Held(time.Hour)}),
}

// holdingTask returns a task about the hold id of an op for each of those.
func holdingTask(v store.Verb, id byte, n int64) *drive.Task {
	task := &drive.Task{Verb: v, Policies: policies{rule.OutageLocal, rule.OutageLocal}, HeldLocally: v.NeedsReceipt()}
	for i, l := range holding {
		o := op(i, 0, store.Enforce)
		o.Limit, o.N, o.Hold = l, n, &store.Hold{Hold: window.Hold{ID: [12]byte{id}}}
		task.Of, task.Ops = append(task.Of, i), append(task.Ops, o)
	}
	return task
}

// holdingUsed fails unless these hits of each of the limits are used in s.
func holdingUsed(t *testing.T, s store.Store, want ...int64) {
	t.Helper()
	for i, o := range holdingTask(store.Check, 0, 0).Ops {
		if got := used(t, s, &o); got != want[i] {
			t.Errorf("op %d: got %d used, want %d", i, got, want[i])
		}
	}
}

// holdingProcess returns a driver that decides in memory in an outage of s.
func holdingProcess(s store.Store) *drive.Driver {
	local := storetest.NewModel()
	local.Set(window.At(time.Now()))
	r := report.New(s, nil)
	return &drive.Driver{Store: s, Unconfirmed: drive.Unconfirmed, Local: &drive.Local{Store: local.Store, Nodes: 1, Reporter: r, End: r.Close}}
}

// A hold whose take was counted although its answer was lost is held in the store and here. It ends in both, however far
// the call that ends it gets, and what it cost counts once.
func TestHoldsOfLostAnswers(t *testing.T) {
	t.Parallel()
	answered, away := losing{}, losing{away: true}
	late, unconfirmed, never := losing{lost: "late"}, losing{lost: "unconfirmed"}, losing{lost: "late", away: true}
	for name, test := range map[string]struct {
		take, settle losing
		want         int64
	}{
		"late, and settled in time":             {late, answered, 7},
		"late, and settled in an outage":        {late, away, 7},
		"late, and settled late":                {late, late, 14}, // perhaps it was not settled
		"never there, and settled in time":      {never, answered, 7},
		"never there, and settled in an outage": {never, never, 7},
		"away, and settled in time":             {away, answered, 7},
		"away, and settled in an outage":        {away, away, 7},
		"unconfirmed, and settled in time":      {unconfirmed, answered, 7},
		"unconfirmed, and settled so as well":   {unconfirmed, unconfirmed, 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				far := storetest.NewModel()
				far.Set(window.At(time.Now()))
				s := &losing{Store: far.Store}
				d := holdingProcess(s)
				task := func(v store.Verb, as losing, n int64) *drive.Task {
					s.lost, s.away = as.lost, as.away
					task := holdingTask(v, 1, n)
					d.Run(t.Context(), task, nil)
					return task
				}
				task(store.Take, test.take, 5)
				for i, o := range task(store.Settle, test.settle, 7).Ops {
					if !o.Result.Held {
						t.Errorf("settle: op %d was not held", i)
					}
				}
				s.lost, s.away = "", false
				d.Close()
				holdingUsed(t, far.Store, test.want, 0)
			})
		})
	}
}

// A hold that another process ends before its report is not made by that, whether the store has it, because its take was counted
// although the answer was lost, or not. What it cost counts once.
func TestHoldsOfLostAnswersThatEndElsewhere(t *testing.T) {
	t.Parallel()
	late, away := losing{lost: "late"}, losing{away: true}
	for name, test := range map[string]struct {
		take  losing
		verb  store.Verb
		found bool
		used  []int64
	}{
		"settled":                      {late, store.Settle, true, []int64{3 * 7, 0}},
		"cancelled":                    {late, store.Cancel, true, []int64{0, 0}},
		"renewed":                      {late, store.Renew, true, []int64{3 * 3, 3 * 3}},
		"not there yet, and settled":   {away, store.Settle, false, []int64{3 * 7, 0}},
		"not there yet, and cancelled": {away, store.Cancel, false, []int64{0, 0}},
		"not there yet, and renewed":   {away, store.Renew, false, []int64{3 * 3, 3 * 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				far := storetest.NewModel()
				far.Set(window.At(time.Now()))
				s := &losing{Store: far.Store, lost: test.take.lost, away: test.take.away}
				d, other := holdingProcess(s), holdingProcess(far.Store)
				var ends []*drive.Task
				for id := range byte(3) {
					d.Run(t.Context(), holdingTask(store.Take, 1+id, 3), nil)
					ends = append(ends, holdingTask(test.verb, 1+id, 7))
				}
				other.Run(t.Context(), ends[0], nil)
				other.RunAll(t.Context(), ends[1:])
				for i, end := range ends {
					for k, o := range end.Ops {
						if o.Result.Held != test.found {
							t.Errorf("task %d: op %d: got held %v, want %v", i, k, o.Result.Held, test.found)
						}
					}
				}
				s.lost, s.away = "", false
				d.Close()
				other.Close()
				holdingUsed(t, far.Store, test.used...)
			})
		})
	}
}

// endings are calls for three holds of three hits, and what they leave in use of both limits of holdingTask.
var endings = []struct {
	verb store.Verb
	n    int64
	used []int64
}{
	{store.Settle, 7, []int64{3 * 7, 0}},
	{store.Settle, -1, []int64{3 * 3, 0}},
	{store.Settle, 0, []int64{0, 0}},
	{store.Cancel, 3, []int64{0, 0}},
	{store.Renew, 3, []int64{3 * 3, 3 * 3}},
}

// A hold of an outage that another process ends in the same outage ends in the store, whether its record or its end comes there
// first. What it cost counts once.
func TestHoldsOfAnOutageThatEndElsewhere(t *testing.T) {
	t.Parallel()
	type outage struct{ take, end losing }
	away, full := losing{away: true}, losing{full: true}
	for _, test := range endings {
		for how, out := range map[string]outage{"late": {losing{lost: "late"}, away}, "away": {away, away}, "full": {full, full}} {
			for _, first := range []string{"the end", "the record"} {
				t.Run(fmt.Sprintf("%s: %v %d, %s first", how, test.verb, test.n, first), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						far := storetest.NewModel()
						far.Set(window.At(time.Now()))
						takes, ends := out.take, out.end
						takes.Store, ends.Store = far.Store, far.Store
						d, other := holdingProcess(&takes), holdingProcess(&ends)
						var tasks []*drive.Task
						for id := range byte(3) {
							d.Run(t.Context(), holdingTask(store.Take, 1+id, 3), nil)
							tasks = append(tasks, holdingTask(test.verb, 1+id, test.n))
						}
						other.Run(t.Context(), tasks[0], nil)
						other.RunAll(t.Context(), tasks[1:])
						back := func(s *losing, d *drive.Driver) {
							far.Set(window.At(time.Now()))
							s.lost, s.away, s.full = "", false, false
							d.Close()
							if got := d.Reports(); got.Pending+int(got.Lost+got.Dropped) > 0 {
								t.Errorf("got %+v, want all recorded", got)
							}
							time.Sleep(time.Millisecond)
						}
						if first == "the end" {
							back(&ends, other)
							back(&takes, d)
						} else {
							back(&takes, d)
							back(&ends, other)
						}
						holdingUsed(t, far.Store, test.used...)
					})
				})
			}
		}
	}
}

// runOne runs a call of v for n hits of o, or for a member, which local memory answers in an outage.
func runOne(t *testing.T, d *drive.Driver, v store.Verb, o store.Op, n int64, member byte) window.Result {
	t.Helper()
	if o.N = n; o.Limit.Measure == window.Distinct {
		o.Member = []byte{member}
	}
	task := drive.Task{Verb: v, Policies: policies{rule.OutageLocal}}
	task.Ops, task.Of = []store.Op{o}, []int{0}
	if d.Run(t.Context(), &task, nil); task.Err != nil {
		t.Fatal(task.Err)
	}
	return task.Ops[0].Result
}

// What memory counted because the store is full is given back there, although the store answers that it has none: once, and
// no more than that.
func TestRefundsOfAFullStore(t *testing.T) {
	t.Parallel()
	ban := window.Limit{Quota: 4, Window: window.Sliding(time.Hour), Ban: window.Ban{For: time.Hour}}
	for name, test := range map[string]struct {
		limit  window.Limit
		refund []int64
		used   int64 // after 3 hits in the store, 5 in memory, and the refunds
	}{
		"sliding, of both":    {window.Limit{Quota: 100, Window: window.Sliding(time.Hour)}, []int64{4, 2}, 2},
		"sliding, too many":   {window.Limit{Quota: 100, Window: window.Sliding(time.Hour)}, []int64{9, 9}, 0},
		"fixed":               {window.Limit{Quota: 100, Window: window.Fixed(time.Hour)}, []int64{4}, 4},
		"a counter":           {window.Limit{Quota: window.Unlimited, Window: window.Cells(time.Hour, 0)}, []int64{4}, 4},
		"distinct":            {window.Limit{Quota: 100, Measure: window.Distinct, Window: window.Sliding(time.Hour)}, []int64{1, 1}, 6},
		"all, with the ban":   {ban, []int64{window.All}, 1},
		"none":                {window.Limit{Quota: 100, Window: window.Sliding(time.Hour)}, nil, 8},
		"nothing is refunded": {window.Limit{Quota: 100, Window: window.Sliding(time.Hour)}, []int64{0}, 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				far := storetest.NewModel()
				far.Set(window.At(time.Now()))
				s := &losing{Store: far.Store}
				d := holdingProcess(s)
				o := op(0, 0, store.Enforce)
				o.Limit = window.MustCompile(test.limit)
				run := func(v store.Verb, n int64, member byte) window.Result { return runOne(t, d, v, o, n, member) }
				for i := range byte(8) {
					s.full = i >= 3
					run(store.Take, 1, i)
				}
				for i, n := range test.refund {
					run(store.Refund, n, 7-byte(i))
				}
				if test.limit.Ban.For > 0 && !run(store.Take, 1, 0).Allowed {
					t.Error("the ban was not lifted")
				}
				s.full = false
				d.Close()
				if got := used(t, far.Store, &o); got != test.used {
					t.Errorf("got %d used, want %d", got, test.used)
				}
			})
		})
	}
}

// disk is a side store whose calls wait for it, and which is loaded when a test says so.
type disk struct {
	hook.SideStore
	loaded  chan struct{}
	flushes int
}

func (d *disk) Loaded() <-chan struct{}                      { return d.loaded }
func (*disk) Claim(string, func(string, []byte)) bool        { return true }
func (*disk) Follow(func(func(string, []byte))) (end func()) { return func() {} }
func (*disk) Waits() bool                                    { return true }
func (*disk) Now() window.Instant                            { return window.At(time.Now()) }
func (d *disk) Flush(context.Context) error                  { d.flushes++; return nil }

// Refunds that a store has answered wait for no directory that is being loaded, and in a batch once for its disk if they give
// back what waits for a report.
func TestRefundsWithADirectory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		far := storetest.NewModel()
		far.Set(window.At(time.Now()))
		s, side := &losing{Store: far.Store}, &disk{loaded: make(chan struct{})}
		r := report.New(s, side)
		local := &drive.Local{Store: loading{}, Nodes: 1, Reporter: r, End: r.Close}
		d := &drive.Driver{Store: s, Local: local}
		defer d.Close()
		run := func(v store.Verb, n int) {
			tasks := make([]*drive.Task, n)
			for i := range tasks {
				o := op(0, 100, store.Enforce)
				o.Key = []byte{byte(i)}
				tasks[i] = &drive.Task{Verb: v, Policies: policies{rule.OutageLocal}, Step: plan.Step{Of: []int{0}, Ops: []store.Op{o}}}
			}
			d.RunAll(t.Context(), tasks)
			for _, task := range tasks {
				if task.Err != nil {
					t.Fatal(task.Err)
				}
			}
		}
		run(store.Take, 9)
		time.AfterFunc(time.Minute, func() { close(side.loaded) })
		begun := time.Now()
		run(store.Refund, 1)
		run(store.Refund, 9)
		if took := time.Since(begun); took > 0 {
			t.Errorf("the refunds took %v, want no wait for the directory", took)
		}
		time.Sleep(2 * time.Minute)
		local.Store, s.full = storetest.NewModel().Store, true
		run(store.Take, 9)
		for _, batch := range []struct{ refunds, flushes, pending int }{{1, 1, 8}, {9, 1, 0}, {9, 0, 0}} {
			side.flushes = 0
			run(store.Refund, batch.refunds)
			if got := d.Reports().Pending; side.flushes != batch.flushes || got != batch.pending {
				t.Errorf("a batch of %d: got %d flushes and %d pending, want %d and %d", batch.refunds, side.flushes, got, batch.flushes, batch.pending)
			}
		}
	})
}

// Hits of an outage that were reported, and given back after it, are not counted in the next one. Those of the store that are
// given back leave in memory what waits for a report.
func TestRefundsBetweenOutages(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]window.Limit{
		"sliding":  {Quota: 10, Window: window.Sliding(time.Hour)},
		"calendar": {Quota: 10, Window: window.Calendar(window.Year, nil)},
		"distinct": {Quota: 10, Measure: window.Distinct, Window: window.Sliding(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				far := storetest.NewModel()
				far.Set(window.At(time.Now()))
				s := &losing{Store: far.Store}
				d := holdingProcess(s)
				defer d.Close()
				o := op(0, 0, store.Enforce)
				o.Limit = window.MustCompile(limit)
				run := func(v store.Verb, member byte) int64 { return runOne(t, d, v, o, 1, member).Used }
				outage := func(away bool) {
					s.away = away
					run(store.Check, 0) // wakes the reporter
					time.Sleep(10 * time.Second)
				}
				outage(true)
				for i := range byte(8) {
					run(store.Take, i)
				}
				outage(false)
				for i := range byte(8) {
					run(store.Refund, i)
				}
				outage(true)
				for i := range byte(3) {
					if got := run(store.Take, i); got != int64(i)+1 {
						t.Errorf("take %d of the second outage: got %d used", i, got)
					}
				}
				s.away = false
				for i := range byte(3) { // the store takes and gives back its own
					run(store.Take, 10+i)
					run(store.Refund, 10+i)
				}
				s.away = true
				if got := run(store.Check, 0); got != 3 {
					t.Errorf("in memory: got %d used, want 3", got)
				}
				outage(false)
				if got := run(store.Check, 0); got != 3 {
					t.Errorf("after the outages: got %d used, want 3", got)
				}
			})
		})
	}
}

// Hits that the store has counted without a confirmation are not recorded again, and refunds of them are not
// subtracted from others.
func TestUnconfirmedHits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		far, local := storetest.NewModel(), storetest.NewModel()
		s := &losing{Store: far.Store}
		r := report.New(s, nil)
		d := &drive.Driver{Store: s, Unconfirmed: drive.Unconfirmed, Local: &drive.Local{Store: local.Store, Nodes: 1, Reporter: r, End: r.Close}}
		o := op(0, 100, store.Enforce)
		for _, step := range []struct {
			verb store.Verb
			as   losing
		}{{store.Take, losing{away: true}}, {store.Take, losing{lost: "unconfirmed"}}, {store.Take, losing{lost: "unconfirmed"}}, {store.Refund, losing{lost: "unconfirmed"}}} {
			s.lost, s.away = step.as.lost, step.as.away
			task := drive.Task{Policies: policies{rule.OutageLocal}}
			task.Verb, task.Ops, task.Of = step.verb, []store.Op{o}, []int{0}
			if d.Run(t.Context(), &task, nil); task.Err != nil {
				t.Fatal(task.Err)
			}
		}
		d.Close() // the report is not confirmed either
		if got, stats := used(t, far.Store, &o), d.Reports(); got != 2 || stats != (report.Stats{Recorded: 1}) {
			t.Errorf("got %d used and %+v, want 2, of which 1 was recorded", got, stats)
		}
	})
}

// What the store has answered without a confirmation holds, whatever share memory has, and ends as it should. If the
// policy denies the take, the store counts nothing of it.
func TestUnconfirmedAnswers(t *testing.T) {
	t.Parallel()
	place := window.MustCompile(window.Limit{Quota: 10, Window: window.Held(time.Hour)})
	for name, test := range map[string]struct {
		policies policies
		id       [12]byte
		used     [2]int64
	}{
		"denied":                {policies{rule.OutageDeny, rule.OutageDeny}, [12]byte{1}, [2]int64{0, 0}},
		"denied by one":         {policies{rule.OutageAllow, rule.OutageDeny}, [12]byte{1}, [2]int64{0, 0}},
		"denied without a hold": {policies{rule.OutageDeny, rule.OutageDeny}, [12]byte{}, [2]int64{0, 0}},
		"local":                 {policies{rule.OutageLocal, rule.OutageLocal}, [12]byte{1}, [2]int64{4, 4}},
		"local without a hold":  {policies{rule.OutageLocal, rule.OutageLocal}, [12]byte{}, [2]int64{4, 0}},
		"allowed":               {policies{rule.OutageAllow, rule.OutageLocal}, [12]byte{1}, [2]int64{4, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			far := storetest.NewModel()
			far.Set(window.At(time.Now()))
			d := &drive.Driver{Unconfirmed: drive.Unconfirmed, Store: &losing{Store: far.Store, lost: "unconfirmed"}, Local: &drive.Local{Store: storetest.NewModel().Store, Nodes: 5}}
			hits, places := op(0, 10, store.Enforce), op(1, 0, store.Enforce)
			places.Limit = place
			run := func(v store.Verb, id byte) *drive.Task {
				task := &drive.Task{Policies: test.policies}
				task.Verb, task.Of = v, []int{0, 1}
				for _, o := range []store.Op{hits, places} {
					if test.id != [12]byte{} {
						o.Hold = &store.Hold{Hold: window.Hold{ID: [12]byte{1, id}}}
					}
					task.Ops = append(task.Ops, o)
				}
				if d.Run(t.Context(), task, nil); task.Err != nil || task.Reason != "unconfirmed" {
					t.Errorf("%v %d: got the reason %q and error %v, want it unconfirmed", v, id, task.Reason, task.Err)
				}
				return task
			}
			for id := range byte(4) {
				if got, want := run(store.Take, id).IsDenied(), test.used[0] == 0; got != want {
					t.Errorf("take %d: got denied %v, want %v", id, got, want)
				}
			}
			for i, o := range []store.Op{hits, places} {
				if got := used(t, far.Store, &o); got != test.used[i] {
					t.Errorf("op %d: got %d used in the store, want %d", i, got, test.used[i])
				}
			}
			if test.used[1] == 0 {
				return
			}
			for _, v := range []store.Verb{store.Renew, store.Settle} {
				if !run(v, 0).Ops[1].Result.Held {
					t.Errorf("%v: got no hold, want one", v)
				}
			}
			if got := used(t, far.Store, &places); got != 3 {
				t.Errorf("after a settle: got %d places, want 3", got)
			}
		})
	}
}

// partly is a store that does not answer for some ops of its first call: after it has decided the second op, or before.
type partly struct {
	store.Store
	late    []int // ops
	decides bool
	calls   int
}

func (p *partly) Do(ctx context.Context, calls []store.Call) error {
	if p.calls++; p.calls > 1 {
		return p.Store.Do(ctx, calls)
	}
	c := &calls[0]
	if p.decides {
		if err := store.Do(ctx, p.Store, c.Verb, c.Ops[1:2]); err != nil {
			return err
		}
	}
	c.Err = &store.OutageError{Ops: p.late, Reason: "late", Err: errors.New("late"), Uncounted: !p.decides}
	return nil
}

// A hold that has ended, or was renewed, beside one for which the store gave no answer, was found: the store is not asked for it
// again, unless it has certainly done nothing.
func TestSomeHoldsEnd(t *testing.T) {
	t.Parallel()
	for _, v := range []store.Verb{store.Settle, store.Cancel, store.Renew} {
		for calls, decides := range map[int]bool{1: true, 2: false} {
			s := &partly{Store: storetest.NewModel().Store, late: []int{0}, decides: decides}
			d := &drive.Driver{Store: s}
			task := drive.Task{Policies: policies{rule.OutageAllow, rule.OutageAllow}}
			for i := range 2 {
				o := op(i, 0, store.Enforce)
				o.Limit, o.Hold = window.MustCompile(window.Limit{Quota: 10, Window: window.Held(time.Hour)}), &store.Hold{Hold: window.Hold{ID: [12]byte{1}}}
				task.Ops, task.Of = append(task.Ops, o), append(task.Of, i)
			}
			if err := store.Do(t.Context(), s.Store, store.Take, task.Ops); err != nil {
				t.Fatal(err)
			}
			task.Verb = v
			if d.Run(t.Context(), &task, nil); task.Err != nil || len(task.Ops) != 1 || !task.Ops[0].Result.Held || task.Outage == nil || s.calls != calls {
				t.Errorf("%v: got %+v, error %v, outage %v and %d calls, want the second hold found in %d", v, task.Ops, task.Err, task.Outage, s.calls, calls)
			}
		}
	}
}

// The ends of a cancel that also gives back hits of a limit without holds are the caller's to repeat, also if the store has not
// answered for that limit: the store gives these back only with a hold.
func TestCancelsThatRefundAreNotKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &partly{Store: storetest.NewModel().Store, late: []int{0, 2}, decides: true}
		d := holdingProcess(s)
		defer d.Close()
		task := holdingTask(store.Cancel, 1, 1)
		task.HeldLocally, task.Policies = false, policies{rule.OutageAllow, rule.OutageAllow, rule.OutageAllow}
		task.Ops, task.Of = slices.Insert(task.Ops, 0, op(2, 10, store.Enforce)), []int{0, 1, 2}
		task.Ops[0].Hold = task.Ops[1].Hold
		if d.Run(t.Context(), task, nil); task.Err != nil || len(task.Ops) != 1 || d.Reports().Pending != 0 {
			t.Errorf("got %+v, error %v and %d ends kept, want none", task.Ops, task.Err, d.Reports().Pending)
		}
	})
}

// The end of a hold that the store has, to which it gives no answer, takes effect there once it answers again, whatever the
// outage policy. One that has taken effect counts once. A renewal is not made up for.
func TestEndsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	late, unconfirmed := losing{lost: "late"}, losing{lost: "unconfirmed"}
	never, away := losing{lost: "late", away: true}, losing{away: true}
	for name, as := range map[string]losing{"late": late, "late before it was counted": never, "not sent": away, "unconfirmed": unconfirmed} {
		for _, test := range endings {
			for _, policy := range []rule.Outage{rule.OutageLocal, rule.OutageAllow, rule.OutageDeny} {
				t.Run(fmt.Sprintf("%s: %v %d, %v", name, test.verb, test.n, policy), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						far := storetest.NewModel()
						far.Set(window.At(time.Now()))
						s := &losing{Store: far.Store}
						d := holdingProcess(s)
						task := func(v store.Verb, id byte, n int64) *drive.Task {
							task := holdingTask(v, id, n)
							task.HeldLocally, task.Policies = false, policies{policy, policy}
							return task
						}
						for id := range byte(3) {
							d.Run(t.Context(), task(store.Take, id+1, 3), nil)
						}
						s.lost, s.away = as.lost, as.away
						d.Run(t.Context(), task(test.verb, 1, test.n), nil)
						d.RunAll(t.Context(), []*drive.Task{task(test.verb, 2, test.n), task(test.verb, 3, test.n)})
						if got, want := d.Reports().Pending > 0, test.verb != store.Renew && as != unconfirmed; got != want {
							t.Errorf("got ends pending %v, want %v", got, want)
						}
						s.lost, s.away = "", false
						d.Close()
						holdingUsed(t, far.Store, test.used...)
						if got := d.Reports(); got != (report.Stats{}) {
							t.Errorf("got %+v, want nothing recorded, lost or dropped", got)
						}
					})
				})
			}
		}
	}
}

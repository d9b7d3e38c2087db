package redisstore_test

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

// commands returns how often a server has had a command, in small letters.
func commands(t *testing.T, n *redistest.Node, command string) int {
	t.Helper()
	text, _, _ := strings.Cut(strings.TrimPrefix(n.Info("cmdstat_"+command), "calls="), ",")
	if text == "" {
		return 0
	}
	calls, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return calls
}

// The time of a call grows with the size of its state. A run of a program decides few calls with large ones, because
// the server decides nothing else meanwhile. All are decided, in their order, even if that takes longer than the
// time-out of a round trip.
func TestFewCallsWithLargeStatesAreBatched(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	p := redistest.Through(t, n)
	s := openURL(t, "redis://"+p.Addr()+"?timeout=1s")
	op := store.Op{
		Space: store.NewSpace("", "s", "rule", 0), Key: []byte("k"), N: 1,
		Limit: window.MustCompile(window.Limit{Quota: 2000, Window: window.Sliding(time.Hour), Hold: time.Hour, MaxHolds: 2000}),
	}
	holds := uint64(0)
	takes := func(most int) (calls []store.Call) {
		for range most {
			own := op
			own.Hold = &store.Hold{}
			holds++
			binary.BigEndian.PutUint64(own.Hold.ID[:], holds)
			calls = append(calls, store.Call{Verb: store.Take, Ops: []store.Op{own}})
		}
		return calls
	}
	for range 30 {
		if err := s.Do(t.Context(), takes(50)); err != nil {
			t.Fatal(err)
		}
	}
	before, began := commands(t, n, "evalsha"), time.Now()
	p.Delay(50 * time.Millisecond)
	calls := takes(100)
	calls = append(calls, store.Call{Verb: store.Refund, Ops: []store.Op{op}}) // by another program
	if err := s.Do(t.Context(), calls); err != nil {
		t.Fatal(err)
	}
	slow := time.Since(began) > redisstore.LaterTimeout
	for i, c := range calls {
		if slow && errors.Is(c.Err, remote.ErrBusy) {
			break
		}
		if got, want := c.Ops[0].Result.Before, int64(1500+i); c.Err != nil || got != want {
			t.Fatalf("call %d: got %d used before and error %v, want %d", i, got, c.Err, want)
		}
	}
	if got := commands(t, n, "evalsha") - before; got < 8 {
		t.Errorf("got %d runs of programs for 100 calls with states of 50 KB, want one for few", got)
	}
}

// holding returns n takes with holds.
func holding(op store.Op, n int) []store.Call {
	calls := make([]store.Call, n)
	for i := range calls {
		own := op
		own.Hold = &store.Hold{}
		_, _ = rand.Read(own.Hold.ID[:])
		calls[i] = store.Call{Verb: store.Take, Ops: []store.Op{own}}
	}
	return calls
}

// Calls that a server left for later wait for their turn only as long as their caller does, and make the slices of
// other batches no smaller meanwhile.
func TestCallsThatWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	s := redisstore.New(connect(t, redistest.Server(t).Addr()), "")
	op := store.Op{
		Space: store.NewSpace("", "s", "rule", 0), Key: []byte("k"), N: 1,
		Limit: window.MustCompile(window.Limit{Quota: 10_000, Window: window.Sliding(time.Hour), Hold: time.Hour, MaxHolds: 10_000}),
	}
	for range 32 {
		if err := s.Do(t.Context(), holding(op, 64)); err != nil {
			t.Fatal(err)
		}
	}
	end, err := redisstore.LaterTurn(t.Context(), s, op.Space.Namespace())
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	ctx, leave := context.WithCancel(t.Context())
	calls, ended := holding(op, 64), make(chan error)
	go func() { ended <- s.Do(ctx, calls) }()
	redistest.Eventually(t, "most calls wait for their turn", func() bool { n := redisstore.Sliced(s); return n > 0 && n < 32 })
	leave()
	if err := <-ended; err != nil || calls[0].Err != nil || !errors.Is(calls[63].Err, context.Canceled) || redisstore.Sliced(s) != 0 {
		t.Errorf("got errors %v, %v and %v, and %d calls under way, want that the caller of the last one has left",
			err, calls[0].Err, calls[63].Err, redisstore.Sliced(s))
	}
}

// A node that leaves calls for later serves their slot, so that the cluster is not asked again who does.
func TestCallsLeftForLaterAskForNoSlots(t *testing.T) {
	t.Parallel()
	c, s, _ := onCluster(t, 1)
	op := store.Op{
		Space: store.NewSpace("", "s", "rule", 0), N: 1,
		Limit: window.MustCompile(window.Limit{Quota: 10_000, Window: window.Sliding(time.Hour), Hold: time.Hour, MaxHolds: 10_000}),
	}
	n := c.Masters[0]
	before, began := commands(t, n, "cluster|slots"), time.Now()
	for i := range 32 { // a state stays so small that a slow server decides all calls in time
		op.Key = fmt.Append(nil, i/4)
		calls := holding(op, 128)
		if err := s.Do(t.Context(), calls); err != nil || calls[127].Err != nil {
			t.Fatal(err, calls[127].Err)
		}
	}
	took := time.Since(began)
	if got, most := commands(t, n, "cluster|slots")-before, 2+int(took/(5*time.Second)); got > most {
		t.Errorf("got %d questions in %v, want %d at most", got, took, most)
	}
}

// Calls with idempotency keys have no command in common, and so are one round trip, also if they count under one key.
func TestCallsWithRecordsAreOneRoundTrip(t *testing.T) {
	t.Parallel()
	c := &lister{Client: connect(t, redistest.Server(t).Addr())}
	s := redisstore.New(c, "")
	kept := window.MustCompile(window.Limit{Quota: window.Unlimited, Window: window.Fixed(time.Hour)})
	calls := make([]store.Call, 100)
	for i := range calls {
		calls[i] = store.Call{Verb: store.Take, Ops: []store.Op{hourly(quota, "rule", "k")}, Once: &store.Op{
			Space: store.NewSpace("", "records", "records", 0), Limit: kept, Key: fmt.Append(nil, i), Member: make([]byte, 16),
			N: time.Minute.Microseconds(),
		}}
	}
	if err := s.Do(t.Context(), calls); err != nil || calls[99].Err != nil || c.together != 100 {
		t.Errorf("got errors %v and %v, and %d calls of a round trip, want 100", err, calls[99].Err, c.together)
	}
}

// Callers who wait at the same time share runs, each with its own result. Those
// whose keys another program has written are the only ones with an error.
func TestCallsAreBatched(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	c := connect(t, n.Addr())
	for name, s := range map[string]store.Store{"new": redisstore.New(c, "new"), "open": openURL(t, "redis://"+n.Addr()+"?timeout=20s&prefix=open")} {
		const callers, calls = 64, 100
		for _, w := range []window.Window{window.Sliding(time.Hour), window.Fixed(time.Hour), window.Bucket(365*24*time.Hour, 0), window.Cells(time.Hour, 6), window.Calendar(window.Year, nil)} {
			space, limit := store.NewSpace("", w.ID(), "rule", 0), window.MustCompile(window.Limit{Quota: 1000, Window: w})
			op := func(caller int) store.Op {
				return store.Op{Space: space, Limit: limit, Key: fmt.Append(nil, caller), N: 1}
			}
			used(t, s, op(-1)) // loads the program
			for caller := 0; caller < callers; caller += 8 {
				bad := op(caller)
				n.Must("RPUSH", redisstore.KeyName(name, &bad), "1")
			}
			before := commands(t, n, "evalsha")
			var all sync.WaitGroup
			for caller := range callers {
				all.Go(func() {
					ops := []store.Op{op(caller)}
					for call := range calls {
						err := store.Do(t.Context(), s, store.Take, ops)
						if key := redisstore.KeyName(name, &ops[0]); caller%8 == 0 {
							if err == nil || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "not weir's") {
								t.Errorf("%s, %s: got error %v, want one that names %q", name, w, err, key)
							}
							continue
						}
						if r := ops[0].Result; err != nil || r.Used != int64(call)+1 {
							t.Errorf("%s, %s, caller %d, call %d: got %d used and error %v", name, w, caller, call, r.Used, err)
							return
						}
					}
				})
			}
			all.Wait()
			if got := commands(t, n, "evalsha") - before; got > callers*calls/2 {
				t.Errorf("%s, %s: got %d EVALSHA for %d calls, want few", name, w, got, callers*calls)
			}
		}
	}
}

// Each caller has its own time. One that gives up does not affect the others and is not
// counted; the others get their answers when the server is back.
func TestBatchedCallsKeepDeadlines(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{n.Addr()}, DisableCache: true, AlwaysPipelining: true, PipelineMultiplex: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	s := redisstore.New(c, "")
	op := hourly(1000, "rule", "k")
	used(t, s, op)
	n.Stop()
	var admitted atomic.Int64
	var long, short sync.WaitGroup
	clock := redistest.Clock(t)
	take := func(ctx context.Context) error {
		ops := []store.Op{op}
		err := store.Do(ctx, s, store.Take, ops)
		if err == nil {
			admitted.Add(1)
		}
		return err
	}
	for i := range 60 {
		if i%2 == 0 {
			long.Go(func() {
				if err := take(context.Background()); err != nil {
					t.Errorf("got error %v, want none", err)
				}
			})
			continue
		}
		short.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			began := clock()
			if err := take(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got error %v, want %v", err, context.DeadlineExceeded)
			}
			if passed := clock() - began; passed > 5*time.Second {
				t.Errorf("got an answer after %v, want it after 100 ms", passed)
			}
		})
	}
	short.Wait()
	n.Continue()
	long.Wait()
	if got, want := used(t, s, op), admitted.Load(); got != want || want != 30 {
		t.Errorf("got %d used and %d admitted, want 30", got, want)
	}
}

// A step that the server refuses in the middle of a run fails by itself.
func TestStepOfARunFails(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := redisstore.New(connect(t, n.Addr()), "")
	limit := window.MustCompile(window.Limit{Quota: 1000, Window: window.Sliding(time.Hour), Measure: window.Distinct})
	op := func(key string, member int) store.Op {
		return store.Op{Space: store.NewSpace("", "s", "", 0), Limit: limit, Key: []byte(key), Member: fmt.Append(nil, member), N: 1}
	}
	var calls []store.Call
	for member := range 64 { // the next one needs a sorted set
		calls = append(calls, store.Call{Verb: store.Take, Ops: []store.Op{op("full", member)}})
	}
	do(t, s, calls)
	n.Must("ACL", "SETUSER", "default", "-zadd")
	calls = []store.Call{
		{Verb: store.Take, Ops: []store.Op{op("before", 1)}},
		{Verb: store.Take, Ops: []store.Op{op("full", 64)}},
		{Verb: store.Take, Ops: []store.Op{op("behind", 1)}},
	}
	before := commands(t, n, "evalsha")
	do(t, s, calls)
	if got := commands(t, n, "evalsha") - before; got != 1 {
		t.Errorf("got %d EVALSHA, want one run", got)
	}
	var outage *store.OutageError
	if err := calls[1].Err; !errors.As(err, &outage) || outage.Reason != "refused" || !strings.Contains(err.Error(), "{full}") {
		t.Errorf("got error %v, want that the user has no right", err)
	}
	for _, i := range []int{0, 2} {
		if c := calls[i]; c.Err != nil || c.Ops[0].Result.Used != 1 {
			t.Errorf("call %d: got %+v, want one used", i, c)
		}
	}
	if got := used(t, s, op("full", 64)); got != 64 {
		t.Errorf("got %d used, want 64", got)
	}
}

// A single caller never waits: its steps are sent one by one, by the program for
// one step.
func TestCallerAlone(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := redisstore.New(connect(t, n.Addr()), "")
	used(t, s, hourly(1000, "rule", "k"))
	n.Must("CONFIG", "RESETSTAT")
	for range 50 {
		used(t, s, hourly(1000, "rule", "k"))
	}
	if got, scripts := commands(t, n, "evalsha"), n.Info("number_of_cached_scripts"); got != 50 || scripts != "1" {
		t.Errorf("got %d EVALSHA of %s programs, want 50 of one", got, scripts)
	}
}

// Close ends runs that are under way, and those who wait for them.
func TestCloseEndsFlushes(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := openURL(t, "redis://"+n.Addr()+"?timeout=20s")
	used(t, s, hourly(1000, "rule", "k"))
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			ops := []store.Op{hourly(1_000_000, "rule", "k")}
			for {
				err := store.Do(context.Background(), s, store.Take, ops)
				if errors.Is(err, store.ErrClosed) {
					return
				}
				var outage *store.OutageError
				if err != nil && !errors.As(err, &outage) {
					t.Errorf("got error %v, want %v", err, store.ErrClosed)
					return
				}
			}
		})
	}
	redistest.Eventually(t, "runs are under way", func() bool { return commands(t, n, "evalsha") > 100 })
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	all.Wait()
}

// Where round trips are long, as many runs are under way as let callers leave every
// half millisecond: of 16 callers, 10 ms away, none waits for others, and 64 wait for
// little. They wait for each other again when the server is near.
func TestFarCallersDoNotWait(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	p := redistest.Through(t, n)
	p.Delay(5 * time.Millisecond)
	s := openURL(t, "redis://"+p.Addr()+"?timeout=20s")
	op := hourly(1_000_000, "rule", "k")
	const calls = 20
	runs := func(callers int) int {
		before := commands(t, n, "evalsha")
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for range calls {
					if err := store.Do(t.Context(), s, store.Take, []store.Op{op}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		return commands(t, n, "evalsha") - before
	}
	if got, want := runs(16), 16*calls; got != want {
		t.Errorf("16 callers far away: got %d EVALSHA for %d calls, want one each", got, want)
	}
	if got, all := runs(64), 64*calls; got < all/8 {
		t.Errorf("64 callers far away: got %d EVALSHA for %d calls, want an eighth at least", got, all)
	}
	p.Heal()
	redistest.Eventually(t, "calls are batched", func() bool { return runs(64) < 64*calls*3/4 })
}

// Callers of a server that is far away do not wait for each other: neither do the
// first ones, nor those that come after calls that gave up early.
func TestFarCallersGoAlone(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	p := redistest.Through(t, n)
	const trip, callers = 40 * time.Millisecond, 40
	p.Delay(trip / 2)
	s := openURL(t, "redis://"+p.Addr()+"?timeout=20s")
	redistest.Eventually(t, "the store has connections", func() bool { return !s.Nodes()[0].Unavailable })
	together := func(ctx context.Context, callers int, want error) {
		t.Helper()
		var all sync.WaitGroup
		for caller := range callers {
			all.Go(func() {
				err := store.Do(ctx, s, store.Take, []store.Op{hourly(quota, "rule", fmt.Sprint(caller))})
				if !errors.Is(err, want) {
					t.Errorf("caller %d: got %v, want %v", caller, err, want)
				}
			})
		}
		all.Wait()
	}
	alone := func(when string) {
		t.Helper()
		before := commands(t, n, "evalsha")
		together(t.Context(), callers, nil)
		if got := commands(t, n, "evalsha") - before; got < callers {
			t.Errorf("%s: got %d commands for %d callers, want one each", when, got, callers)
		}
	}
	alone("first calls")
	impatient, cancel := context.WithTimeout(t.Context(), trip/20)
	defer cancel()
	together(impatient, 3, context.DeadlineExceeded) // their commands may arrive during the next calls
	alone("after calls that gave up")
}

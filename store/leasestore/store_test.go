package leasestore_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/leasestore"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/store/storetest"
	"github.com/weirhq/weir/window"
)

// spy counts the calls of a store by their verbs, and fails them when it is told to.
type spy struct {
	store.Store
	mu    sync.Mutex
	calls map[store.Verb]int // guarded by mu
	fails bool               // guarded by mu
	lags  bool               // no replica confirms what is counted; guarded by mu

	once store.Verb // the next call of this verb fails; guarded by mu

	keepOpen bool // Close does nothing
}

func (s *spy) Close() error {
	if s.keepOpen {
		return nil
	}
	return s.Store.Close()
}

func (s *spy) Do(ctx context.Context, calls []store.Call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range calls {
		s.calls[calls[i].Verb]++
	}
	if s.fails || s.once > 0 && calls[0].Verb == s.once {
		s.once = 0
		for i := range calls {
			calls[i].Err = &store.OutageError{Err: errors.New("fails"), Uncounted: true}
		}
		return nil
	}
	err := s.Store.Do(ctx, calls)
	for i := range calls {
		if s.lags && calls[i].Err == nil {
			calls[i].Err = &store.OutageError{Reason: remote.Unconfirmed, Err: errors.New("lags")}
		}
	}
	return err
}

func (s *spy) lag(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lags = yes
}

func (s *spy) failOnce(v store.Verb) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.once = v
}

func (s *spy) count(v store.Verb) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[v]
}

func (s *spy) fail(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = yes
}

var (
	leased = window.MustCompile(window.Limit{Quota: 1000, Window: window.Sliding(time.Second), Lease: window.LeaseStrict})
	plain  = window.MustCompile(window.Limit{Quota: 20, Window: window.Sliding(time.Second)})
	space  = store.NewSpace("", "rule", "rule", 0)
	other  = store.NewSpace("", "other", "other", 0)
)

func opOn(key string, n int64) store.Op {
	return store.Op{Space: space, Limit: leased, Key: []byte(key), N: n}
}

func do(t *testing.T, s store.Store, v store.Verb, ops ...store.Op) []store.Op {
	t.Helper()
	if err := store.Do(t.Context(), s, v, ops); err != nil {
		t.Fatal(err)
	}
	return ops
}

// hot returns a store with a leased key, and how often it was taken.
func hot(t *testing.T, s store.Store) int64 {
	t.Helper()
	before := s.(hook.Leaser).Leases().Granted
	for i := range int64(30) {
		do(t, s, store.Take, opOn("key", 1))
		time.Sleep(time.Millisecond)
		if s.(hook.Leaser).Leases().Granted > before {
			return i + 1
		}
	}
	t.Fatal("the key is not leased")
	return 0
}

func test(t *testing.T, f func(*testing.T, store.Store, *spy)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := &spy{Store: memstore.New(), calls: map[store.Verb]int{}}
		s := leasestore.New(shared, func() int { return 2 })
		f(t, s, shared)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A leased key is decided without the store.
func TestDecidesFromMemory(t *testing.T) {
	test(t, func(t *testing.T, s store.Store, shared *spy) {
		taken := hot(t, s)
		direct := shared.count(store.Take)
		if got := s.(hook.Leaser).Leases(); got.Direct != int64(direct) || got.Asked != int64(shared.count(store.Reserve)) || got.Settled != int64(shared.count(store.Settle)) {
			t.Errorf("got %+v, want the calls that the store got: %v", got, shared.calls)
		}
		op := do(t, s, store.Take, opOn("key", 1))[0]
		if !op.Result.Allowed || op.Result.Quota != 1000 || op.Result.Used < taken+1 || op.Result.Before != op.Result.Used-1 ||
			op.Result.Remaining != 1000-op.Result.Used || op.Result.ResetAfter <= 0 || op.Result.ResetAfter > 1100*time.Millisecond {
			t.Errorf("got %+v", op.Result)
		}
		if got := shared.count(store.Take); got != direct {
			t.Errorf("got %d takes in the store, want %d", got, direct)
		}
	})
}

// A key that nobody asks for any more costs no call, and gives back what it had.
func TestIdleKeyIsGivenBack(t *testing.T) {
	test(t, func(t *testing.T, s store.Store, shared *spy) {
		taken := hot(t, s)
		time.Sleep(200 * time.Millisecond)
		if got := s.(hook.Leaser).Leases().Keys; got != 0 {
			t.Errorf("got %d leased keys, want 0", got)
		}
		before := shared.count(store.Reserve) + shared.count(store.Settle)
		r, err := shared.Store.Read(t.Context(), &store.Op{Space: space, Limit: leased, Key: []byte("key")})
		if err != nil || r.Used != taken {
			t.Errorf("got %d used and %v, want %d", r.Used, err, taken)
		}
		time.Sleep(time.Minute)
		if after := shared.count(store.Reserve) + shared.count(store.Settle); after != before {
			t.Errorf("got %d calls while nobody asked", after-before)
		}
	})
}

// Keys that are cold, limits that do not ask for it, and quotas that are too small are not leased.
func TestOthersAreNotLeased(t *testing.T) {
	test(t, func(t *testing.T, s store.Store, shared *spy) {
		small := window.MustCompile(window.Limit{Quota: 255, Window: window.Sliding(time.Second), Lease: window.LeaseStrict})
		for i := range 300 {
			do(t, s, store.Take, opOn("key"+strconv.Itoa(i%100), 1))
			do(t, s, store.Take, store.Op{Space: other, Limit: plain, Key: []byte("key"), N: 1})
			do(t, s, store.Take, store.Op{Space: other, Limit: small, Key: []byte("small"), N: 1})
			time.Sleep(time.Millisecond)
		}
		if got := shared.count(store.Reserve); got != 0 {
			t.Errorf("got %d reserves", got)
		}
	})
}

// Several limits are all or none: what was spent from a lease is put back if another limit denies, and nothing is counted there
// if the lease denies.
func TestAllOrNone(t *testing.T) {
	test(t, func(t *testing.T, s store.Store, _ *spy) {
		taken := hot(t, s)
		both := func() []store.Op {
			return do(t, s, store.Take, opOn("key", 1), store.Op{Space: other, Limit: plain, Key: []byte("key"), N: 1})
		}
		admitted := int64(0)
		for range 60 {
			ops := both()
			if ops[0].Result.Allowed && ops[1].Result.Allowed {
				admitted++
			}
		}
		if admitted != 20 {
			t.Errorf("got %d admitted, want 20", admitted)
		}
		r, err := s.Read(t.Context(), &store.Op{Space: space, Limit: leased, Key: []byte("key")})
		if err != nil || r.Used != taken+20 {
			t.Errorf("got %d used and %v, want %d", r.Used, err, taken+20)
		}
		for range 3000 {
			if !do(t, s, store.Take, opOn("key", 1))[0].Result.Allowed {
				break
			}
		}
		time.Sleep(time.Second - 100*time.Millisecond)
		for range 200 {
			both()
		}
		used := do(t, s, store.Check, store.Op{Space: other, Limit: plain, Key: []byte("key"), N: 1})[0].Result.Used
		if used > 20 {
			t.Errorf("got %d used of the other limit", used)
		}
	})
}

// Refusals are answered from memory until the instant that the store named.
func TestRefusals(t *testing.T) {
	test(t, func(t *testing.T, s store.Store, shared *spy) {
		hot(t, s)
		var denied window.Result
		for range 3000 {
			if r := do(t, s, store.Take, opOn("key", 1))[0].Result; !r.Allowed {
				denied = r
				break
			}
		}
		if denied.RetryAfter <= 0 || denied.RetryAfter > time.Second || denied.Remaining != 0 || denied.Used != 1000 {
			t.Fatalf("got %+v", denied)
		}
		before := shared.count(store.Reserve) + shared.count(store.Take)
		for range 1000 {
			if do(t, s, store.Take, opOn("key", 1))[0].Result.Allowed {
				t.Fatal("admitted past the quota")
			}
		}
		if got := shared.count(store.Reserve) + shared.count(store.Take) - before; got > 1 {
			t.Errorf("got %d store calls for 1000 denials", got)
		}
		time.Sleep(denied.RetryAfter)
		if !do(t, s, store.Take, opOn("key", 1))[0].Result.Allowed {
			t.Error("denied after the wait")
		}
	})
}

// A read, a correction and a refund see what this process has spent, and nothing that it has leased.
func TestRecalls(t *testing.T) {
	test(t, func(t *testing.T, s store.Store, _ *spy) {
		taken := hot(t, s)
		r, err := s.Read(t.Context(), &store.Op{Space: space, Limit: leased, Key: []byte("key")})
		if err != nil || r.Used != taken {
			t.Errorf("got %d used and %v, want %d", r.Used, err, taken)
		}
		time.Sleep(time.Second + 100*time.Millisecond)
		hot(t, s)
		if got := do(t, s, store.Set, opOn("key", 7))[0].Result; got.Held || got.Used != 7 {
			t.Errorf("set: got %+v", got)
		}
		time.Sleep(time.Second + 100*time.Millisecond)
		taken = hot(t, s)
		if got := do(t, s, store.Refund, opOn("key", 3))[0].Result; got.Used != taken-3 {
			t.Errorf("refund: got %d used, want %d", got.Used, taken-3)
		}
		time.Sleep(time.Second + 100*time.Millisecond)
		hot(t, s)
		if err := s.Forget(t.Context(), &store.Op{Space: space, Limit: leased, Key: []byte("key")}); err != nil {
			t.Error(err)
		}
		if r, err := s.Read(t.Context(), &store.Op{Space: space, Limit: leased, Key: []byte("key")}); err != nil || r.Used != 0 {
			t.Errorf("forget: got %d used and %v", r.Used, err)
		}
	})
}

// What is leased under a quota that was lowered is settled before anything is decided under the new one.
func TestLoweredQuota(t *testing.T) {
	test(t, func(t *testing.T, s store.Store, _ *spy) {
		taken := hot(t, s)
		lower := window.MustCompile(window.Limit{Quota: 300, Highest: 1000, Window: window.Sliding(time.Second), Lease: window.LeaseStrict})
		admitted := taken
		for range 1000 {
			ops := do(t, s, store.Take, store.Op{Space: space, Limit: lower, Key: []byte("key"), N: 1})
			if ops[0].Result.Allowed {
				admitted++
			}
		}
		if admitted > 300 || admitted < 290 {
			t.Errorf("got %d admitted, want 300 or a few less", admitted)
		}
	})
}

// Requests for more hits than a lease has are decided by the store, with all of the quota.
func TestLargeRequests(t *testing.T) {
	test(t, func(t *testing.T, s store.Store, _ *spy) {
		taken := hot(t, s)
		if r := do(t, s, store.Take, opOn("key", 1000-taken))[0].Result; !r.Allowed {
			t.Errorf("got %+v with all of the quota left", r)
		}
	})
}

// A store that fails is left alone for a while, and its error reaches the caller.
func TestOutage(t *testing.T) {
	test(t, func(t *testing.T, s store.Store, shared *spy) {
		hot(t, s)
		shared.fail(true)
		time.Sleep(40 * time.Millisecond)
		failed := 0
		for range 100 {
			if err := store.Do(t.Context(), s, store.Take, []store.Op{opOn("key", 1)}); err != nil {
				if out, ok := errors.AsType[*store.OutageError](err); !ok || out.Ops != nil {
					t.Fatal(err)
				}
				failed++
			}
		}
		if failed != 100 {
			t.Errorf("got %d errors, want 100", failed)
		}
		if got := s.(hook.Leaser).Leases().Lost; got > 3 {
			t.Errorf("got %d requests for a lease", got)
		}
		shared.fail(false)
		time.Sleep(30 * time.Millisecond)
		do(t, s, store.Take, opOn("key", 1))
	})
}

// The error of a store that was asked for some of the ops names those, and what the others spent is put back.
func TestOutageOfSome(t *testing.T) {
	test(t, func(t *testing.T, s store.Store, shared *spy) {
		taken := hot(t, s)
		shared.fail(true)
		for range 10 {
			err := store.Do(t.Context(), s, store.Take, []store.Op{opOn("key", 1), {Space: other, Limit: plain, Key: []byte("key"), N: 1}})
			if out, ok := errors.AsType[*store.OutageError](err); !ok || !slices.Equal(out.Ops, []int{1}) {
				t.Fatalf("got %v, want an outage of op 1", err)
			}
		}
		shared.fail(false)
		if r, err := s.Read(t.Context(), &store.Op{Space: space, Limit: leased, Key: []byte("key")}); err != nil || r.Used != taken {
			t.Errorf("got %d used and %v, want %d", r.Used, err, taken)
		}
	})
}

// What no replica has confirmed holds: what a lease has admitted with it stays counted, and has its result. What is leased
// so is given back at once. The store is asked for leases now and then, and decides the calls meanwhile.
func TestUnconfirmed(t *testing.T) {
	test(t, func(t *testing.T, s store.Store, shared *spy) {
		taken := hot(t, s)
		asked := s.(hook.Leaser).Leases().Asked
		shared.lag(true)
		wide := window.MustCompile(window.Limit{Quota: 2000, Window: window.Sliding(time.Second)})
		for i := range 400 {
			ops := []store.Op{opOn("key", 1), {Space: other, Limit: wide, Key: []byte("key"), N: 1}}
			ops[0].Result.Quota = 7 // of an earlier call
			err := store.Do(t.Context(), s, store.Take, ops)
			out, ok := errors.AsType[*store.OutageError](err)
			if !ok || !hook.HasResults(err) || i == 0 && !slices.Equal(out.Ops, []int{1}) {
				t.Fatalf("take %d: got %+v, want it unconfirmed, and the first one for op 1", i, err)
			}
			for n, op := range ops {
				if op.Result.Quota != op.Limit.Quota || !op.Result.Allowed {
					t.Fatalf("take %d: got %+v for op %d, want it allowed", i, op.Result, n)
				}
			}
			time.Sleep(time.Millisecond)
		}
		if got := s.(hook.Leaser).Leases().Asked - asked; got == 0 || got > 15 {
			t.Errorf("got %d requests for a lease, want at most one in 30ms", got)
		}
		if r, err := s.Read(t.Context(), &store.Op{Space: space, Limit: leased, Key: []byte("key")}); err != nil || r.Used != taken+400 {
			t.Errorf("got %d used and %v, want %d", r.Used, err, taken+400)
		}
		shared.lag(false)
		time.Sleep(40 * time.Millisecond)
		hot(t, s)
	})
}

// What was spent on credit is counted once, although no replica confirms it.
func TestUnconfirmedCredit(t *testing.T) {
	test(t, func(t *testing.T, s store.Store, shared *spy) {
		shared.lag(true)
		op := opOn("key", 1)
		op.Limit = window.MustCompile(window.Limit{Quota: 1000, Window: window.Sliding(time.Second), Lease: 50})
		for range 200 {
			if err := store.Do(t.Context(), s, store.Take, []store.Op{op}); !hook.HasResults(err) {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		shared.keepOpen = true
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if r, err := shared.Store.Read(t.Context(), &op); err != nil || r.Used != 200 {
			t.Errorf("got %d used and %v, want 200", r.Used, err)
		}
	})
}

// forgetful is a store that grants leases, and whose answers to that are lost after a while.
type forgetful struct{ store.Store }

func (s forgetful) Do(ctx context.Context, calls []store.Call) error {
	err := s.Store.Do(ctx, calls)
	if last := &calls[len(calls)-1]; last.Verb == store.Reserve {
		time.Sleep(10 * time.Millisecond)
		last.Err = &store.OutageError{Err: errors.New("lost")}
	}
	return err
}

// A lease that was recalled before its answer got lost is given back.
func TestRecallOfLostLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		s := leasestore.New(forgetful{shared}, func() int { return 2 })
		defer s.Close()
		op := opOn("key", 1)
		for range 12 {
			go func() { _ = store.Do(t.Context(), s, store.Take, []store.Op{op}) }()
		}
		time.Sleep(time.Millisecond)
		if _, err := s.Read(t.Context(), &op); err != nil { // which recalls what is leased of the key
			t.Fatal(err)
		}
		time.Sleep(30 * time.Millisecond)
		if r, err := shared.Read(t.Context(), &op); err != nil || r.Used != 12 || r.Holds != nil {
			t.Errorf("got %+v and %v, want 12 used, and nothing leased", r, err)
		}
	})
}

// A store that has lost its counters has lost the leases, too.
func TestLostState(t *testing.T) {
	test(t, func(t *testing.T, s store.Store, shared *spy) {
		hot(t, s)
		before := s.(hook.Leaser).Leases()
		if err := shared.Store.Forget(t.Context(), &store.Op{Space: space, Limit: leased, Key: []byte("key")}); err != nil {
			t.Fatal(err)
		}
		for range 2000 {
			do(t, s, store.Take, opOn("key", 1))
			if s.(hook.Leaser).Leases().Asked > before.Asked {
				break
			}
		}
		synctest.Wait()
		if got := s.(hook.Leaser).Leases().Dropped; got == 0 {
			t.Errorf("got %d dropped leases", got)
		}
	})
}

// With a credit of c, n instances admit at most the quota and n·c, also when all are refused for so long that their keys
// are leased anew.
func TestCredit(t *testing.T) {
	t.Parallel()
	for _, credit := range []int64{10, 50, 300} {
		t.Run(strconv.FormatInt(credit, 10), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				exact := window.Sliding(time.Second)
				exact.Precision = 5000
				f := newFleet(4, window.Limit{Quota: 5000, Window: exact, Lease: credit}, 5*time.Millisecond, 0.01)
				f.run(t.Context(), 3*time.Second, func(int, time.Duration) float64 { return 5000 })
				f.finish(t)
				if got := f.most(); got < 4750 {
					t.Errorf("got %d in a window, want at least 4750", got)
				}
			})
		})
	}
}

// Where the credit of a limit was changed, nothing is admitted on the old one.
func TestChangedCredit(t *testing.T) {
	test(t, func(t *testing.T, s store.Store, shared *spy) {
		op := opOn("key", 1)
		op.Limit = window.MustCompile(window.Limit{Quota: 1000, Window: window.Sliding(time.Second), Lease: 50})
		for range 30 {
			do(t, s, store.Take, op)
			time.Sleep(time.Millisecond)
		}
		if got := s.(hook.Leaser).Leases().Keys; got != 1 {
			t.Fatalf("got %d leased keys", got)
		}
		op.Limit = window.MustCompile(window.Limit{Quota: 500, Highest: 1000, Window: window.Sliding(time.Second), Lease: window.LeaseStrict})
		shared.fail(true)
		for range 100 {
			if err := store.Do(t.Context(), s, store.Take, []store.Op{op}); err == nil {
				t.Fatal("got a decision without the store")
			}
		}
	})
}

// Nothing is decided from memory after Close, not even on credit.
func TestClosed(t *testing.T) {
	test(t, func(t *testing.T, s store.Store, _ *spy) {
		hot(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		op := opOn("key", 1)
		op.Limit = window.MustCompile(window.Limit{Quota: 1000, Window: window.Sliding(time.Second), Lease: 50})
		for range 100 {
			if err := store.Do(t.Context(), s, store.Take, []store.Op{op}); !errors.Is(err, store.ErrClosed) {
				t.Fatalf("got %v, want that it is closed", err)
			}
		}
	})
}

// Processes that end soon leave nothing uncounted that they have admitted on credit.
func TestCloseReportsCredit(t *testing.T) {
	test(t, func(t *testing.T, s store.Store, shared *spy) {
		op := opOn("key", 1)
		op.Limit = window.MustCompile(window.Limit{Quota: 1000, Window: window.Sliding(time.Second), Lease: 50})
		for range 40 {
			if !do(t, s, store.Take, op)[0].Result.Allowed {
				t.Fatal("got a denial")
			}
		}
		shared.keepOpen = true
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if r, err := shared.Store.Read(t.Context(), &op); err != nil || r.Used != 40 {
			t.Errorf("got %d used and %v, want 40", r.Used, err)
		}
	})
}

// Any number of keys takes no more memory than the table, and strangers leave nothing.
func TestManyKeys(t *testing.T) {
	test(t, func(t *testing.T, s store.Store, _ *spy) {
		for i := range 6000 {
			for range 10 {
				do(t, s, store.Take, opOn(strconv.Itoa(i), 1))
			}
		}
		if got := s.(hook.Leaser).Leases().Keys; got > 4096 {
			t.Errorf("got %d leased keys, want at most 4096", got)
		}
		time.Sleep(time.Second)
		if got := s.(hook.Leaser).Leases().Keys; got != 0 {
			t.Errorf("got %d leased keys afterwards", got)
		}
	})
}

// Each admission from memory is audited once, at a reading of the clock that was set; denials and direct ones are not.
func TestAudit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := &spy{Store: memstore.New(), calls: map[store.Verb]int{}}
		s := leasestore.New(shared, func() int { return 1 })
		began, last, audited := time.Now(), int64(-1), 0
		s.(hook.LeaseAuditor).Audit(func() int64 { return int64(time.Since(began)) + 1e12 }, func(at, hits int64) {
			if at < max(last, 1e12) || hits != 1 {
				t.Errorf("%d hits at %d, after %d", hits, at, last)
			}
			last, audited = at, audited+1
		})
		admitted := int(hot(t, s))
		for range 2000 {
			if do(t, s, store.Take, opOn("key", 1))[0].Result.Allowed {
				admitted++
			}
		}
		if direct := shared.count(store.Take); audited == 0 || audited > admitted || audited < admitted-direct || admitted > 1000 {
			t.Errorf("%d of %d admissions audited, %d direct calls", audited, admitted, direct)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// slow is a store that takes a while to answer.
type slow struct {
	store.Store
	takes atomic.Int64
}

func (s *slow) Do(ctx context.Context, calls []store.Call) error {
	time.Sleep(time.Duration(s.takes.Load()))
	return s.Store.Do(ctx, calls)
}

// A store that is too far away for leases is asked for hardly any, so that they use up no quota, and for leases again when
// it is near.
func TestStoreTooFarAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := &slow{Store: memstore.New()}
		shared.takes.Store(int64(150 * time.Millisecond))
		s := leasestore.New(shared, func() int { return 2 })
		granted := func(d time.Duration) int64 {
			before := s.(hook.Leaser).Leases().Granted
			var all sync.WaitGroup
			for range 200 {
				all.Go(func() {
					for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
						do(t, s, store.Take, opOn("key", 1))
					}
				})
			}
			all.Wait()
			return s.(hook.Leaser).Leases().Granted - before
		}
		granted(2 * time.Second)
		if got := granted(5 * time.Second); got > 10 {
			t.Errorf("%d hits were leased of a store that is too far away", got)
		}
		shared.takes.Store(int64(time.Millisecond))
		if got := granted(5 * time.Second); got < 2000 {
			t.Errorf("%d hits were leased of a store that is near again", got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// What no limit wants leased is decided as the shared store does.
func TestTransparent(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		m := storetest.NewModel()
		m.Store = leasestore.New(m.Store, func() int { return 2 })
		storetest.Compare(t, m, storetest.NewModel(), seed, 500)
		if err := m.Store.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A settle without an answer is sent again, and what was leased is free at once.
func TestSettleIsRepeated(t *testing.T) {
	test(t, func(t *testing.T, s store.Store, shared *spy) {
		taken := hot(t, s)
		shared.failOnce(store.Settle)
		if r, err := s.Read(t.Context(), &store.Op{Space: space, Limit: leased, Key: []byte("key")}); err != nil || r.Used != taken {
			t.Errorf("got %d used and %v, want %d", r.Used, err, taken)
		}
	})
}

// Who lists the keys of a space, as an export does, sees what this process has spent, and nothing that it has leased.
func TestListingRecalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := storetest.NewModel().Store
		s := leasestore.New(shared, func() int { return 2 })
		taken, listed := hot(t, s), 0
		op := opOn("key", 1)
		_, err := hook.ListerOf(s).Keys(t.Context(), &op, nil, func([]byte, window.State, window.Instant) { listed++ })
		if err != nil || listed != 1 {
			t.Fatalf("got %d keys and %v, want 1", listed, err)
		}
		if r, err := shared.Read(t.Context(), &op); err != nil || r.Used != taken {
			t.Errorf("got %d used and %v, want %d", r.Used, err, taken)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

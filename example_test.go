package weir_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

func Example() {
	posts := weir.MustLimiter(weir.Sliding(2, time.Hour))
	defer posts.Close()
	for range 3 {
		r, err := posts.Allow(context.Background(), "user:42")
		if err != nil {
			panic(err)
		}
		fmt.Println(r.Allowed, r.Remaining, "left, retry in", r.RetryAfter.Round(time.Minute))
	}
	// Output:
	// true 1 left, retry in 0s
	// true 0 left, retry in 0s
	// false 0 left, retry in 1h0m0s
}

func ExampleNewEngine() {
	set, err := rule.New([]rule.Rule{{
		Name:   "posts-per-hour",
		When:   []rule.Condition{{Attribute: "action", Test: rule.Equal("post")}},
		Per:    []string{"user"},
		Quota:  &rule.Quota{Value: 5},
		Window: window.Sliding(time.Hour),
	}}, nil)
	if err != nil {
		panic(err)
	}
	e, err := weir.NewEngine(set)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	post := weir.Request{Attributes: weir.Attributes("action", "post", "user", "42"), Hits: 5}
	for range 2 {
		d, err := e.Take(context.Background(), post)
		if err != nil {
			panic(err)
		}
		fmt.Println(d.Outcome, d.Rule, d.Usages[0].Used, "of", d.Usages[0].Quota)
	}
	// Output:
	// allow  5 of 5
	// deny posts-per-hour 5 of 5
}

func ExampleAnd() {
	posts := weir.MustLimiter(weir.Sliding(2, time.Minute), weir.And(weir.Sliding(3, time.Hour)))
	defer posts.Close()
	for range 4 {
		r, _ := posts.Allow(context.Background(), "user:42")
		by := posts.Limits()[r.Limit]
		fmt.Println(r.Allowed, r.Remaining, "left of", by.Quota, "per", by.Window.Length)
	}
	// Output:
	// true 1 left of 2 per 1m0s
	// true 0 left of 2 per 1m0s
	// false 0 left of 2 per 1m0s
	// false 0 left of 2 per 1m0s
}

func ExampleLimiter_Wait() {
	calls := weir.MustLimiter(weir.Bucket(100, time.Second, 1)) // one each 10 ms
	defer calls.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	began, done := time.Now(), 0
	for calls.Wait(ctx, "api.example.com") == nil {
		done++ // call the API
		if done == 5 {
			break
		}
	}
	fmt.Println(done, "calls took 40 ms or more:", time.Since(began) >= 40*time.Millisecond)

	// 100 calls do not fit before the context ends, so nobody waits for them.
	err := calls.WaitN(ctx, "api.example.com", 100)
	fmt.Println(errors.Is(err, weir.ErrWouldWait))
	// Output:
	// 5 calls took 40 ms or more: true
	// true
}

func ExampleLimiter_AllowN() {
	tokens := weir.MustLimiter(weir.Bucket(100_000, time.Minute, 20_000))
	defer tokens.Close()
	r, _ := tokens.AllowN(context.Background(), "team:red", 20_001)
	fmt.Println(r.Allowed, r.RetryAfter == window.Never)
	// Output: false true
}

func ExampleLimiter_AllowUpTo() {
	mails := weir.MustLimiter(weir.Sliding(100, time.Hour))
	defer mails.Close()
	for _, batch := range []int64{80, 80, 80} {
		n, r, _ := mails.AllowUpTo(context.Background(), "account:7", batch)
		fmt.Println("send", n, "now, and the next one in", r.RetryAfter.Round(time.Minute))
	}
	// Output:
	// send 80 now, and the next one in 0s
	// send 20 now, and the next one in 0s
	// send 0 now, and the next one in 1h0m0s
}

func ExampleLimiter_AllowMember() {
	strangers := weir.MustLimiter(weir.Members(2, 24*time.Hour))
	defer strangers.Close()
	for _, peer := range []string{"bob", "cat", "dan", "bob"} {
		r, _ := strangers.AllowMember(context.Background(), "ann", peer)
		fmt.Println(peer, r.Allowed)
	}
	// Output:
	// bob true
	// cat true
	// dan false
	// bob true
}

func ExampleLimiter_Check() {
	posts := weir.MustLimiter(weir.Sliding(1, time.Hour))
	defer posts.Close()
	for range 2 {
		r, _ := posts.Check(context.Background(), "user:42")
		fmt.Println(r.Allowed, r.Used)
	}
	// Output:
	// true 0
	// true 0
}

// Reserve an estimate, then settle what it really cost.
func ExampleLimiter_Refund() {
	tokens := weir.MustLimiter(weir.Sliding(1000, time.Minute))
	defer tokens.Close()
	ctx := context.Background()
	r, _ := tokens.AllowN(ctx, "team:red", 500)
	fmt.Println("reserved:", r.Used)
	r, _ = tokens.Refund(ctx, "team:red", 120)
	fmt.Println("settled:", r.Used)
	// Output:
	// reserved: 500
	// settled: 380
}

func ExampleLimiter_Record() {
	logins := weir.MustLimiter(weir.Sliding(3, time.Minute))
	defer logins.Close()
	ctx := context.Background()
	for range 3 { // only failed logins count
		_, _ = logins.Record(ctx, "ann", 1)
	}
	r, _ := logins.Check(ctx, "ann")
	fmt.Println(r.Allowed)
	// Output: false
}

func ExampleLimiter_Forget() {
	logins := weir.MustLimiter(weir.Sliding(1, time.Minute))
	defer logins.Close()
	ctx := context.Background()
	_, _ = logins.Allow(ctx, "ann")
	_ = logins.Forget(ctx, "ann")
	r, _ := logins.Check(ctx, "ann")
	fmt.Println(r.Allowed)
	// Output: true
}

func ExampleCounter() {
	views, err := weir.NewCounter(window.Cells(24*time.Hour, 1440))
	if err != nil {
		panic(err)
	}
	defer views.Close()
	ctx := context.Background()
	_, _ = views.Add(ctx, "/home", 2)
	n, _ := views.Add(ctx, "/home", 1)
	lastHour, _ := views.Count(ctx, "/home", time.Hour)
	history, _ := views.History(ctx, "/home")
	fmt.Println(n, lastHour, history[0].Length, history[0].Hits > 0)
	// Output: 3 3 1m0s true
}

// While its store is unavailable, this limiter admits, and says so.
func ExampleWithOutage() {
	counts := &away{memstore.New()}
	defer counts.Close()
	posts := weir.MustLimiter(weir.Sliding(5, time.Hour),
		weir.WithStore(counts), weir.WithName("posts"), weir.WithOutage(rule.OutageAllow))
	r, err := posts.Allow(context.Background(), "user:42")
	fmt.Println(r.Allowed, r.Degraded, err)
	// Output: true true <nil>
}

// Four processes share a store. While it is unavailable, each of them admits a quarter of the quota from memory of its own.
func ExampleWithNodes() {
	counts := &away{memstore.New()}
	defer counts.Close()
	posts := weir.MustLimiter(weir.Sliding(8, time.Hour),
		weir.WithStore(counts), weir.WithName("posts"), weir.WithNodes(func() int { return 4 }))
	defer posts.Close()
	for range 3 {
		r, err := posts.Allow(context.Background(), "user:42")
		fmt.Println(r.Allowed, r.Remaining, r.Degraded, err)
	}
	// Output:
	// true 1 true <nil>
	// true 0 true <nil>
	// false 0 true <nil>
}

// away is a store that nothing reaches.
type away struct{ store.Store }

func (*away) Do(_ context.Context, calls []store.Call) error {
	for i := range calls {
		calls[i].Err = &store.OutageError{Err: errors.New("connection refused")}
	}
	return nil
}

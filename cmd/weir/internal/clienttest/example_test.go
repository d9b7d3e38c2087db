package clienttest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/client"
	"github.com/weirhq/weir/cmd/weir/internal/grpcapi"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/httplimit"
	"github.com/weirhq/weir/rulefile"
)

// service starts a service with the rules of docs/reference/grpc.md, as weir serve does.
func service() (address string, stop func()) {
	file, err := rulefile.Parse("rules.yaml", []byte(`rules:
  - name: posts-per-hour
    when: {action: post}
    per: [user]
    limit: 5
    window: 1h
  - name: llm-tokens
    when: {action: chat}
    per: [team]
    sum: tokens
    limit: 1000
    window: 1m
    hold: 5m
`), nil)
	if err != nil {
		log.Fatal(err)
	}
	engine, err := weir.NewEngine(file.Set)
	if err != nil {
		log.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	s := grpcserver.New(grpcserver.Config{})
	s.Add(grpcapi.Service, grpcapi.File, grpcapi.New(namespace.Only(engine)).Methods())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	return l.Addr().String(), func() { _ = s.Close(); <-ended; _ = engine.Close() }
}

func Example() {
	address, stop := service()
	defer stop()
	ctx := context.Background()

	c, err := client.New(address, client.WithStreams(1))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	post := weir.Request{Attributes: weir.Attributes("action", "post", "user", "42"), Hits: 3}
	for range 2 {
		d, err := c.Take(ctx, post)
		if err != nil {
			fmt.Println(err) // the service was not asked, or did not answer
			return
		}
		if !d.Allowed {
			fmt.Println("denied by", d.Rule, "for", d.RetryAfter.Round(time.Hour))
			continue
		}
		fmt.Println("allowed, remaining:", d.Usages[0].Remaining)
	}
	// Output:
	// allowed, remaining: 2
	// denied by posts-per-hour for 1h0m0s
}

// taker is what the program of the example asks: an engine in its own process, or a
// client of a service.
type taker interface {
	Take(ctx context.Context, r weir.Request) (weir.Decision, error)
}

var _, _ taker = (*weir.Engine)(nil), (*client.Client)(nil)

// A program that is written for an interface with the methods that it calls counts in
// its own process, or asks a service.
func Example_taker() {
	address, stop := service()
	defer stop()

	mayPost := func(d taker, user string) (bool, error) {
		decision, err := d.Take(context.Background(), weir.Request{Attributes: weir.Attributes("action", "post", "user", user)})
		return decision.Allowed, err
	}

	decider, err := client.New(address) // or weir.NewEngine(rules)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer decider.Close()

	fmt.Println(mayPost(decider, "42"))
	// Output: true <nil>
}

func ExampleClient_Settle() {
	address, stop := service()
	defer stop()
	ctx := context.Background()
	c, err := client.New(address)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	d, err := c.Take(ctx, weir.Request{Attributes: weir.Attributes("action", "chat", "team", "red", "tokens", "900")})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("held:", d.Usages[0].Used, "for", d.Hold)

	// The call has cost less.
	d, err = c.Settle(ctx, d.Receipt, weir.Request{Attributes: weir.Attributes("action", "chat", "team", "red", "tokens", "640")})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("settled:", d.Usages[0].Used)
	// Output:
	// held: 900 for 5m0s
	// settled: 640
}

func ExampleUncounted() {
	c, err := client.New("127.0.0.1:1") // nothing listens there
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	_, err = c.Take(context.Background(), weir.Request{Attributes: weir.Attributes("action", "post", "user", "42")})
	switch {
	case client.Uncounted(err):
		fmt.Println("nothing was counted: the call may be made again")
	case errors.Is(err, context.DeadlineExceeded):
		fmt.Println("no answer in time: the take may have counted")
	}
	// Output: nothing was counted: the call may be made again
}

// Middleware can use a service instead of an engine.
func Example_middleware() {
	address, stop := service()
	defer stop()

	decider, err := client.New(address, client.WithStreams(1))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer decider.Close()

	limited, err := httplimit.Rules(decider, func(r *http.Request, list []weir.Attribute) []weir.Attribute {
		return append(list, weir.Attributes("action", "post", "user", r.PathValue("user"))...)
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("POST /posts/{user}", limited.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
	})))
	for range 6 {
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/posts/42", nil))
		state, _, _ := strings.Cut(answer.Header().Get("RateLimit"), ";t=")
		fmt.Println(answer.Code, state)
	}
	// Output:
	// 201 "posts-per-hour";r=4
	// 201 "posts-per-hour";r=3
	// 201 "posts-per-hour";r=2
	// 201 "posts-per-hour";r=1
	// 201 "posts-per-hour";r=0
	// 429 "posts-per-hour";r=0
}

//go:build attack

package main

import (
	"context"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	rpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// envoyAttacks lists Envoy's calls that are wrong, behind the same number of callers
// whose calls are right: what those cost others is what calls cost.
func envoyAttacks() []attackRow {
	entry := func(key, value string) *common.RateLimitDescriptor_Entry {
		return &common.RateLimitDescriptor_Entry{Key: key, Value: value}
	}
	of := func(entries ...*common.RateLimitDescriptor_Entry) *common.RateLimitDescriptor {
		return &common.RateLimitDescriptor{Entries: entries}
	}
	call := func(descriptors ...*common.RateLimitDescriptor) *rls.RateLimitRequest {
		return &rls.RateLimitRequest{Domain: "edge", Descriptors: descriptors}
	}
	user := entry("user", "stranger")
	hits, unit := of(user), of(user)
	hits.HitsAddend = wrapperspb.UInt64(math.MaxUint64)
	unit.Limit = &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 5, Unit: 99}
	var entries []*common.RateLimitDescriptor_Entry
	var descriptors []*common.RateLimitDescriptor
	for range 10_000 {
		entries, descriptors = append(entries, user), append(descriptors, of(user))
	}
	row := func(name string, want codes.Code, calls ...*rls.RateLimitRequest) attackRow {
		return attackRow{name, 8, setting{grpc: true, envoy: true, rules: 1}, func(a *target) { a.call(want, calls) }}
	}
	return append([]attackRow{
		row("Envoy: right calls", codes.OK, call(of(user))),
		row("Envoy: empty descriptors, 2^64-1 hits, unknown units", codes.InvalidArgument, call(), call(of()), call(of(entry("", "x"))), call(hits), call(unit)),
		row("Envoy: values of 1 MiB", codes.OK, call(of(entry("user", strings.Repeat("x", 1<<20-100))))),
		row("Envoy: messages over 1 MiB", codes.ResourceExhausted, call(of(entry("user", strings.Repeat("x", 1<<20))))),
		row("Envoy: 10,000 entries", codes.InvalidArgument, call(of(entries...))),
		row("Envoy: 10,000 descriptors", codes.InvalidArgument, call(descriptors...)),
	}, jsonAttacks()...)
}

// jsonAttacks lists calls of POST /json that are wrong, behind the same number of callers
// whose calls are right.
func jsonAttacks() (rows []attackRow) {
	const user = `{"entries":[{"key":"user","value":"stranger"}]}`
	many := func(text string, n int) string { return strings.TrimSuffix(strings.Repeat(text+",", n), ",") }
	body := func(descriptors string) string { return `{"domain":"edge","descriptors":[` + descriptors + `]}` }
	for _, a := range []struct {
		name, body string
		want       int
	}{
		{"right calls", body(user), 200},
		{"a body of 1 MiB of empty descriptors", body(many(`{}`, 340_000)), 400},
		{"1,000 descriptors with 64 entries in 1 MiB", body(many(`{"entries":[`+many(`{"key":"a"}`, 64)+`]}`, 1000)), 200},
		{"10,000 descriptors", body(many(user, 10_000)), 400},
		{"deep nesting", body(strings.Repeat("[", 500_000)), 400},
		{"a number of 1 MB", `{"hitsAddend":` + strings.Repeat("9", 1_000_000) + `}`, 400},
		{"a member 80,000 times", `{` + many(`"domain":"d"`, 80_000) + `}`, 400},
		{"bodies over 1 MiB", strings.Repeat(" ", 1<<20+1), 413},
	} {
		rows = append(rows, attackRow{"POST /json: " + a.name, 8, setting{grpc: true, envoy: true, files: true}, func(t *target) { t.post(a.want, a.body) }})
	}
	return rows
}

// post makes calls in JSON, on a separate connection. It counts those that get the status
// want, and stops at one that gets neither that nor 503.
func (a *target) post(want int, body string) {
	client := &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	for a.on() {
		resp, err := client.Post(a.api+"/json", "application/json", strings.NewReader(body))
		if err != nil {
			continue // the connection was closed
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		switch resp.StatusCode {
		case want:
			a.made.Add(1)
		case http.StatusServiceUnavailable:
		default:
			panic(resp.Status)
		}
	}
}

// call makes calls one after another, on a separate connection. It counts those that end with the
// code want, and stops at one that does not.
func (a *target) call(want codes.Code, calls []*rls.RateLimitRequest) {
	c, err := grpc.NewClient(a.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	defer c.Close()
	ctx, cancel := context.WithDeadline(context.Background(), a.until)
	defer cancel()
	for i := 0; a.on(); i++ {
		_, err := rls.NewRateLimitServiceClient(c).ShouldRateLimit(ctx, calls[i%len(calls)])
		switch code := rpcstatus.Code(err); {
		case code == want:
			a.made.Add(1)
		case ctx.Err() == nil && code != codes.DeadlineExceeded && code != codes.Unavailable:
			panic(err)
		}
	}
}

// proxy makes calls as an ordinary Envoy does, on one connection and on new ones, until
// the attack is over.
func (a *target) proxy(t *testing.T, token string) (took []time.Duration, refused, failed int) {
	in := &rls.RateLimitRequest{Domain: "edge", Descriptors: []*common.RateLimitDescriptor{{
		Entries: []*common.RateLimitDescriptor_Entry{{Key: "user", Value: "neighbour"}}, HitsAddend: wrapperspb.UInt64(0),
	}}}
	open := func() *grpc.ClientConn {
		c, err := grpc.NewClient(a.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	lasting := open()
	defer lasting.Close()
	for i := 0; a.on(); i++ {
		c := lasting
		if i%4 == 0 {
			c = open()
		}
		ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token), 10*time.Second)
		began := time.Now()
		_, err := rls.NewRateLimitServiceClient(c).ShouldRateLimit(ctx, in)
		switch {
		case err == nil:
			took = append(took, time.Since(began))
		case rpcstatus.Code(err) == codes.Unavailable:
			refused++
		default:
			failed++
			t.Log(err)
		}
		cancel()
		if c != lasting {
			c.Close()
		}
		time.Sleep(5 * time.Millisecond)
	}
	return took, refused, failed
}

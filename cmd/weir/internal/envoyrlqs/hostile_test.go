package envoyrlqs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	rlqs "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	envoytype "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/store"
)

const perUser = `
rules:
  - {name: per-user, when: {domain: edge}, per: [user], limit: 100, window: 1m}
  - {name: failures, when: {fails: "yes"}, per: [fails], limit: 3, window: 1m, ban: {for: 1h}}
  - {name: seen, when: {domain: edge}, per: [user], window: 1m}
`

type usage = rlqs.RateLimitQuotaUsageReports_BucketQuotaUsage

func of(allowed uint64, entries ...string) *usage {
	id := &rlqs.BucketId{Bucket: map[string]string{}}
	for i := 0; i < len(entries); i += 2 {
		id.Bucket[entries[i]] = entries[i+1]
	}
	return &usage{BucketId: id, NumRequestsAllowed: allowed}
}

func reports(domain string, usages ...*usage) *rlqs.RateLimitQuotaUsageReports {
	return &rlqs.RateLimitQuotaUsageReports{Domain: domain, BucketQuotaUsages: usages}
}

// textOf returns an action in words.
func textOf(a *rlqs.RateLimitQuotaResponse_BucketAction) string {
	s := a.GetQuotaAssignmentAction().GetRateLimitStrategy()
	switch {
	case a.GetAbandonAction() != nil:
		return "abandon"
	case s.GetTokenBucket() != nil:
		return fmt.Sprint(s.GetTokenBucket().MaxTokens, " tokens")
	}
	return s.GetBlanketRule().String()
}

func TestAssignments(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conn, engine := serve(t, perUser, grpcserver.Config{}, nil)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		stream := open(ctx, t, conn)
		send := func(domain string, usages ...*usage) string {
			t.Helper()
			if err := stream.Send(reports(domain, usages...)); err != nil {
				t.Fatal(err)
			}
			m, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			var all []string
			for _, a := range m.BucketAction {
				all = append(all, textOf(a))
			}
			return strings.Join(all, ", ")
		}
		used := func(want int64) {
			t.Helper()
			if u, err := engine.Usage(t.Context(), "per-user", weir.Attributes("user", "ann")); err != nil || u.Used != want {
				t.Errorf("used: got %d, %v, want %d", u.Used, err, want)
			}
		}
		// The first part of a quota; a bucket that no limit matches; one whose limit cannot be reserved.
		if got, want := send("edge", of(0, "user", "ann"), of(1, "path", "/"), of(0, "fails", "yes")), "25 tokens, ALLOW_ALL, DENY_ALL"; got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
		used(25)
		time.Sleep(time.Second)
		if got, want := send("", of(20, "user", "ann")), "40 tokens"; got != want { // 20 a second, for 1.25 s, and three deviations more
			t.Fatalf("got %s, want %s", got, want)
		}
		time.Sleep(time.Second)
		if got, want := send("edge", of(50, "user", "ann")), "30 tokens"; got != want { // 70 are reported
			t.Fatalf("got %s, want %s", got, want)
		}
		used(100)
		time.Sleep(time.Second)
		// More than was assigned is recorded, past the quota. Nothing replaces the assignment, which is spent.
		if got, want := send("edge", of(50, "user", "ann"), of(1, "path", "/")), "ALLOW_ALL"; got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
		used(120)
		if u, err := engine.Usage(t.Context(), "seen", weir.Attributes("user", "ann")); err != nil || u.Used != 120 {
			t.Errorf("the counter: got %d, %v, want 120", u.Used, err)
		}
		time.Sleep(2 * time.Minute)
		if got, want := send("edge", of(0, "user", "ann")), "abandon"; got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
		// A stream that never reports again: what it has counts until it ends, and for a window.
		if got, want := send("edge", of(0, "user", "ann")), "25 tokens"; got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
		stop()
		time.Sleep(30 * time.Second)
		used(25)
		time.Sleep(time.Minute)
		used(0)
	})
}

// unavailable is a store that cannot answer.
type unavailable struct{ store.Store }

func (unavailable) Do(_ context.Context, calls []store.Call) error {
	for i := range calls {
		calls[i].Err = &store.OutageError{Err: errors.New("unavailable"), Uncounted: true}
	}
	return nil
}

func TestOutage(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]envoytype.RateLimitStrategy_BlanketRule{"deny": envoytype.RateLimitStrategy_DENY_ALL, "allow": -1} {
		synctest.Test(t, func(t *testing.T) {
			rules := "rules: [{name: api, per: [user], limit: 100, window: 1m, on_outage: " + policy + "}]"
			conn, _ := serve(t, rules, grpcserver.Config{}, func(s store.Store) store.Store { return unavailable{s} })
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			stream := open(ctx, t, conn)
			if err := stream.Send(reports("edge", of(0, "user", "ann"))); err != nil {
				t.Fatal(err)
			}
			m, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			s := m.BucketAction[0].GetQuotaAssignmentAction().RateLimitStrategy
			if got := s.GetTokenBucket() != nil; got != (want < 0) || !got && s.GetBlanketRule() != want {
				t.Errorf("%s: got %v", policy, s)
			}
		})
	}
}

func TestBadReports(t *testing.T) {
	t.Parallel()
	many := []string{}
	for i := range 65 {
		many = append(many, fmt.Sprint("k", i), "v")
	}
	for name, m := range map[string]*rlqs.RateLimitQuotaUsageReports{
		"no domain":    reports("", of(0, "user", "ann")),
		"long domain":  reports(strings.Repeat("d", 1025), of(0, "user", "ann")),
		"no id":        reports("edge", &usage{}),
		"empty key":    reports("edge", of(0, "", "v")),
		"long key":     reports("edge", of(0, strings.Repeat("k", 1025), "v")),
		"many entries": reports("edge", of(0, many...)),
	} {
		synctest.Test(t, func(t *testing.T) {
			conn, _ := serve(t, perUser, grpcserver.Config{}, nil)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			stream := open(ctx, t, conn)
			if err := stream.Send(m); err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Recv(); status.Code(err) != codes.InvalidArgument {
				t.Errorf("%s: got %v, want %v", name, err, codes.InvalidArgument)
			}
		})
	}
}

// strange is a codec that writes eve* with a byte that is not UTF-8, which generated messages cannot have.
type strange struct{ encoding.Codec }

func (strange) Name() string { return "proto" }

func (strange) Marshal(m any) ([]byte, error) {
	b, err := proto.Marshal(m.(proto.Message))
	return bytes.ReplaceAll(b, []byte("eve*"), []byte("eve\xff")), err
}

func (strange) Unmarshal(b []byte, m any) error { return proto.Unmarshal(b, m.(proto.Message)) }

// Ids have what clients of Envoy send. None of it ends the stream, and others get their parts.
func TestHostileClients(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conn, engine := serve(t, perUser+"  - {name: sums, per: [tokens], sum: tokens, limit: 3, window: 1m}\n", grpcserver.Config{}, nil)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		stream, err := rlqs.NewRateLimitQuotaServiceClient(conn).StreamRateLimitQuotas(ctx, grpc.ForceCodec(strange{}))
		if err != nil {
			t.Fatal(err)
		}
		send := func(usages ...*usage) map[string]string {
			t.Helper()
			if err := stream.Send(reports("edge", append(usages, of(1, "user", "ann"))...)); err != nil {
				t.Fatal(err)
			}
			m, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			all := map[string]string{}
			for _, a := range m.BucketAction {
				all[a.BucketId.Bucket["user"]] = textOf(a)
			}
			return all
		}
		long, most := strings.Repeat("v", 8193), strings.Repeat("m", 8192)
		want := map[string]string{"": "ALLOW_ALL", long: "DENY_ALL", "many": "DENY_ALL", "number": "DENY_ALL", most: "25 tokens", "ann": "24 tokens"}
		if got := send(of(1, "user", ""), of(1, "user", long), of(1<<60, "user", "many"), of(1, "user", "number", "tokens", "abc"), of(0, "user", most)); !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		time.Sleep(time.Second)
		if got := send(of(0, "user", long)); got[long] != "abandon" {
			t.Errorf("a long value without requests: got %v", got)
		}
		time.Sleep(time.Second)
		many := make([]*usage, 10_001)
		for i := range many {
			many[i] = of(1, "user", fmt.Sprint(i))
		}
		// Five have to go: three without requests for a second, and the first two of these.
		numbers := map[string]int{}
		for _, text := range send(many...) {
			numbers[text]++
		}
		if want := map[string]int{"24 tokens": 9999, "abandon": 5}; !maps.Equal(numbers, want) {
			t.Errorf("too many buckets: got %v, want %v", numbers, want)
		}
		if u, err := engine.Usage(t.Context(), "seen", weir.Attributes("user", "0")); err != nil || u.Used != 1 {
			t.Errorf("one that has to go: got %d hits, %v, want 1", u.Used, err)
		}
		// The id in the answer is another one, because a message cannot have those bytes. So Envoy has no assignment.
		if got := send(of(1, "user", "eve*")); len(got) == 0 || got["eve*"] != "" {
			t.Errorf("bytes that are not UTF-8: got %v", got)
		}
		if u, err := engine.Usage(t.Context(), "seen", weir.Attributes("user", "eve?")); err != nil || u.Used != 1 {
			t.Errorf("eve\\xff: got %d hits, %v, want 1", u.Used, err)
		}
	})
}

// Ids cost no memory of requests, which other calls need.
func TestHostileIDs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := &access.ResourceLimits{Memory: 1 << 20}
		conn, _ := serve(t, perUser, grpcserver.Config{Resources: limits}, nil)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		stream := open(ctx, t, conn)
		for i := range 100 {
			usages := []*usage{}
			for n := range 20 {
				usages = append(usages, of(1, "user", fmt.Sprint(i, "-", n, strings.Repeat("x", 900))))
			}
			if err := stream.Send(reports("edge", usages...)); err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Recv(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if _, memory := limits.Now(); memory != access.StreamBytes {
				t.Fatalf("%d bytes are reserved, want those of an idle stream", memory)
			}
		}
		stop()
		synctest.Wait()
		if _, memory := limits.Now(); memory != 0 {
			t.Errorf("%d bytes are reserved after the stream", memory)
		}
	})
}

// A stream that has most of the memory of buckets gives them up for others, without a report.
func TestSilentStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conn, _ := serve(t, perUser, grpcserver.Config{}, nil)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		report := func(on rlqs.RateLimitQuotaService_StreamRateLimitQuotasClient, i int) (texts map[string]int) {
			t.Helper()
			m := reports("edge")
			for n := range 100 {
				m.BucketQuotaUsages = append(m.BucketQuotaUsages, of(1, "user", fmt.Sprint(i, "-", n, strings.Repeat("x", 8000))))
			}
			if err := on.Send(m); err != nil {
				t.Fatal(err)
			}
			return answer(t, on)
		}
		silent, other := open(ctx, t, conn), open(ctx, t, conn)
		for i := range 9 { // they take nearly all
			if got := report(silent, i); got["abandon"] > 0 {
				t.Fatalf("message %d: got %v", i, got)
			}
		}
		if got := report(other, 100); got["24 tokens"] != 100 {
			t.Errorf("another stream: got %v", got)
		}
		if got := answer(t, silent); got["abandon"] == 0 || len(got) > 1 {
			t.Errorf("the silent one: got %v, want buckets to abandon", got)
		}
	})
}

// answer returns how many of the next answer's actions there are of each text.
func answer(t *testing.T, on rlqs.RateLimitQuotaService_StreamRateLimitQuotasClient) map[string]int {
	t.Helper()
	m, err := on.Recv()
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]int{}
	for _, a := range m.BucketAction {
		texts[textOf(a)]++
	}
	return texts
}

// held is a store that answers nothing until it is closed.
type held struct {
	store.Store
	until chan struct{}
}

func (h held) Do(ctx context.Context, calls []store.Call) error {
	<-h.until
	return h.Store.Do(ctx, calls)
}

// Messages that wait have the memory reserved that they take decoded, with their buckets, which is many times their size. One for
// which there is none left waits until others are answered. If that takes long, it ends the stream, after the answers to those
// before it.
func TestWaitingMessages(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		held    time.Duration
		counted int64 // messages
		end     codes.Code
	}{
		{4 * time.Second, 4, codes.OK},
		{6 * time.Second, 3, codes.Unavailable},
	} {
		synctest.Test(t, func(t *testing.T) {
			limits := &access.ResourceLimits{Memory: 1 << 20}
			until := make(chan struct{})
			release := sync.OnceFunc(func() { close(until) })
			defer release()
			conn, engine := serve(t, perUser, grpcserver.Config{Resources: limits}, func(s store.Store) store.Store { return held{s, until} })
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			stream := open(ctx, t, conn)
			const usages = 100
			for n := range int64(4) {
				m := reports("edge")
				for i := range usages {
					m.BucketQuotaUsages = append(m.BucketQuotaUsages, of(1, "user", fmt.Sprint(i)))
				}
				if size := proto.Size(m); size > 2<<10 {
					t.Fatalf("a message has %d bytes, want a small one", size)
				}
				if err := stream.Send(m); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				waiting := min(n+1, 3)
				least := access.StreamBytes + waiting*usages*(2<<10)
				if _, memory := limits.Now(); memory < least || memory > limits.Memory {
					t.Fatalf("%d bytes are reserved, %d messages wait: want %d to %d", memory, waiting, least, limits.Memory)
				}
			}
			time.Sleep(tc.held)
			release()
			err := stream.CloseSend()
			var answered int
			for err == nil {
				var m *rlqs.RateLimitQuotaResponse
				if m, err = stream.Recv(); err == nil {
					answered += len(m.BucketAction)
				}
			}
			if errors.Is(err, io.EOF) {
				err = nil
			}
			if status.Code(err) != tc.end || answered < usages {
				t.Errorf("held for %v: %d buckets were answered, then %v; want %d, then %v", tc.held, answered, err, usages, tc.end)
			}
			if u, err := engine.Usage(t.Context(), "seen", weir.Attributes("domain", "edge", "user", "7")); err != nil || u.Used != tc.counted {
				t.Errorf("held for %v: got %d messages counted, %v, want %d", tc.held, u.Used, err, tc.counted)
			}
			synctest.Wait()
			if _, memory := limits.Now(); memory != 0 {
				t.Errorf("%d bytes are reserved after the stream", memory)
			}
		})
	}
}

// An overload while there is no report does not end a stream.
func TestBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := &access.ResourceLimits{Requests: 1}
		conn, _ := serve(t, perUser, grpcserver.Config{Resources: limits}, nil)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		stream := open(ctx, t, conn)
		for _, u := range []*usage{of(0, "user", "ann"), of(25, "user", "ann"), of(1, "path", "/")} {
			u.NumRequestsDenied = 10 * u.NumRequestsAllowed // all that remains is less than is wanted
			if err := stream.Send(reports("edge", u)); err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Recv(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if err := limits.Begin(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			limits.End()
		}
	})
}

// A report records hits past the quota, so that a stream needs the scope of a record, too.
func TestScope(t *testing.T) {
	t.Parallel()
	keys := scripttest.Keys(t, "",
		access.Own{Name: "proxy", Token: "proxy", Scopes: access.Decide | access.Record},
		access.Own{Name: "decider", Token: "decider", Scopes: access.Decide},
		access.Own{Name: "reader", Token: "reader", Scopes: access.Read},
	)
	conn, _ := serve(t, perUser, grpcserver.Config{Auth: &access.Authenticator{Keys: keys, Reach: access.ReachNamed}}, nil)
	for token, want := range map[string]codes.Code{"proxy": codes.OK, "decider": codes.PermissionDenied, "reader": codes.PermissionDenied, "": codes.Unauthenticated} {
		ctx := t.Context()
		if token != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
		}
		stream := open(ctx, t, conn)
		_ = stream.Send(reports("edge", of(0, "user", "ann")))
		if _, err := stream.Recv(); status.Code(err) != want {
			t.Errorf("%q: got %v, want %v", token, err, want)
		}
	}
}

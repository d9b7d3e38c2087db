package grpcapi_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
)

// A stream that waits for its next message keeps no keys of the last one, and little memory for the next.
func TestStreamsHoldNoKeys(t *testing.T) {
	const attributes, requests, streams = 8, 30, 50
	var rules strings.Builder
	rules.WriteString("rules:\n")
	for i := range attributes {
		fmt.Fprintf(&rules, "  - {name: r%d, per: [a%d], limit: 1000000, window: {fixed: 1h}}\n", i, i)
	}
	in := &weirv1.DecideRequest{}
	for range requests {
		all := map[string]string{}
		for i := range attributes {
			all[fmt.Sprintf("a%d", i)] = strings.Repeat("x", 1000)
		}
		in.Requests = append(in.Requests, &weirv1.Request{Attributes: all, Verb: weirv1.Verb_VERB_RECORD})
	}
	_, c := serve(t, grpcserver.Config{}, namespace.Only(engineOf(t, rules.String(), memory(t))))
	ask := func(s weirv1.WeirService_DecideClient) {
		t.Helper()
		if err := s.Send(in); err != nil {
			t.Fatal(err)
		}
		if a, err := s.Recv(); err != nil || len(a.Answers) != requests || a.Answers[0].GetDecision() == nil {
			t.Fatalf("got %v %v, want %d decisions", a, err, requests)
		}
	}
	var open [streams]weirv1.WeirService_DecideClient
	for i := range open {
		var err error
		if open[i], err = c.Decide(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ask(open[0])
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for _, s := range open {
		ask(s)
	}
	runtime.GC()
	runtime.GC() // empties the pools
	runtime.ReadMemStats(&after)
	if grown := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / streams; grown > 64<<10 {
		t.Errorf("got %d bytes more for each stream, want at most 64 KiB", grown)
	}
	runtime.KeepAlive(open)
}

// A message of a stream that is small as it comes, and large when it is decoded, counts as memory.
func TestDecodedMessagesAreCounted(t *testing.T) {
	t.Parallel()
	in := &weirv1.DecideRequest{}
	for range 14 {
		all := map[string]string{}
		for i := range 64 {
			all[string([]byte{'a' + byte(i%26), 'a' + byte(i/26)})] = "1"
		}
		in.Requests = append(in.Requests, &weirv1.Request{Attributes: all, Verb: weirv1.Verb_VERB_CHECK})
	}
	if n := proto.Size(in); n > 8<<10 {
		t.Fatalf("the message has %d bytes, want at most 8 KiB", n)
	}
	limits := &access.ResourceLimits{Memory: access.StreamBytes}
	others := access.Reservation{Resources: limits}
	if err := others.Reserve(16 << 10); err != nil {
		t.Fatal(err)
	}
	_, c := serve(t, grpcserver.Config{Resources: limits}, namespace.Only(engineOf(t, rules, memory(t))))
	s, err := c.Decide(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		requests []*weirv1.Request
		want     codes.Code
	}{
		{in.Requests[:2], codes.OK},
		{in.Requests, codes.Unavailable},
		{in.Requests[:2], codes.OK}, // what was refused is free again
	} {
		if err := s.Send(&weirv1.DecideRequest{Requests: tc.requests}); err != nil {
			t.Fatal(err)
		}
		if a, err := s.Recv(); err != nil || a.GetProblem().GetCode() != int32(tc.want) {
			t.Errorf("%d requests: got %v %v, want code %v", len(tc.requests), a.GetProblem(), err, tc.want)
		}
	}
}

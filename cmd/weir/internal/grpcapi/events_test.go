package grpcapi_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/cmd/weir/internal/events"
	"github.com/weirhq/weir/cmd/weir/internal/grpcapi"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
)

func TestEvents(t *testing.T) {
	t.Parallel()
	hub := events.New(events.Config{Keep: 10, Near: 0.8, Log: slog.New(slog.DiscardHandler)})
	e := engineOf(t, rules, memory(t))
	spaces := namespace.Only(e)
	ended := make(chan struct{})
	go func() { defer close(ended); hub.Run(t.Context()) }()
	t.Cleanup(func() { <-ended })
	_, plain := serve(t, grpcserver.Config{}, spaces)
	code := func(c weirv1.WeirServiceClient, in *weirv1.EventsRequest) codes.Code {
		s, err := c.Events(t.Context(), in)
		if err == nil {
			_, err = s.Recv()
		}
		return status.Code(err)
	}
	if got := code(plain, &weirv1.EventsRequest{}); got != codes.NotFound {
		t.Errorf("got %v without events, want NotFound", got)
	}
	_, c := serveAPI(t, grpcserver.Config{}, grpcapi.New(spaces).WithEvents(hub))
	if got := code(c, &weirv1.EventsRequest{Kinds: []string{"x"}}); got != codes.InvalidArgument {
		t.Errorf("got %v for a kind that is unknown, want InvalidArgument", got)
	}
	if got := code(c, &weirv1.EventsRequest{Key: strings.Repeat("x", 9<<10)}); got != codes.InvalidArgument {
		t.Errorf("got %v for a large request, want InvalidArgument", got)
	}
	s, err := c.Events(t.Context(), &weirv1.EventsRequest{After: "unknown", Kinds: []string{"override_set"}, Rule: "posts"})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := s.Recv(); err != nil || !m.GetGap() {
		t.Errorf("got %v and %v, want a gap", m, err)
	}
	hub.OverrideSet(events.Override{Namespace: "default", Rule: "other", Key: "ann"})
	hub.OverrideSet(events.Override{Namespace: "default", Rule: "posts", Key: "ann", Limit: 5, Until: time.Now()})
	m, err := s.Recv()
	if err != nil || m.GetKind() != "override_set" || m.GetId() == "" || len(m.GetJson()) == 0 {
		t.Errorf("got %v and %v, want an event", m, err)
	}
	hub.EndStreams()
	if _, err := s.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v at the end, want Unavailable", err)
	}
	if got := code(c, &weirv1.EventsRequest{}); got != codes.Unavailable {
		t.Errorf("got %v after the end, want Unavailable", got)
	}
}

package grpcapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/grpcapi"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
)

const exported = `
rules:
  - {name: tokens, per: [team, plan], sum: tokens, limit: 1_000_000, window: day, export: true}
  - {name: views, per: [team], window: {cells: 1h, n: 4}, export: true}
  - {name: posts, per: [team], limit: 5, window: 1h}
  - {name: open, per: [team], limit: 5, window: {held: 30s}, export: true}
  - {name: bad, when: {team: mallory}, then: deny}
`

// exports returns the keys of an export and its end.
func exports(t *testing.T, c weirv1.WeirServiceClient, in *weirv1.ExportRequest) (keys []*weirv1.ExportKey, end *weirv1.ExportEnd, err error) {
	t.Helper()
	s, err := c.Export(t.Context(), in)
	if err != nil {
		return nil, nil, err
	}
	for {
		m, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return keys, end, nil
		}
		if err != nil {
			return keys, end, err
		}
		if end != nil {
			t.Fatal("got a message after the end")
		}
		keys, end = append(keys, m.GetKeys()...), m.GetEnd()
	}
}

// TestExport exports the keys of rules, whole and by pages.
func TestExport(t *testing.T) {
	t.Parallel()
	e := engineOf(t, exported, memory(t))
	space := namespace.Only(e)
	_, c := serve(t, grpcserver.Config{}, space)
	const teams = 1000
	sum := int64(0)
	for i := range 2 * teams {
		r := weir.Request{Attributes: weir.Attributes("team", fmt.Sprint("t", i%teams), "plan", "\xff", "tokens", fmt.Sprint(i))}
		if _, err := e.Take(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		sum += int64(i)
	}
	check := func(keys []*weirv1.ExportKey) {
		t.Helper()
		seen, used := map[string]bool{}, int64(0)
		for _, k := range keys {
			seen[k.GetAttributes()["team"]], used = true, used+k.GetUsed()
			if k.GetQuota() != 1_000_000 || k.GetEnd().AsTime().Sub(k.GetStart().AsTime()).Hours() != 24 || k.GetAt() == nil || k.GetAttributes()["plan"] != "\uFFFD" {
				t.Fatalf("got %v", k)
			}
		}
		if len(seen) != teams || len(keys) != teams || used != sum {
			t.Errorf("got %d tokens of %d teams in %d keys, want %d of %d", used, len(seen), len(keys), sum, teams)
		}
	}
	keys, end, err := exports(t, c, &weirv1.ExportRequest{Rule: "tokens"})
	if err != nil || !end.GetComplete() || end.GetKeys() != teams || end.GetAfter() != "" {
		t.Fatalf("got %v and %v, want a complete export", end, err)
	}
	check(keys)
	keys, end, err = exports(t, c, &weirv1.ExportRequest{Rule: "tokens", N: 100})
	for pages := 0; err == nil && !end.GetComplete() && pages < 20; pages++ {
		var more []*weirv1.ExportKey
		more, end, err = exports(t, c, &weirv1.ExportRequest{Rule: "tokens", N: 100, After: end.GetAfter()})
		keys = append(keys, more...)
	}
	if err != nil || !end.GetComplete() {
		t.Fatalf("got %v and %v, want complete pages", end, err)
	}
	check(keys)
	keys, _, err = exports(t, c, &weirv1.ExportRequest{Rule: "views"})
	if err != nil || len(keys) != teams || keys[0].Quota != nil || len(keys[0].GetSeries()) == 0 || keys[0].GetStart() != nil {
		t.Errorf("got %d keys and %v, want %d with their hits over time", len(keys), err, teams)
	}
	keys, _, err = exports(t, c, &weirv1.ExportRequest{Rule: "open"})
	if err != nil || len(keys) != teams || keys[0].GetHeld() != 2 || keys[0].GetUsed() != 0 {
		t.Errorf("got %d keys and %v, want %d with two hits that are held", len(keys), err, teams)
	}
}

// TestExportWrong makes calls that are refused.
func TestExportWrong(t *testing.T) {
	t.Parallel()
	e := engineOf(t, exported, memory(t))
	spaces := namespace.Only(e)
	_, c := serve(t, grpcserver.Config{}, spaces)
	for _, tc := range []struct {
		in    *weirv1.ExportRequest
		code  codes.Code
		field string
	}{
		{&weirv1.ExportRequest{}, codes.InvalidArgument, "rule"},
		{&weirv1.ExportRequest{Rule: "nope"}, codes.NotFound, ""},
		{&weirv1.ExportRequest{Rule: "bad"}, codes.NotFound, ""},
		{&weirv1.ExportRequest{Rule: "posts"}, codes.FailedPrecondition, "keys are not kept"},
		{&weirv1.ExportRequest{Rule: "views", Closed: true}, codes.InvalidArgument, "closed"},
		{&weirv1.ExportRequest{Rule: "tokens", N: -1}, codes.InvalidArgument, "n:"},
		{&weirv1.ExportRequest{Rule: "tokens", After: "?"}, codes.InvalidArgument, "after"},
		{&weirv1.ExportRequest{Rule: "tokens", After: "AAAAAAAA"}, codes.InvalidArgument, "after"},
		{&weirv1.ExportRequest{Rule: strings.Repeat("x", 9<<10)}, codes.InvalidArgument, "request"},
	} {
		if _, _, err := exports(t, c, tc.in); status.Code(err) != tc.code || !strings.Contains(err.Error(), tc.field) {
			t.Errorf("%.80v: got %v, want %v of %s", tc.in, err, tc.code, tc.field)
		}
	}
	if keys, end, err := exports(t, c, &weirv1.ExportRequest{Rule: "tokens"}); err != nil || len(keys) != 0 || !end.GetComplete() {
		t.Errorf("got %v, %v, %v, want a complete export without keys", keys, end, err)
	}
	var others []func()
	for range 4 {
		end, ok := spaces.All()[0].BeginExport("")
		if !ok {
			t.Fatal("no place for an export")
		}
		others = append(others, end)
	}
	if _, _, err := exports(t, c, &weirv1.ExportRequest{Rule: "tokens"}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("got %v during four others, want ResourceExhausted", err)
	}
	others[0]()
	if _, _, err := exports(t, c, &weirv1.ExportRequest{Rule: "tokens"}); err != nil {
		t.Errorf("got %v after one of them", err)
	}
}

// inMemory returns a client of a service of namespaces, without a network, for tests in virtual time.
func inMemory(t *testing.T, c grpcserver.Config, spaces *namespace.Set) weirv1.WeirServiceClient {
	t.Helper()
	s, l := grpcserver.New(c), bufconn.Listen(1<<16)
	s.Add(grpcapi.Service, grpcapi.File, grpcapi.New(spaces).Methods())
	go func() { _ = s.Serve(l) }()
	conn, err := grpc.NewClient("passthrough:weir", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(); s.Close() })
	return weirv1.NewWeirServiceClient(conn)
}

// Each message of an export marks its connection, which is idle otherwise.
func TestExportMarksItsConnection(t *testing.T) {
	t.Parallel()
	e := engineOf(t, exported, memory(t))
	for i := range 1000 {
		if _, err := e.Take(t.Context(), weir.Request{Attributes: weir.Attributes("team", fmt.Sprint("t", i), "plan", "basic", "tokens", "1")}); err != nil {
			t.Fatal(err)
		}
	}
	var marks atomic.Int64
	_, c := serve(t, grpcserver.Config{Working: func(net.Conn) func(int32) { return func(by int32) { marks.Add(1 - int64(by)) } }}, namespace.Only(e))
	s, err := c.Export(t.Context(), &weirv1.ExportRequest{Rule: "tokens"})
	messages := int64(-1)
	for ; err == nil; messages++ {
		_, err = s.Recv()
	}
	if messages < 3 || !errors.Is(err, io.EOF) || marks.Load() != 1+messages {
		t.Errorf("got %d marks, %d messages and %v, want a mark at the beginning and for each message", marks.Load(), messages, err)
	}
}

// A stream whose caller reads nothing ends, even if the caller makes other calls on the same connection.
func TestStreamsOfCallerThatReadsNothing(t *testing.T) {
	t.Parallel()
	type stream interface{ RecvMsg(any) error }
	for name, open := range map[string]func(t *testing.T, c weirv1.WeirServiceClient) (stream, error){
		"export": func(t *testing.T, c weirv1.WeirServiceClient) (stream, error) {
			return c.Export(t.Context(), &weirv1.ExportRequest{Rule: "tokens"})
		},
		"decide": func(t *testing.T, c weirv1.WeirServiceClient) (stream, error) {
			s, err := c.Decide(t.Context())
			m := &weirv1.DecideRequest{Requests: make([]*weirv1.Request, 1000)}
			for i := range m.Requests {
				m.Requests[i] = &weirv1.Request{Attributes: map[string]string{"team": fmt.Sprint("t", i), "plan": "basic", "tokens": "1"}}
			}
			for n := 0; n < 9 && err == nil; n++ { // more than wait for their turn
				err = s.Send(m)
			}
			return s, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e, resources := engineOf(t, exported, memory(t)), &access.ResourceLimits{Memory: 1 << 30}
				for i := range 5000 {
					if _, err := e.Take(t.Context(), weir.Request{Attributes: weir.Attributes("team", fmt.Sprint("t", i), "plan", "basic", "tokens", "1")}); err != nil {
						t.Fatal(err)
					}
				}
				c := inMemory(t, grpcserver.Config{Resources: resources}, namespace.Only(e))
				stream, err := open(t, c)
				if err != nil {
					t.Fatal(err)
				}
				for range 15 {
					time.Sleep(time.Second)
					if _, err := c.Check(t.Context(), &weirv1.CheckRequest{Attributes: map[string]string{"team": "a"}}); err != nil {
						t.Fatal(err)
					}
				}
				if _, memory := resources.Now(); memory != 0 {
					t.Fatalf("got %d bytes reserved after 15 s, want none", memory)
				}
				for err == nil {
					err = stream.RecvMsg(&emptypb.Empty{})
				}
				if status.Code(err) != codes.DeadlineExceeded {
					t.Errorf("got %v, want DeadlineExceeded", err)
				}
			})
		})
	}
}

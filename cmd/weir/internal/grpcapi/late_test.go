package grpcapi_test

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/internal/run"
)

// A message of a stream that waits behind large batches for longer than its timeout is not decided. Those that wait
// with it are.
func TestMessageIsLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := engineOf(t, rules, memory(t))
		ns := namespace.New(namespace.Default, e, 0, nil)
		c := inMemory(t, grpcserver.Config{}, namespace.NewSet(ns))

		// occupy plans as many large batches as a namespace can plan at a time, until the test ends them.
		occupy := func() (end func()) {
			release := make(chan struct{})
			var batches sync.WaitGroup
			for range runtime.GOMAXPROCS(0) {
				batches.Go(func() {
					items := make([]weir.Item, 33)
					for i := range items {
						items[i].Request.Attributes = weir.Attributes("action", "post", "user", "large")
					}
					if _, err := ns.Run(t.Context(), items, run.Options{Escapes: func(string) int { <-release; return 0 }}); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			return func() { close(release); batches.Wait() }
		}
		s, err := c.Decide(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		send := func(user string, timeout time.Duration) {
			t.Helper()
			m := &weirv1.DecideRequest{Timeout: durationpb.New(timeout)}
			for range 33 {
				m.Requests = append(m.Requests, &weirv1.Request{Attributes: hit(user)})
			}
			if err := s.Send(m); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}

		endFirst := occupy()
		send("first", time.Minute)
		send("late", 10*time.Second) // is decided together with the next one
		send("last", time.Minute)
		endSecond := occupy() // the second message waits behind these
		endFirst()
		time.Sleep(10 * time.Second)
		endSecond()
		for _, want := range []struct {
			user string
			code codes.Code
			used int64
		}{{"first", codes.OK, 33}, {"late", codes.DeadlineExceeded, 0}, {"last", codes.OK, 33}} {
			a, err := s.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if code := codes.Code(a.GetProblem().GetCode()); code != want.code || used(t, e, "hits", want.user) != want.used {
				t.Errorf("%s: got %v and %d counted, want %v and %d", want.user, code, used(t, e, "hits", want.user), want.code, want.used)
			}
		}
	})
}

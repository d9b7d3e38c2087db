package remote_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/remote"
)

// server returns a server that is connected while *up, and whose changes are appended to *got.
func server(up *bool, got *[]remote.Change) *remote.Server {
	return &remote.Server{
		Addr: "a:1", Connected: func() bool { return *up },
		Outage:  func(err error) *store.OutageError { return &store.OutageError{Reason: remote.Unknown, Err: err} },
		Changed: func(c remote.Change) { *got = append(*got, c) },
	}
}

func TestOutagesAreCounted(t *testing.T) {
	t.Parallel()
	up := true
	s := server(&up, nil)
	for range 3 {
		s.Count(remote.Late)
	}
	s.Count(remote.Unknown)
	n := s.Node()
	if n.Outages[remote.Late] != 3 || n.Outages[remote.Unknown] != 1 || n.Addr != "a:1" || n.Unavailable {
		t.Errorf("got %+v, want 3 late calls and 1 unknown", n)
	}
	if _, all := n.Outages[remote.Moving]; !all || len(n.Outages) != 12 {
		t.Errorf("got %d reasons, want also those that did not occur", len(n.Outages))
	}
}

// A server is unavailable when the breaker is open or there is no connection; what is missed
// meanwhile is counted.
func TestReports(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		up, got := true, []remote.Change(nil)
		s := server(&up, &got)
		s.Report(nil)
		s.Count(remote.Late)
		s.Breaker.Trip()
		s.Report(nil)
		s.Count(remote.CircuitOpen)
		time.Sleep(time.Second)
		up = false
		s.Breaker.Answered()
		s.Report(errors.New("refused"))
		if !s.Node().Unavailable {
			t.Error("without a connection: got an available server")
		}
		up = true
		s.Report(nil)
		if len(got) != 2 || !errors.Is(got[0].Err, remote.ErrUnavailable) || got[1].Err != nil || got[1].Lasted != time.Second || got[1].Missed != 1 || got[1].Addr != "a:1" {
			t.Errorf("got %+v, want an outage of a second with a call missed", got)
		}
		up = false
		s.Report(errors.New("refused"))
		s.Leave()
		if len(got) != 4 || got[2].Err.Err.Error() != "refused" || !got[3].Gone || s.Node().Interruptions != 2 {
			t.Errorf("got %+v, want a second outage, which the end of the server ends", got)
		}
	})
}

// Calls without an answer are time-outs only when their decision had time for them.
func TestHeard(t *testing.T) {
	t.Parallel()
	up := true
	s := server(&up, nil)
	over := func(ctx context.Context) context.Context {
		ctx, end := remote.Within(ctx, time.Nanosecond)
		t.Cleanup(end)
		<-ctx.Done()
		return ctx
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	opened := func(ctx context.Context, timeout time.Duration) (opened bool) {
		for range 5 {
			opened = s.Heard(ctx, false, remote.Elapsed(), timeout) || opened
		}
		return opened
	}
	if opened(over(t.Context()), time.Hour) {
		t.Error("less than half of the time: got an open breaker")
	}
	within, end := remote.Within(left, time.Hour)
	defer end()
	if opened(within, time.Nanosecond) {
		t.Error("callers that leave: got an open breaker")
	}
	if !opened(over(t.Context()), time.Nanosecond) || !s.Breaker.Open() {
		t.Error("all of the time: got a closed breaker")
	}
	if s.Heard(t.Context(), true, remote.Elapsed(), time.Second) || s.Breaker.Open() {
		t.Error("an answer: got an open breaker")
	}
}

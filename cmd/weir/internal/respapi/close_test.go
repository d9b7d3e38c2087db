package respapi_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/respapi"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
)

// hung is a store whose disk or network does not answer: calls wait for their contexts.
type hung struct{ *memstore.Store }

// Do implements [store.Store].
func (h hung) Do(ctx context.Context, _ []store.Call) error {
	<-ctx.Done()
	return ctx.Err()
}

// Close ends calls that a store does not answer. Otherwise one hung file system would keep the
// service from ending.
func TestCloseEndsCallsOfAHungStore(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"take":     command("WEIR.TAKE", "user", "42"),
		"throttle": command("CL.THROTTLE", "user42", "5", "10", "60"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules := scripttest.Rules(t, "rules: [{name: posts, per: [user], limit: 5, window: 1h, on_outage: allow}]")
			synctest.Test(t, func(t *testing.T) {
				memory := hung{memstore.New()}
				e := scripttest.Engine(t, rules, weir.WithStore(memory))
				s := respapi.New(respapi.Config{Namespaces: namespace.Only(e), Throttle: func(_ string, l weir.Limit) (*weir.Limiter, error) {
					return weir.NewLimiter(l, weir.WithStore(memory), weir.WithName("CL.THROTTLE"))
				}})
				l, ended := newPipes(), make(chan error, 1)
				go func() { ended <- s.Serve(l) }()
				c := l.dial()
				if _, err := io.WriteString(c, line); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v from Shutdown, want that a call is still in flight", err)
				}
				began := time.Now()
				if err := errors.Join(s.Close(), <-ended, e.Close(), memory.Close(), c.Close()); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("Close took %v", took)
				}
			})
		})
	}
}

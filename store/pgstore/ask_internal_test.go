package pgstore

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirhq/weir/store/remote"
)

// Tasks that hang leave half of the connections to decisions, unless there is only one.
func TestTasksLeaveLanes(t *testing.T) {
	for url, want := range map[string]int64{
		"postgres://localhost/weir": 2, "postgres://localhost/weir?connections=1": 1, "postgres://localhost/weir?connections=9": 4,
	} {
		synctest.Test(t, func(t *testing.T) {
			c, err := Parse(url)
			if err != nil {
				t.Fatal(err)
			}
			s := newStore(&c)
			for range c.connections {
				s.running.Go(func() {
					for l := (&lane{s: s}); ; {
						select {
						case do := <-s.tasks:
							l.task(do)
						case <-s.life.Done():
							return
						}
					}
				})
			}
			var hanging, run atomic.Int64
			for range 20 {
				s.running.Go(func() {
					within, cancel := s.Within(remote.WithTimeout(t.Context(), time.Minute))
					defer cancel()
					if err := s.hand(within, func(ctx context.Context, _ *pgconn.PgConn) {
						hanging.Add(1)
						<-ctx.Done()
						hanging.Add(-1)
						run.Add(1)
					}); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			if got := hanging.Load(); got != want {
				t.Errorf("%s: got %d of %d lanes with tasks, want %d", url, got, c.connections, want)
			}
			time.Sleep(2 * time.Minute) // each task hangs until it is stuck
			if got := run.Load(); got != 20 {
				t.Errorf("%s: got %d tasks run, want all", url, got)
			}
			s.end()
			s.running.Wait()
		})
	}
}

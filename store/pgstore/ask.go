package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5/pgconn"
)

// ask has a lane run do between two transactions, and returns what do returns. The caller may leave while
// do runs.
func ask[T any](ctx context.Context, s *Store, do func(context.Context, *pgconn.PgConn) (T, error)) (got T, err error) {
	if err := s.ready(ctx); err != nil {
		return got, err
	}
	within, cancel := s.Within(ctx)
	defer cancel()
	if err := s.unavailable(); err != nil {
		return got, s.failed(ctx, s.count(outage(err, true)))
	}
	type answer struct {
		got   T
		begun bool
		err   error
	}
	done := make(chan answer, 1)
	task := func(ctx context.Context, c *pgconn.PgConn) {
		// A connection that was idle may have ended, and do may not be done twice.
		if err := c.Ping(ctx); err != nil {
			done <- answer{err: err}
			return
		}
		got, err := do(ctx, c)
		if noTable(err) {
			s.dropped.Store(true)
		}
		s.follow(err)
		done <- answer{got, true, err}
	}
	for tries := 0; ; tries++ {
		if err := s.hand(within, task); err != nil {
			return got, s.failed(ctx, s.count(outage(err, true)))
		}
		select {
		case a := <-done:
			if a.err != nil && !a.begun && tries < s.config.connections {
				continue
			}
			if a.err != nil {
				a.err = s.failed(ctx, s.count(outage(a.err, !a.begun)))
			}
			return a.got, a.err
		case <-s.life.Done():
			return got, s.failed(ctx, errUnavailable) // it is closed
		case <-within.Done():
			return got, s.failed(ctx, s.count(outage(endOf(within), false)))
		}
	}
}

// hand hands task to a lane. At most half of the lanes run tasks, because a task may wait for what no decision
// waits for, such as a standby, and decisions need a lane meanwhile.
func (s *Store) hand(ctx context.Context, task func(context.Context, *pgconn.PgConn)) (err error) {
	select {
	case s.turns <- struct{}{}:
	case <-ctx.Done():
		return endOf(ctx)
	case <-s.life.Done():
		return errUnavailable
	}
	select {
	case s.tasks <- task: // the lane ends the turn
		return nil
	case <-ctx.Done():
		err = endOf(ctx)
	case <-s.life.Done():
		err = errUnavailable
	}
	<-s.turns
	return err
}

// task runs what another goroutine has asked for.
func (l *lane) task(do func(context.Context, *pgconn.PgConn)) {
	defer func() { <-l.s.turns }()
	ctx, cancel := context.WithTimeout(l.s.life, stuckAfter)
	defer cancel()
	do(ctx, l.conn)
	l.moved = l.s.dropped.Load() // the next connection makes the tables again
}

// read returns the rows of one statement; the values and the parameters are in the binary form.
func read(ctx context.Context, c *pgconn.PgConn, sql string, values ...[]byte) ([][][]byte, error) {
	r := c.ExecParams(ctx, sql, values, nil, formats, formats).Read()
	return r.Rows, r.Err
}

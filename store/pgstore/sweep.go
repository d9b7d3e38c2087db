package pgstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

const (
	// A step of the sweep reads from sweepLeast to sweepMost blocks of the table: the fewer, the more rows it
	// deletes, because a caller of such a row waits meanwhile.
	sweepLeast = 64
	sweepMost  = 1024

	// manyRows is how many rows a step deletes after which the next one follows soon, after a pause as
	// long as the step and at least sweepPause. Otherwise it follows after sweepEvery.
	manyRows   = 200
	sweepPause = 10 * time.Millisecond
	sweepEvery = time.Second

	// sweepMargin is how long expired rows stay, so that the server's clock may be set back by
	// as much.
	sweepMargin = time.Minute

	// agedEvery is how often denials and events are deleted that are too old, because no call deletes those of a
	// rule that denies nobody any more, or of a webhook that was removed. A step deletes at most agedMost denials.
	agedEvery = 10 * time.Minute
	agedMost  = 1000
)

// sweeper is the state of the sweep, which goes over the table in circles. Of the stores on a
// table, one sweeps at a time.
type sweeper struct {
	margin time.Duration
	begun  bool
	block  int64
	blocks int64 // of the next step

	aged time.Time // when all was deleted that was too old
}

// sweep deletes expired rows in the next blocks of the table. It returns the pause until the next step.
func (l *lane) sweep() time.Duration {
	w := &l.s.sweeper
	if time.Since(w.aged) >= agedEvery {
		l.sweepAged()
	}
	began := time.Now()
	n, err := l.sweepStep()
	if err != nil || n < manyRows {
		w.blocks = min(2*w.blocks, sweepMost)
		return sweepEvery
	}
	w.blocks = sweepLeast
	return max(time.Since(began), sweepPause)
}

// sweepStep deletes expired rows in the next blocks.
func (l *lane) sweepStep() (deleted int64, err error) {
	ctx, cancel := context.WithTimeout(l.s.life, stuckAfter)
	defer cancel()
	w := &l.s.sweeper
	size := l.conn.ExecParams(ctx, l.s.sql.size, nil, nil, nil, nil).Read()
	if size.Err != nil {
		return 0, size.Err
	}
	blocks, err := strconv.ParseInt(string(size.Rows[0][0]), 10, 64)
	if err != nil || blocks == 0 {
		return 0, err
	}
	if !w.begun {
		w.begun, w.block = true, rand.Int64N(blocks) // each process begins elsewhere
	}
	if w.block >= blocks {
		w.block = 0
	}
	tid := func(block int64) []byte { return fmt.Appendf(nil, "(%d,0)", block) }
	tag, err := l.conn.ExecParams(ctx, l.s.sql.sweep, [][]byte{
		tid(w.block), tid(w.block + w.blocks), strconv.AppendInt(nil, w.margin.Microseconds(), 10),
	}, nil, nil, nil).Close()
	w.block += w.blocks
	return tag.RowsAffected(), err
}

// sweepAged deletes denials and events that are too old, and goes on with the next step if there may be more.
func (l *lane) sweepAged() {
	ctx, cancel := context.WithTimeout(l.s.life, stuckAfter)
	defer cancel()
	began := time.Now()
	tag, _ := l.conn.ExecParams(ctx, l.s.sql.sweepAged, [][]byte{strconv.AppendInt(nil, agedMost, 10)}, nil, nil, nil).Close()
	if tag.RowsAffected() < agedMost { // or it has failed
		l.s.sweeper.aged = began
	}
}

package pgstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

const (
	// sweepBlocks is how many blocks of the table a step of the sweep reads.
	sweepBlocks = 512

	// sweepPause is the pause after a step that has deleted many rows. Others follow with the next probe.
	sweepPause = 10 * time.Millisecond
	manyRows   = 200

	// sweepMargin is how long expired rows stay, so that the server's clock may be set back by
	// as much.
	sweepMargin = time.Minute
)

// sweeper is the state of the sweep, which goes over the table in circles. Of the stores on a
// table, one sweeps at a time.
type sweeper struct {
	block   int64
	deleted int64
}

// sweep deletes expired rows in the next blocks of the table, and in those after them as long as
// there are many.
func (l *lane) sweep() error {
	if l.s.still {
		return nil
	}
	for {
		n, err := l.sweepStep()
		if err != nil || n < manyRows || l.s.server.InFlight() > 0 {
			return err
		}
		l.sleep(sweepPause)
	}
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
	if w.block >= blocks {
		w.block = 0
	} else if w.block == 0 && blocks > sweepBlocks && w.deleted == 0 {
		w.block = rand.Int64N(blocks) // each process begins elsewhere
	}
	tid := func(block int64) []byte { return fmt.Appendf(nil, "(%d,0)", block) }
	tag, err := l.conn.ExecParams(ctx, l.s.sql.sweep, [][]byte{
		tid(w.block), tid(w.block + sweepBlocks), strconv.AppendInt(nil, sweepMargin.Microseconds(), 10),
	}, nil, nil, nil).Close()
	w.block += sweepBlocks
	w.deleted += tag.RowsAffected()
	return tag.RowsAffected(), err
}

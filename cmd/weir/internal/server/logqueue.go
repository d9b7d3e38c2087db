package server

import (
	"io"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/config"
)

const (
	// maxLogQueue is how many lines of the log may wait to be written.
	maxLogQueue = 4096

	// logEnd is how long lines may take to be written at the end of the process.
	logEnd = time.Second
)

// logQueue is a writer that never blocks. Otherwise a standard error that nobody reads would stop whoever logs: a store that
// reconnects, the data directory, and the end of the process.
type logQueue struct {
	lines   chan []byte // nil is the last one
	dropped atomic.Int64
	ended   chan struct{}
}

// openLog returns the logger that cfg describes. It drops and counts lines while w blocks and the queue is full. end
// waits until all lines are written, for at most logEnd.
func openLog(cfg config.Config, w io.Writer) (log *slog.Logger, end func()) {
	q := &logQueue{lines: make(chan []byte, maxLogQueue), ended: make(chan struct{})}
	go q.run(w, newLog(cfg, w))
	return newLog(cfg, q), q.end
}

// run writes the lines to w. direct logs to w, too.
func (q *logQueue) run(w io.Writer, direct *slog.Logger) {
	defer close(q.ended)
	for last := false; !last; {
		line := <-q.lines
		if last = line == nil; !last {
			_, _ = w.Write(line)
		}
		if len(q.lines) > 0 {
			continue
		}
		if n := q.dropped.Swap(0); n > 0 {
			direct.Warn("log lines dropped, because nobody has read them", "lines", n)
		}
	}
}

// Write implements [io.Writer].
func (q *logQueue) Write(line []byte) (int, error) {
	select {
	case q.lines <- slices.Clone(line):
	default:
		q.dropped.Add(1)
	}
	return len(line), nil
}

// end ends the queue. Lines that come later are not written.
func (q *logQueue) end() {
	late := time.NewTimer(logEnd)
	defer late.Stop()
	select {
	case q.lines <- nil:
	case <-late.C:
		return
	}
	select {
	case <-q.ended:
	case <-late.C:
	}
}

package main

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/journal"
	"github.com/weirhq/weir/store/memstore"
)

// writer writes what changed in a memstore to a sink, once in an interval.
type writer struct {
	memory  *memstore.Store
	changes journal.Reader
	to      sink
	begun   atomic.Int64 // of the last flush that succeeded
	stop    chan struct{}
	ended   chan error
}

func behind(m *memstore.Store, to sink) *writer {
	w := &writer{memory: m, changes: m.Journal().Changes(), to: to, stop: make(chan struct{}), ended: make(chan error)}
	w.begun.Store(time.Now().UnixNano())
	go w.run()
	return w
}

func (w *writer) run() {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := w.flush(); err != nil {
				panic(err)
			}
		case <-w.stop:
			w.ended <- w.flush()
			return
		}
	}
}

func (w *writer) flush() error {
	begun := time.Now()
	for more := true; more; {
		_, more = w.changes.Next(w.to.put)
	}
	err := w.to.commit()
	w.begun.Store(begun.UnixNano())
	return err
}

func (w *writer) lag() time.Duration { return time.Since(time.Unix(0, w.begun.Load())) }

func (w *writer) close() error {
	close(w.stop)
	return errors.Join(<-w.ended, w.to.close(), w.memory.Close())
}

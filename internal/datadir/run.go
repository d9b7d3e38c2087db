package datadir

import (
	"errors"
	"fmt"
	"time"

	"github.com/weirhq/weir/store"
)

// run writes until the store is closed, in the store's goroutine. It writes nothing unless all
// keys are in memory (loaded).
func (s *Store) run(loaded bool) {
	defer close(s.ended)
	if loaded {
		s.write()
	}
	s.queue.done(nil, true) // no call waits from now on: the last flush has written what it counted
	s.result = errors.Join(s.result, s.writer.close(), s.memory.Close())
	if s.held != nil {
		s.result = errors.Join(s.result, s.held.Close())
	}
}

// hangAfter is how long calls wait for a flush, besides its rests.
const hangAfter = 5 * time.Second

var errHangs = fmt.Errorf("a write takes more than %v: the disk may hang", hangAfter)

// write flushes until the store is closed.
func (s *Store) write() {
	tick := time.NewTicker(s.interval)
	defer tick.Stop()
	failing := false
	var since, again time.Time
	fails := func(begun time.Time, err error) {
		if !failing {
			failing, since = true, begun
			s.told(Event{Kind: Failing, Err: err})
		}
	}
	for stopped := false; !stopped; {
		select {
		case <-s.stop:
			stopped = true
			s.memory.Journal().Refuse(store.ErrClosed) // the last flush writes all that calls have counted
		case <-tick.C:
		case <-s.queue.wake:
		}
		begun := time.Now()
		if failing && !stopped && begun.Before(again) {
			continue
		}
		waited := s.queue.take()
		rests := s.interval / restShare
		if s.sync == Always || waited != nil || stopped {
			rests = 0
		}
		s.writer.pace.begin(s, rests)
		hung := make(chan struct{})
		timer := time.AfterFunc(rests+hangAfter, func() { // while this goroutine waits for the disk
			defer close(hung)
			s.queue.done(waited, true)
			s.writer.stats.hangs()
			fails(begun, errHangs)
		})
		if stopped { // the last flush may write much
			timer.Stop()
		}
		err := s.writer.flush(stopped)
		if !stopped && !timer.Stop() {
			<-hung
			waited = nil
		}
		s.queue.done(waited, err != nil)
		s.writer.stats.flushed(begun, err)
		switch {
		case err != nil:
			fails(begun, err)
		case failing:
			failing = false
			s.told(Event{Kind: Writing, Took: time.Since(since)})
		}
		if err != nil {
			again = time.Now().Add(max(retry, s.interval))
		}
		if stopped {
			s.result = err
		}
	}
}

package top

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weirhq/weir/window"
)

const (
	sendPace = time.Second     // the interval between two sends
	sendTime = 2 * time.Second // the time-out of one send
	sendMost = 128             // denials of one call
)

// remote returns the name of the log of a rule that instances share.
func (j *journal) remote(n logName) string { return j.prefix + "/" + n.space + "/" + n.rule }

// sendAll sends denials until ctx is done.
func (s *shared) sendAll(ctx context.Context) {
	tick := time.Tick(sendPace)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
			_ = s.send(ctx) // retried; what exceeds the buffer is counted as dropped
		}
	}
}

// send sends the denials that wait. If it fails for a rule, that rule's denials stay queued.
func (s *shared) send(ctx context.Context) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	s.mu.Lock()
	s.countLocked()
	waiting := map[*denialLog][]unsent{}
	for _, l := range s.journal.logs {
		if len(l.unsent) > 0 {
			waiting[l], l.unsent = l.unsent, nil
			s.journal.unsent -= len(waiting[l])
		}
	}
	s.mu.Unlock()
	var failed error
	for l, all := range waiting {
		for len(all) > 0 {
			n := min(sendMost, len(all))
			at, texts := make([]window.Instant, n), make([]string, n)
			for i, u := range all[:n] {
				at[i], texts[i] = u.at, u.text
			}
			if _, err := s.remote(ctx, s.journal.remote(l.name), journalAge, at, texts, 0, 0); err != nil {
				failed = errors.Join(failed, err)
				break
			}
			all = all[n:]
		}
		s.mu.Lock()
		j := &s.journal
		if j.logs[l.name] == l {
			l.unsent = slices.Concat(all, l.unsent)
			if over := len(l.unsent) - maxUnsent; over > 0 {
				l.unsent = l.unsent[:maxUnsent]
				j.drop(l, int64(over))
				j.unsent -= over
			}
			j.unsent += len(all)
		}
		s.mu.Unlock()
	}
	return failed
}

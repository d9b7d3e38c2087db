package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir/store"
)

// quiet is how long the store must answer all calls before an episode ends.
const quiet = time.Second

// episodes logs the periods in which the store could not answer: one line at the
// start of each, and one at its end, with its length. It observes the engine
// of each namespace, so that no episode is too short for it.
type episodes struct {
	began chan struct{} // an episode has begun

	mu      sync.Mutex
	current episode // guarded by mu
}

// episode is what happened between two times in which the store answered.
type episode struct {
	first, last time.Time          // outages; first is zero when there is no episode
	cause       *store.OutageError // the first one
	reasons     map[store.Reason]int64
	decisions   int64 // degraded ones
}

func newEpisodes() *episodes { return &episodes{began: make(chan struct{}, 1)} }

// degraded counts a decision without the store.
func (e *episodes) degraded() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.current.decisions++
}

// outage records that the store could not answer.
func (e *episodes) outage(err error) {
	var out *store.OutageError
	if !errors.As(err, &out) {
		return // a give-back that failed
	}
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	c := &e.current
	if c.first.IsZero() {
		c.first, c.cause, c.reasons = now, out, map[store.Reason]int64{}
		select {
		case e.began <- struct{}{}:
		default:
		}
	}
	c.last = now
	c.reasons[reasonOf(out)]++
}

// run logs the episodes until ctx is done.
func (e *episodes) run(ctx context.Context, log *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.began:
		}
		e.mu.Lock()
		cause := e.current.cause
		e.mu.Unlock()
		began, ending, cut := texts(cause)
		log.Warn(began+", rules follow their on_outage", "reason", string(reasonOf(cause)), "error", cause.Err)
		ended, c := e.await(ctx)
		text := ending
		if !ended {
			text = cut
		}
		log.Info(text, "after", c.last.Sub(c.first).Round(time.Millisecond).String(),
			"decisions", c.decisions, "reasons", c.counts())
	}
}

// texts returns the lines of the log for the start of an episode, its end, and when
// the service ends before it.
func texts(cause *store.OutageError) (began, ended, cut string) {
	if errors.Is(cause, store.ErrFull) {
		return "no room for new keys", "room for new keys again", "stopped while there was no room for new keys"
	}
	return "decisions without the store", "decisions with the store again", "stopped while decisions were without the store"
}

// await waits until the episode has ended, and returns it. It returns false
// when ctx is done first.
func (e *episodes) await(ctx context.Context) (ended bool, c episode) {
	tick := time.Tick(quiet / 4)
	for {
		ended = true
		select {
		case <-ctx.Done():
			ended = false
		case <-tick:
		}
		e.mu.Lock()
		if ended && time.Since(e.current.last) < quiet {
			e.mu.Unlock()
			continue
		}
		c, e.current = e.current, episode{}
		e.mu.Unlock()
		return ended, c
	}
}

// reasonOf returns the reason of an outage.
func reasonOf(out *store.OutageError) store.Reason { return cmp.Or(out.Reason, "unknown") }

// counts returns the outages by reason, the most frequent first.
func (c *episode) counts() string {
	var parts []string
	for _, r := range slices.SortedFunc(maps.Keys(c.reasons), func(a, b store.Reason) int {
		return cmp.Or(cmp.Compare(c.reasons[b], c.reasons[a]), cmp.Compare(a, b))
	}) {
		parts = append(parts, fmt.Sprintf("%s %d", r, c.reasons[r]))
	}
	return strings.Join(parts, ", ")
}

// Package kept keeps what instances agree on beside their counters, such as overrides: a register
// of named fields with values, in the store, which all instances on it follow. A change is made only if
// the register has the version that the change was computed from, so that no instance overwrites what it
// has not seen.
package kept

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/remote"
)

// MaxField is the maximum size of a field in bytes: PostgreSQL has an index on fields.
const MaxField = 2500

// Outboxes begins the names of registers of events that wait for a webhook. All stores drop such a register outboxAge
// after its last change, because nobody follows that of a webhook which was removed.
const (
	Outboxes  = "events/"
	outboxAge = 25 * time.Hour
)

// Store keeps registers. The stores that instances share implement it, and [Memory].
type Store interface {
	// Keep changes the register called name if its version is version: it sets each of fields, which
	// differ, to the value beside it, or removes it if that is empty. A register without entries has the
	// version 0. Keep returns the version afterwards, or 0 if the register had another one. A change
	// that ended with an error may have been made. Versions never return, also if the register was lost
	// meanwhile.
	Keep(ctx context.Context, name string, version int64, fields, values []string) (now int64, err error)

	// Kept returns what has changed in the register, at most so many fields, in the order of their
	// changes, each with its value, which is empty if it was removed. since is what the last call
	// returned as next, and zero in the first: the version up to which the caller has read, and the one
	// that the register had when it began to. Nothing is left to read when both are equal. If again is set,
	// the caller must first drop what it knows: the answer begins with the first entry, because since
	// is zero, too old, or of a register that was lost.
	Kept(ctx context.Context, name string, since [2]int64, most int) (fields, values []string, next [2]int64, again bool, err error)
}

const (
	pollEvery = 400 * time.Millisecond
	callTime  = 2 * time.Second // the time-out of a call
	pageSize  = 1000            // fields that one call reads

	// Everything is read again from time to time, because a failover can lose changes that were read and no
	// version shows it: after wholeEvery, and after an outage when doubtFor has passed since the last time.
	wholeEvery, doubtFor = 10 * time.Minute, time.Minute
)

// Page is a part of a register, or of what changed in it.
type Page struct {
	Fields, Values []string // a field without a value was removed
	Again          bool     // what was known before must be dropped
	More           bool     // further pages follow at once
}

// Follower follows a register. Its exported fields are set before its first use. Make
// changes only through one follower in each process. It is safe for concurrent use.
type Follower struct {
	Store Store
	Name  string

	// Apply is called with each page, one call at a time.
	Apply func(Page)

	// Failed is called when the store stops answering, and Answered when it answers again. Both
	// may be nil.
	Failed   func(error)
	Answered func()

	known atomic.Bool

	turns sync.Map // of each share, and of the one call that uses the store; see [remote.Turn]

	// Used by that call.
	at      [2]int64 // as of Store.Kept
	failing bool
	doubt   bool      // changes that were read may have been lost in an outage
	whole   time.Time // when everything was last read
}

// Run reads what others have changed, until ctx is done.
func (f *Follower) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		_ = f.Sync(ctx) // it has called Failed
		timer.Reset(pollEvery)
	}
}

// Known reports whether the register was read.
func (f *Follower) Known() bool { return f.known.Load() }

// begin waits until no other call uses the store, for callTime at most. Calls of one share wait for each other first,
// so that only one of them is in the way of other shares. The caller calls end when it is done.
func (f *Follower) begin(ctx context.Context, share string) (end func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	end, err = remote.Turn(waiting, &f.turns, "of "+share, "all")
	switch {
	case err == nil:
		return end, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, &store.OutageError{Reason: remote.Busy, Err: errors.New("other changes wait for the store"), Uncounted: true}
}

// Sync reads what has changed.
func (f *Follower) Sync(ctx context.Context) error {
	end, err := f.begin(ctx, "")
	if err != nil {
		return err
	}
	defer end()
	return f.sync(ctx)
}

// sync is Sync for a caller for which begin has returned.
func (f *Follower) sync(ctx context.Context) error {
	ctx = remote.WithTimeout(ctx, callTime)
	for {
		since, none := f.at, [2]int64{}
		if age := time.Since(f.whole); !f.failing && (age > wholeEvery || f.doubt && age > doubtFor) {
			since = none
		}
		fields, values, next, again, err := f.Store.Kept(ctx, f.Name, since, pageSize)
		if err != nil {
			if !f.failing && !errors.Is(err, store.ErrClosed) && ctx.Err() == nil { // else it may be the caller's deadline
				f.failing, f.doubt = true, true
				if f.Failed != nil {
					f.Failed(err)
				}
			}
			return err
		}
		if f.failing {
			f.failing = false
			if f.Answered != nil {
				f.Answered()
			}
			continue // with everything, if that was not read for long
		}
		if again = again || since == none; again {
			f.doubt, f.whole = false, time.Now()
		}
		more := next[0] != next[1]
		if len(fields) > 0 || again && (f.at != none || !f.known.Load()) || f.at[0] != f.at[1] {
			f.Apply(Page{Fields: fields, Values: values, Again: again, More: more})
		}
		if f.at = next; !more {
			f.known.Store(true)
			return nil
		}
	}
}

// Change makes a change: compute returns the fields and their new values, by what Apply has been
// given, or nothing if nothing is to be changed. It is called again if another instance has made a change
// meanwhile, or if the answer to the change was lost, and so must not have other effects. However many changes of one
// share wait, one of another share waits for one of them only.
func (f *Follower) Change(ctx context.Context, share string, compute func() (fields, values []string, err error)) error {
	end, err := f.begin(ctx, share)
	if err != nil {
		return err
	}
	defer end()
	lost := false
	for {
		if err := f.sync(ctx); err != nil {
			return err
		}
		fields, values, err := compute()
		if err != nil || len(fields) == 0 {
			return err
		}
		now, err := f.Store.Keep(remote.WithTimeout(ctx, callTime), f.Name, f.at[0], fields, values)
		switch {
		case err != nil:
			var out *store.OutageError
			if lost || !errors.As(err, &out) {
				return err
			}
			lost = true
		case now > 0:
			f.at = [2]int64{now, now}
			f.Apply(Page{Fields: fields, Values: values})
			return nil
		}
	}
}

package durable

import (
	"context"
	"time"

	"github.com/weirhq/weir/internal/datadir"
	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Store is a [store.Store] in this process's memory that writes its counters to a
// directory. Make one with [Open]; the zero Store is not usable. It is safe for
// concurrent use.
type Store struct{ data *datadir.Store }

var (
	_ store.Store = (*Store)(nil)
	_ hook.Hooked = (*Store)(nil)
)

// ErrLocked is the cause of the error of [Open] for a directory that another process
// uses.
var ErrLocked = datadir.ErrLocked

// Open opens the directory dir, which it makes if need be, and loads the counters in
// it. One process at a time can use a directory.
//
// Files that are damaged do not make Open fail: it loads what can be read, and calls
// the function of [WithEvents]. Open fails if it cannot read or lock the directory
// ([ErrLocked]), or if a later version of weir has written it.
func Open(dir string, opts ...Option) (*Store, error) {
	var c config
	for _, opt := range opts {
		opt(&c)
	}
	data, err := datadir.Open(dir, c...)
	if err != nil {
		return nil, err
	}
	return &Store{data}, nil
}

// Loaded returns a channel that is closed when the counters are loaded.
func (s *Store) Loaded() <-chan struct{} { return s.data.Loaded() }

// Hooks implements [hook.Hooked], for package weir.
func (s *Store) Hooks(of store.Store) hook.Hooks {
	if of == store.Store(s) {
		of = s.data
	}
	return s.data.Hooks(of)
}

// Do implements [store.Store].
func (s *Store) Do(ctx context.Context, calls []store.Call) error { return s.data.Do(ctx, calls) }

// Read implements [store.Store].
func (s *Store) Read(ctx context.Context, op *store.Op) (window.Reading, error) {
	return s.data.Read(ctx, op)
}

// Forget implements [store.Store].
func (s *Store) Forget(ctx context.Context, op *store.Op) error { return s.data.Forget(ctx, op) }

// Close implements [store.Store]. It refuses further calls, writes what changed last, and syncs it, so that
// nothing is lost. The error is the one with which that failed. If the counters are
// still being loaded, Close ends the loading.
func (s *Store) Close() error { return s.data.Close() }

// Stats are the numbers of a [Store].
type Stats struct {
	// Loaded is the number of keys that were loaded. Damaged is the number of batches
	// and parts of files that could not be loaded, without the last, torn one.
	Loaded, Damaged int64

	// Lag is the time since the beginning of the last flush that succeeded: what
	// changed since may not be on the disk. Failing reports whether the last flush
	// failed.
	Lag     time.Duration
	Failing bool

	Bytes int64 // the size of the files
}

// Stats returns the numbers of s.
func (s *Store) Stats() Stats {
	d := s.data.Stats()
	return Stats{Loaded: d.Loaded, Damaged: d.Damaged, Lag: d.Lag, Failing: d.Failing, Bytes: d.Bytes}
}

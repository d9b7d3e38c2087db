package datadir

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/datadir/internal/format"
	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/internal/seal"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// Store is a [store.Store] in this process's memory that writes its counters to a
// directory. Make one with [Open]; the zero Store is not usable. It is safe for
// concurrent use.
type Store struct {
	config
	dir    string
	held   io.Closer // the lock of the directory; nil in some tests
	memory *memstore.Store

	loading atomic.Bool
	loaded  chan struct{} // closed when loading has ended

	writer *writer
	blobs  blobs
	queue  queue
	stop   chan struct{} // closed by Close
	ended  chan struct{} // closed when the goroutine has ended
	closed sync.Once
	result error // of Close; set before ended is closed
}

var (
	_ store.Store = (*Store)(nil)
	_ hook.Hooked = (*Store)(nil)
)

// ErrLocked is the error of a directory that another process uses.
var ErrLocked = errors.New("another process uses this directory; end it, or name another directory")

// Open opens the directory dir, which it makes if need be, and loads the counters in
// it. One process at a time can use a directory.
//
// Files that are damaged do not make Open fail: it loads what can be read, and calls
// the function of [WithEvents]. Open fails if it cannot read or lock the directory
// ([ErrLocked]), or if a later version of weir has written it.
func Open(dir string, opts ...Option) (*Store, error) {
	c := defaults()
	for _, opt := range opts {
		opt(&c)
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	var held io.Closer
	if c.disk == nil {
		var err error
		if c.disk, held, err = lockFolder(dir); err != nil {
			return nil, fmt.Errorf("data directory: %w", err)
		}
	}
	s, err := open(dir, c, held)
	if err != nil {
		if held != nil {
			err = errors.Join(err, held.Close())
		}
		return nil, fmt.Errorf("data directory: %s: %w", dir, err)
	}
	return s, nil
}

// lockName is the file in a directory that its process locks.
const lockName = "lock"

// lockFolder makes and locks dir.
func lockFolder(dir string) (d folder, held io.Closer, err error) {
	if err := makeFolder(dir, syncFolder); err != nil {
		return d, nil, err
	}
	d.dir = dir
	if d.locked, err = os.Stat(dir); err != nil {
		return d, nil, err
	}
	held, ok, err := lock(filepath.Join(dir, lockName))
	if err != nil {
		return d, nil, fmt.Errorf("lock: %w", err)
	}
	if !ok {
		return d, nil, fmt.Errorf("%s: %w", dir, ErrLocked)
	}
	return d, held, nil
}

// open opens dir, which is locked.
func open(dir string, c config, held io.Closer) (*Store, error) {
	segments, err := list(c.disk)
	if err != nil {
		return nil, err
	}
	s := newStore(dir, c, held, segments)
	if s.background {
		go func() {
			s.run(s.load(segments))
		}()
		return s, nil
	}
	ok := s.load(segments)
	go s.run(ok)
	return s, nil
}

// newStore returns the store of dir, whose segments are not loaded yet.
func newStore(dir string, c config, held io.Closer, segments []*segment) *Store {
	var header format.Header
	known := false
	for _, p := range segments {
		if p.valid {
			header, known = p.header, true
		}
	}
	if !known {
		// Never fails; see package crypto/rand.
		_, _ = rand.Read(header.Secret[:])
		_, _ = rand.Read(header.Receipts[0][:])
	}
	s := &Store{
		config: c, dir: dir, held: held,
		memory: memstore.New(append(c.memory, memstore.WithJournal(header.Secret))...),
		blobs:  blobs{data: make(map[string][]byte), set: make(map[string]bool), unclaimed: make(map[string]bool)},
		loaded: make(chan struct{}), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	s.memory.Journal().UseSecrets(seal.Secrets{List: header.Receipts, Until: window.Instant(header.Until)})
	s.memory.Journal().Refuse(errLoading)
	s.queue.wake = make(chan struct{}, 1)
	s.writer = newWriter(s, header)
	s.loading.Store(true)
	return s
}

// Loaded returns a channel that is closed when the counters are loaded. It implements
// [hook.SideStore].
func (s *Store) Loaded() <-chan struct{} { return s.loaded }

// Memory returns the memory that answers the calls. Calls to it count, and are
// written to the directory, but do not wait for the disk with [Always]. They return an outage
// error until the counters are loaded. The caller must not close it.
func (s *Store) Memory() *memstore.Store { return s.memory }

// Hooks implements [hook.Hooked]. The memory answers the calls itself, unless they wait
// for the disk.
func (s *Store) Hooks(of store.Store) hook.Hooks {
	h := hook.Hooks{Keyed: s, SideStore: s, Adopter: s}
	if of == store.Store(s) && s.sync != Always {
		h.Memory = s.memory
	}
	return h
}

// Keys implements [hook.Lister].
func (s *Store) Keys(ctx context.Context, op *store.Op, after []byte, found func([]byte, window.State, window.Instant)) ([]byte, error) {
	return s.memory.Keys(ctx, op, after, found)
}

// IsLoaded reports whether the counters are loaded.
func (s *Store) IsLoaded() bool { return !s.loading.Load() }

// Secrets implements [hook.Keyed]. All processes that use the directory, one after
// another, have the same secrets.
func (s *Store) Secrets(again bool, own ...[16]byte) [][16]byte {
	return s.memory.Secrets(again, own...)
}

// RotateSecret implements [hook.Keyed]. The new secret is used at once. RotateSecret returns
// when it was written to a new file.
func (s *Store) RotateSecret(ctx context.Context, keep time.Duration) error {
	if s.loading.Load() {
		return errLoading
	}
	_ = s.memory.RotateSecret(ctx, keep) // never fails
	return s.Flush(ctx)
}

// AdoptSecret implements [hook.Adopter]. The secret is written with the next flush, and valid until it is replaced.
func (s *Store) AdoptSecret(secret [16]byte) {
	s.memory.Journal().AdoptSecret(secret, window.At(time.Now().AddDate(100, 0, 0)))
}

// errLoading is the answer to all calls until the counters are loaded.
var errLoading error = &store.OutageError{
	Reason: "loading", Err: errors.New("counters are still being loaded"), Uncounted: true, RetryAfter: time.Second,
}

// Do implements [store.Store].
func (s *Store) Do(ctx context.Context, calls []store.Call) error {
	switch err := s.memory.Do(ctx, calls); {
	case errors.Is(err, errLoading):
		for i := range calls {
			calls[i].Err = err
		}
		return ctx.Err()
	case err != nil || !s.waits(ctx):
		return err
	}
	for i := range calls {
		if c := &calls[i]; c.Err == nil && (c.Once != nil || changed(c.Verb, c.Ops)) {
			s.queue.wait(ctx)
			break
		}
	}
	return nil
}

// changed reports whether a call may have changed something.
func changed(verb store.Verb, ops []store.Op) bool {
	if verb != store.Take {
		return verb != store.Check
	}
	for i := range ops {
		if op := &ops[i]; op.Result.Allowed || op.CountDenied || op.Role == store.Always || op.Limit.Ban.For > 0 {
			return true
		}
	}
	return false
}

// Read implements [store.Store].
func (s *Store) Read(ctx context.Context, op *store.Op) (window.Reading, error) {
	return s.memory.Read(ctx, op)
}

// Forget implements [store.Store].
func (s *Store) Forget(ctx context.Context, op *store.Op) error {
	err := s.memory.Forget(ctx, op)
	if err == nil && s.waits(ctx) {
		s.queue.wait(ctx)
	}
	return err
}

// waits reports whether a call waits until its changes are synced.
func (s *Store) waits(ctx context.Context) bool { return s.sync == Always && !hook.IsUnsynced(ctx) }

// Close implements [store.Store]. It refuses further calls, and writes and syncs the last changes, so that
// nothing is lost, and returns the error if that fails. If the counters are still being loaded, Close
// ends the loading.
func (s *Store) Close() error {
	s.closed.Do(func() { close(s.stop) })
	<-s.ended
	return s.result
}

package stores

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/weirhq/weir/internal/datadir"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
)

// LocalOptions are the options of [OpenLocal].
type LocalOptions struct {
	MaxBytes int64 // of the counters; 0: no limit

	// Dir is the data directory. Empty: counters are lost when the process ends. Sync and
	// Interval state when it is written, as in package durable; empty and 0 mean its
	// defaults.
	Dir      string
	Sync     string
	Interval time.Duration

	// Meanwhile adds a second table, which counts while the directory is loaded.
	Meanwhile bool

	// Event is called with each event of the data directory, and its severity.
	Event func(level slog.Level, text string)
}

// Local is the store in the memory of this process. With a data directory, that is
// loaded in the background, and the counters must not be used before [Local.Loaded].
type Local struct {
	Memory    *memstore.Store
	Kept      *datadir.Store  // Memory with its data directory; nil without one
	Meanwhile *memstore.Store // counts until Kept is loaded; nil: nothing does
}

// OpenLocal opens the store. It returns before the data directory is loaded.
func OpenLocal(o LocalOptions) (*Local, error) {
	if o.Dir == "" {
		return &Local{Memory: memstore.New(memstore.WithMaxBytes(o.MaxBytes))}, nil
	}
	options := []datadir.Option{
		datadir.WithMaxBytes(o.MaxBytes), datadir.InBackground(),
		datadir.WithEvents(func(e datadir.Event) { o.Event(e.Level(), e.String()) }),
	}
	if o.Sync != "" {
		options = append(options, datadir.WithSync(datadir.Sync(o.Sync)))
	}
	if o.Interval > 0 {
		options = append(options, datadir.WithInterval(o.Interval))
	}
	kept, err := datadir.Open(o.Dir, options...)
	if err != nil {
		return nil, fmt.Errorf("--data: %w", err)
	}
	l := &Local{Memory: kept.Memory(), Kept: kept}
	if o.Meanwhile {
		l.Meanwhile = memstore.New(memstore.WithMaxBytes(o.MaxBytes))
	}
	return l, nil
}

// Store returns the store that decides. It writes to the data directory, if there is one.
func (l *Local) Store() store.Store {
	if l.Kept != nil {
		return l.Kept
	}
	return l.Memory
}

// Loaded reports whether the counters can be used.
func (l *Local) Loaded() bool { return l.Kept == nil || l.Kept.IsLoaded() }

// Await waits until the counters can be used. It reports false when ctx is done.
func (l *Local) Await(ctx context.Context) bool {
	if l.Kept == nil {
		return true
	}
	select {
	case <-l.Kept.Loaded():
		return true
	case <-ctx.Done():
		return false
	}
}

// Close frees the memory. The error is that of the last write to the data directory.
func (l *Local) Close() error {
	if l.Kept == nil {
		return l.Memory.Close()
	}
	var err error
	if l.Meanwhile != nil {
		err = l.Meanwhile.Close()
	}
	return errors.Join(err, l.Kept.Close())
}

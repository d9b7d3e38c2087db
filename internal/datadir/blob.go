package datadir

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/datadir/internal/format"
	"github.com/weirhq/weir/window"
)

// errMalformed is the error of a batch whose checksum is right, and whose content is not.
var errMalformed = errors.New("a batch has a content that this program cannot read")

// blobs are data of the program that are stored with the counters.
type blobs struct {
	mu        sync.Mutex
	data      map[string][]byte // guarded by mu; of this process, and of the last one
	set       map[string]bool   // guarded by mu; since the writer last collected them
	unclaimed map[string]bool   // guarded by mu; of the last process
	replaced  bool              // the files have data that was dropped or replaced

	collecting sync.Mutex  // held while followers are asked for blobs
	followers  []*follower // guarded by collecting
}

// follower is called before the store writes.
type follower struct {
	changed func(put func(name string, data []byte))
}

// PutBlob stores data under a name and replaces what was there. The whole blob is written with
// the next flush, so it should have at most a few megabytes. PutBlob without data drops the
// blob.
func (s *Store) PutBlob(name string, data []byte) {
	s.blobs.mu.Lock()
	defer s.blobs.mu.Unlock()
	s.blobs.put(name, data)
	delete(s.blobs.unclaimed, name)
}

func (b *blobs) put(name string, data []byte) {
	b.set[name] = true
	if len(data) == 0 {
		delete(b.data, name)
		return
	}
	b.data[name] = slices.Clone(data)
}

// restoreBlob stores a blob that was read from the files.
func (s *Store) restoreBlob(name string, data []byte) {
	s.blobs.mu.Lock()
	defer s.blobs.mu.Unlock()
	s.blobs.replaced = s.blobs.replaced || replaces(data, s.blobs.data[name])
	s.blobs.put(name, data) // so that the writer knows it, too
	if len(data) > 0 {
		s.blobs.unclaimed[name] = true
	} else {
		delete(s.blobs.unclaimed, name)
	}
}

// Claim implements [hook.SideStore].
func (s *Store) Claim(prefix string, found func(name string, data []byte)) (whole bool) {
	s.blobs.mu.Lock()
	claimed := make(map[string][]byte)
	for name := range s.blobs.unclaimed {
		if strings.HasPrefix(name, prefix) {
			claimed[name] = slices.Clone(s.blobs.data[name])
			delete(s.blobs.unclaimed, name)
		}
	}
	s.blobs.mu.Unlock()
	for name, data := range claimed {
		found(name, data)
	}
	return s.Stats().Damaged == 0
}

// Follow implements [hook.SideStore].
func (s *Store) Follow(changed func(put func(name string, data []byte))) (end func()) {
	b := &s.blobs
	b.collecting.Lock()
	defer b.collecting.Unlock()
	f := &follower{changed}
	b.followers = append(b.followers, f)
	return sync.OnceFunc(func() {
		b.collecting.Lock()
		defer b.collecting.Unlock()
		b.followers = slices.DeleteFunc(b.followers, func(g *follower) bool { return g == f })
		changed(s.PutBlob)
	})
}

// Flush implements [hook.SideStore].
func (s *Store) Flush(ctx context.Context) error {
	s.queue.wait(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.queue.fails() {
		return errors.New("data directory: the last flush failed")
	}
	return nil
}

// Waits implements [hook.SideStore].
func (s *Store) Waits() bool { return s.sync == Always }

// Now implements [hook.SideStore]. Until the counters are loaded it is the time of day.
func (s *Store) Now() window.Instant {
	if s.loading.Load() {
		return window.At(time.Now())
	}
	return s.memory.Journal().Times().Steady
}

// collectBlobs adds the blobs that were set since its last call to known.
func (s *Store) collectBlobs(known map[string]*blob) {
	b := &s.blobs
	b.collecting.Lock()
	for _, f := range b.followers {
		f.changed(s.PutBlob)
	}
	b.collecting.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range b.set {
		was := known[name]
		known[name] = &blob{data: b.data[name], replaced: was != nil && (was.replaced || replaces(b.data[name], was.data))}
	}
	clear(b.set)
}

// blob is data of the program, which is written when it changes and in each compaction. One
// without data was dropped.
type blob struct {
	data     []byte
	written  bool
	replaced bool // files may have what it had before
}

// replaces reports whether something of a blob's data before is not in its data now.
func replaces(data, before []byte) bool { return !bytes.HasPrefix(data, before) }

// writeBlobs writes the blobs that have changed.
func (w *writer) writeBlobs() error {
	from := w.written()
	count := &w.grown
	if w.walk != nil && w.walked == 0 { // a compaction begins, which writes all of them
		count = &w.walked
	}
	defer func() { *count += w.written() - from }()
	w.store.collectBlobs(w.blobs)
	// Dropped blobs are written first, so that a partial write never leaves both a dropped blob
	// and the one that replaces it.
	for _, dropped := range [...]bool{true, false} {
		for name, b := range w.blobs {
			if b.written || dropped != (len(b.data) == 0) {
				continue
			}
			if p := w.payload(); p > 0 && p+len(b.data) > frameTarget {
				w.next()
			}
			w.buf = format.AppendBlob(w.buf, name, b.data)
			if b.written = true; (dropped || b.replaced) && w.dropped.IsZero() {
				w.dropped = time.Now()
			}
			if len(w.buf) >= frameTarget {
				if err := w.seal(0); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

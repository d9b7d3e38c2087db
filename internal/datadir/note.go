package datadir

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
)

// errMalformed is the error of a batch whose checksum is right, and whose content is not.
var errMalformed = errors.New("a batch has a content that this program cannot read")

// notes are data of the program that are kept beside the counters.
type notes struct {
	mu        sync.Mutex
	data      map[string][]byte // guarded by mu; of this process, and of the last one
	set       map[string]bool   // guarded by mu; since the writer last asked
	unclaimed map[string]bool   // guarded by mu; of the last process

	asking    sync.Mutex  // held while followers are asked
	followers []*follower // guarded by asking
}

// follower is told before the store writes.
type follower struct {
	changed func(keep func(name string, data []byte))
}

func newNotes() notes {
	return notes{data: make(map[string][]byte), set: make(map[string]bool), unclaimed: make(map[string]bool)}
}

// Note returns the data that an earlier process has kept under a name, or this one.
// It must not be called before the counters are loaded.
func (s *Store) Note(name string) []byte {
	s.notes.mu.Lock()
	defer s.notes.mu.Unlock()
	return slices.Clone(s.notes.data[name])
}

// Keep keeps data under a name, in place of what was there. It is written with the
// next flush, in full, so it is for at most some megabytes. Keep without data drops
// the note.
func (s *Store) Keep(name string, data []byte) {
	s.notes.mu.Lock()
	defer s.notes.mu.Unlock()
	s.notes.put(name, data)
	delete(s.notes.unclaimed, name)
}

func (n *notes) put(name string, data []byte) {
	n.set[name] = true
	if len(data) == 0 {
		delete(n.data, name)
		return
	}
	n.data[name] = slices.Clone(data)
}

// setNote is called for the notes in the files.
func (s *Store) setNote(name string, data []byte) {
	s.notes.mu.Lock()
	defer s.notes.mu.Unlock()
	s.notes.put(name, data) // the writer learns of it, too
	if len(data) > 0 {
		s.notes.unclaimed[name] = true
	} else {
		delete(s.notes.unclaimed, name)
	}
}

// Claim implements [hook.Notebook].
func (s *Store) Claim(prefix string, found func(name string, data []byte)) (whole bool) {
	s.notes.mu.Lock()
	claimed := make(map[string][]byte)
	for name := range s.notes.unclaimed {
		if strings.HasPrefix(name, prefix) {
			claimed[name] = slices.Clone(s.notes.data[name])
			delete(s.notes.unclaimed, name)
		}
	}
	s.notes.mu.Unlock()
	for name, data := range claimed {
		found(name, data)
	}
	return s.Stats().Damaged == 0
}

// Follow implements [hook.Notebook].
func (s *Store) Follow(changed func(keep func(name string, data []byte))) (end func()) {
	n := &s.notes
	n.asking.Lock()
	defer n.asking.Unlock()
	f := &follower{changed}
	n.followers = append(n.followers, f)
	return sync.OnceFunc(func() {
		n.asking.Lock()
		defer n.asking.Unlock()
		n.followers = slices.DeleteFunc(n.followers, func(g *follower) bool { return g == f })
		changed(s.Keep)
	})
}

// Flush implements [hook.Notebook].
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

// Waits implements [hook.Notebook].
func (s *Store) Waits() bool { return s.sync == Always }

// takeNotes puts the notes that were set since it was last called into known.
func (s *Store) takeNotes(known map[string]*note) {
	n := &s.notes
	n.asking.Lock()
	for _, f := range n.followers {
		f.changed(s.Keep)
	}
	n.asking.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	for name := range n.set {
		known[name] = &note{data: n.data[name]}
	}
	clear(n.set)
}

package durable

import (
	"errors"
	"slices"
	"sync"
)

// errMalformed is the error of a batch whose checksum is right, and whose content is not.
var errMalformed = errors.New("a batch has a content that this program cannot read")

// notes are data of the program that are kept beside the counters.
type notes struct {
	mu   sync.Mutex
	data map[string][]byte // guarded by mu
	set  map[string]bool   // guarded by mu; since the writer last asked
}

// Note returns the data that an earlier process has kept under a name, or this one.
// It must not be called before the counters are loaded.
func (s *Store) Note(name string) []byte {
	s.notes.mu.Lock()
	defer s.notes.mu.Unlock()
	return slices.Clone(s.notes.data[name])
}

// Keep keeps data under a name, in place of what was there. It is written with the
// next flush, in full, so it is for at most some megabytes.
func (s *Store) Keep(name string, data []byte) {
	s.notes.mu.Lock()
	defer s.notes.mu.Unlock()
	s.notes.put(name, data)
	s.notes.set[name] = true
}

func (n *notes) put(name string, data []byte) {
	if n.data == nil {
		n.data, n.set = make(map[string][]byte), make(map[string]bool)
	}
	n.data[name] = slices.Clone(data)
}

// setNote is called for the notes in the files.
func (s *Store) setNote(name string, data []byte) {
	s.notes.mu.Lock()
	defer s.notes.mu.Unlock()
	s.notes.put(name, data)
	s.notes.set[name] = true // so that the writer learns of it
}

// takeNotes puts the notes that were set since it was last called into known.
func (s *Store) takeNotes(known map[string]*note) {
	s.notes.mu.Lock()
	defer s.notes.mu.Unlock()
	for name := range s.notes.set {
		known[name] = &note{data: s.notes.data[name]}
	}
	clear(s.notes.set)
}

package datadir

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/internal/datadir/internal/format"
)

// note is data of the program, which is written when it changes and in each round. One
// without data was dropped.
type note struct {
	data    []byte
	written bool
}

// mostNote is the most bytes of a note and its name: a section has a little more.
const mostNote = format.MaxPayload - 64

// writeNotes writes the notes that have changed. One that is too large is refused: flush
// returns the error when all else is written.
func (w *writer) writeNotes() error {
	w.refused = nil
	from := w.written()
	defer func() { w.grown += w.written() - from }()
	w.store.takeNotes(w.notes)
	// If only a part is written, what was dropped does not come back beside what
	// replaces it.
	for _, dropped := range [...]bool{true, false} {
		for name, n := range w.notes {
			if n.written || dropped != (len(n.data) == 0) {
				continue
			}
			if len(name)+len(n.data) > mostNote {
				w.refused = fmt.Errorf("note %q has %d bytes: a batch has at most %d", name, len(n.data), mostNote)
				continue
			}
			if p := w.payload(); p > 0 && p+len(n.data) > frameTarget {
				w.next()
			}
			w.buf = format.AppendNote(w.buf, name, n.data)
			if n.written = true; dropped && w.dropped.IsZero() {
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

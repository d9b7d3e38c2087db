package datadir

import "github.com/weirhq/weir/internal/datadir/internal/format"

// note is data of the program, which is written when it changes and in each round. One
// without data was dropped.
type note struct {
	data    []byte
	written bool
}

// writeNotes writes the notes that have changed.
func (w *writer) writeNotes() error {
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
			if p := w.payload(); p > 0 && p+len(n.data) > frameTarget {
				w.next()
			}
			w.buf = format.AppendNote(w.buf, name, n.data)
			n.written = true
			if len(w.buf) >= frameTarget {
				if err := w.seal(0); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

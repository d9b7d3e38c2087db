package datadir

import (
	"errors"
	"io/fs"
	"math"
	"time"
)

// beginCompaction begins to write all keys to a new file. lost reports whether the file
// before it may lack something that was written to it.
func (w *writer) beginCompaction(lost bool) {
	clear(w.spaces) // including those of keyspaces that no longer exist
	w.dropped = time.Time{}
	for name, n := range w.blobs {
		if len(n.data) == 0 && n.written && !lost {
			delete(w.blobs, name) // the files before this one record that it was dropped
		}
		n.written, n.replaced = false, false
	}
	w.walk, w.walked, w.changed = w.store.memory.Journal().Walk(), 0, 0
}

// writeCompaction writes the next keys of the compaction, at least budget bytes. It reports
// whether the compaction is complete. If there is a hurry, the last flush completes it, and so does
// every flush if there are many files, or if they lack something.
func (w *writer) writeCompaction(budget int64, ended bool) (whole bool, err error) {
	if w.walk == nil {
		return false, nil
	}
	from := w.written()
	defer func() { w.walked += w.written() - from }()
	if w.hurry {
		if budget = max(budget, w.store.hurried); ended || len(w.old) > manyFiles {
			budget = math.MaxInt64
		}
	}
	if w.lacking {
		budget = math.MaxInt64
	}
	for w.written()-from < budget {
		more, err := w.section(w.walk.Next)
		if err != nil {
			return false, err
		}
		if !more {
			return true, nil
		}
		w.pace.rest()
	}
	return false, nil
}

// endCompaction ends the compaction: files before this one are no longer needed.
func (w *writer) endCompaction() {
	w.walk, w.hurry, w.lacking = nil, false, false
	w.live, w.grown = max(w.walked, 1), w.changed
	w.dropOld()
	w.stats.compactionEnded(w.live)
}

// dropOld removes the files that are no longer needed, and renames those that are damaged.
// What fails is retried after the next compaction.
func (w *writer) dropOld() {
	left := w.old[:0]
	for _, p := range w.old {
		var err error
		if p.damaged() {
			err = w.disk.rename(p.name, p.name+damaged)
		} else {
			err = w.disk.remove(p.name)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			left = append(left, p)
			continue
		}
		w.stats.fileGone(p.name)
	}
	w.old = left
}

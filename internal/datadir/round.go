package datadir

import "time"

// beginRound begins to write all keys to the file that has just begun. lost reports
// whether the file before it may lack something that was written to it.
func (w *writer) beginRound(lost bool) {
	clear(w.spaces) // those of keyspaces that are no more, too
	w.dropped = time.Time{}
	for name, n := range w.notes {
		if len(n.data) == 0 && n.written && !lost {
			delete(w.notes, name) // the files before this one say that it was dropped
		}
		n.written = false
	}
	w.walk, w.walked, w.round = w.store.memory.Journal().Walk(), 0, 0
}

// writeRound writes keys of the round, budget bytes or more. It reports whether the
// round has ended.
func (w *writer) writeRound(budget int64) (whole bool, err error) {
	if w.walk == nil {
		return false, nil
	}
	from := w.written()
	defer func() { w.walked += w.written() - from }()
	if w.hurry {
		budget = max(budget, roundMost)
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

// endRound ends the round: files before this one are not needed any more.
func (w *writer) endRound() {
	w.walk, w.hurry = nil, false
	w.live, w.grown = max(w.walked, 1), w.round
	w.dropOld()
	w.stats.roundEnded(w.live)
}

// dropOld drops the files that are not needed any more. Damaged ones are renamed. What
// fails is tried again after the next round.
func (w *writer) dropOld() {
	left := w.old[:0]
	for _, p := range w.old {
		var err error
		if p.damaged() {
			err = w.disk.rename(p.name, p.name+damaged)
		} else {
			err = w.disk.remove(p.name)
		}
		if err != nil {
			left = append(left, p)
			continue
		}
		w.stats.fileGone(p.name)
	}
	w.old = left
}

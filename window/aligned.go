package window

import "time"

// Aligned windows are calendar windows whose periods follow each other from the
// Unix epoch on, all of one length. They have the state and the algorithm of
// calendar windows, and follow the wall clock, too.

// leastAligned is the shortest aligned window. A store over the network is told
// the periods around the instant at which it will decide, so that instant must be
// known well enough.
const leastAligned = time.Second

// alignedBounds returns the start and the end of the period of w that contains
// now.
func (w *Window) alignedBounds(now Instant) (start, end Instant) {
	length := w.micros()
	start = Instant(floorDiv(int64(now), length) * length)
	return start, start + Instant(length)
}

package datadir

import (
	"fmt"
	"log/slog"
	"time"
)

// EventKind is the kind of an [Event].
type EventKind uint8

const (
	// Loaded: the counters are loaded. Keys, Bytes and Took are set.
	Loaded EventKind = iota
	// Torn: a file ends in the middle of a batch, as after a kill or a loss of power
	// while it was written. That batch is not loaded. File, Bytes and Offset are set.
	Torn
	// Damaged: a part of a file cannot be read. Keys whose last state was in it count
	// from the state before. File, Bytes, Offset and Lost are set, or File and Err.
	// The file is kept under its name with ".damaged" when it is not needed any more.
	Damaged
	// Missing: the oldest file does not begin with all keys, so an older one is
	// missing. File is set.
	Missing
	// Failing: the directory cannot be written. Counting goes on in memory. Err is
	// set.
	Failing
	// Writing: the directory can be written again, after Took.
	Writing
)

// Event is something that the operator of a data directory should know.
type Event struct {
	Kind   EventKind
	File   string
	Offset int64         // in the file
	Bytes  int64         // in the file, or of all files
	Lost   int64         // batches
	Keys   int64         // loaded
	Took   time.Duration // to load, or to be written again
	Err    error
}

// Level returns the severity of the event: an error if a restart would lose counters, and a
// warning if some are lost.
func (e Event) Level() slog.Level {
	switch e.Kind {
	case Failing:
		return slog.LevelError
	case Damaged, Missing:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// String returns the event as a line for people.
func (e Event) String() string {
	switch e.Kind {
	case Loaded:
		return fmt.Sprintf("%d keys loaded from %d bytes in %v", e.Keys, e.Bytes, e.Took.Round(time.Millisecond))
	case Torn:
		return fmt.Sprintf("%s: %d bytes from offset %d on are not a whole batch, and are not loaded: the program was killed while it wrote them", e.File, e.Bytes, e.Offset)
	case Damaged:
		if e.Err != nil {
			return fmt.Sprintf("%s: cannot be read in full: %v; keys in the missing parts count from an older state, or from zero", e.File, e.Err)
		}
		if e.Lost == 0 {
			return fmt.Sprintf("%s: damaged: %d bytes from offset %d on, in which no batch was", e.File, e.Bytes, e.Offset)
		}
		return fmt.Sprintf("%s: damaged: %d bytes from offset %d on, with %d batches, are not loaded; their keys count from an older state, or from zero", e.File, e.Bytes, e.Offset, e.Lost)
	case Missing:
		return fmt.Sprintf("%s: the file before it is missing; keys that have not changed since are lost", e.File)
	case Failing:
		return fmt.Sprintf("cannot write, counting goes on in memory: a restart now would lose what is counted from here on: %v", e.Err)
	case Writing:
		return fmt.Sprintf("written again after %v; nothing was lost", e.Took.Round(time.Millisecond))
	}
	return "unknown event"
}

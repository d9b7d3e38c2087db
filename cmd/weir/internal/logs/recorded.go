package logs

import (
	"fmt"
	"strconv"

	"github.com/weirhq/weir/cmd/weir/internal/replay"
	"github.com/weirhq/weir/window"
)

// recordedLine reads the requests that package record writes:
//
//	{"time":1777620000000000,"verb":"check","hits":5,"attributes":{"user":"42"}}
//
// The time is in microseconds. A line without a verb is a take, and one without hits costs 1, or what was held. A refund
// can have its feedback. A take that holds names its hold, and so do a settle, a cancel and a renew of it.
type recordedLine struct {
	line   jsonLine
	values []string // those of the line, then those of recordedPaths
	entry  replay.Entry
}

var recordedPaths = []string{"verb", "hits", "feedback", "hold", "final"}

var recordedVerbs = func() map[string]replay.Verb {
	verbs := map[string]replay.Verb{"": replay.Take}
	for v := replay.Take; v <= replay.Renew; v++ {
		verbs[v.Store().String()] = v
	}
	return verbs
}()

func newRecorded(_ *format, fields []string) extractor {
	r := &recordedLine{values: make([]string, len(fields)+len(recordedPaths))}
	for at, name := range fields[:len(fields)-1] {
		r.line.keys.add([]string{"attributes", name}, at)
	}
	last := len(fields) - 1
	for i, path := range append([]string{fields[last]}, recordedPaths...) {
		r.line.keys.add([]string{path}, last+i)
	}
	return r
}

func (r *recordedLine) extract(line string, values []string) error {
	if err := r.line.extract(line, r.values); err != nil {
		return err
	}
	n := copy(values, r.values)
	hits := r.values[n+1]
	verb, ok := recordedVerbs[r.values[n]]
	if !ok {
		return fmt.Errorf("verb %q: want take, check, record, refund, settle, cancel or renew", r.values[n])
	}
	r.entry = replay.Entry{Verb: verb, Feedback: r.values[n+2], Hold: r.values[n+3], Final: r.values[n+4] == "true"}
	if hits != "" {
		var err error
		if r.entry.Hits, err = strconv.ParseInt(hits, 10, 64); err != nil || r.entry.Hits < 1 || r.entry.Hits > window.MaxHits {
			return fmt.Errorf("hits %s: want a number from 1 to %d", hits, window.MaxHits)
		}
	}
	return nil
}

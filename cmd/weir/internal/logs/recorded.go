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
// The time is in microseconds. A line without a verb is a take, and one without hits costs 1.
type recordedLine struct {
	line   jsonLine
	values []string // those of the line, then verb and hits
	verb   replay.Verb
	hits   int64
}

func newRecorded(_ *format, fields []string) extractor {
	r := &recordedLine{values: make([]string, len(fields)+2)}
	for at, name := range fields[:len(fields)-1] {
		r.line.keys.add([]string{"attributes", name}, at)
	}
	last := len(fields) - 1
	for i, path := range []string{fields[last], "verb", "hits"} {
		r.line.keys.add([]string{path}, last+i)
	}
	return r
}

func (r *recordedLine) extract(line string, values []string) error {
	if err := r.line.extract(line, r.values); err != nil {
		return err
	}
	n := copy(values, r.values)
	verb, hits := r.values[n], r.values[n+1]
	switch verb {
	case "", "take":
		r.verb = replay.Take
	case "check":
		r.verb = replay.Check
	case "record":
		r.verb = replay.Record
	default:
		return fmt.Errorf("verb %q: want take, check or record", verb)
	}
	r.hits = 0
	if hits != "" {
		var err error
		if r.hits, err = strconv.ParseInt(hits, 10, 64); err != nil || r.hits < 1 || r.hits > window.MaxHits {
			return fmt.Errorf("hits %s: want a number from 1 to %d", hits, window.MaxHits)
		}
	}
	return nil
}

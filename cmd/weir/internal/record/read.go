package record

import (
	"bufio"
	"encoding/base64"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/weirhq/weir/internal/jsontext"
)

// Recording describes the requests of a namespace that are kept.
type Recording struct {
	// Since is the time from which on requests are complete, and Share the share of the keys of which there are
	// requests. Bytes is the memory of the requests of all namespaces, and Most the memory that they may take.
	Since time.Time `json:"since"`
	Share float64   `json:"share"`
	Bytes int64     `json:"bytes"`
	Most  int64     `json:"most"`

	// Requests is how many [Recorder.Write] has written.
	Requests int64 `json:"requests"`

	// Attributes are the names of the attributes that requests have, and Hidden those whose values are not shown:
	// equal values have equal texts, and no test of a rule matches them.
	Attributes []string `json:"attributes"`
	Hidden     []string `json:"hidden"`
}

// State returns the state of the recording of a namespace. It has no Requests.
func (r *Recorder) State(namespace string) Recording {
	_, state := r.snapshot(namespace, false)
	return state
}

// snapshot returns the chunks of each lane. The chunks stay valid if pin is set.
func (r *Recorder) snapshot(namespace string, pin bool) (views [lanes][]view, state Recording) {
	state = Recording{Most: int64(r.most) * chunkSize, Attributes: []string{}, Hidden: []string{}}
	hidden := map[string]bool{} // by attribute
	defer r.lock()()
	level, earliest := r.level.Load(), int64(0)
	note := func(c *chunk) {
		level = max(level, c.level)
		state.Bytes += int64(c.size())
		if earliest == 0 || c.base < earliest {
			earliest = c.base
		}
		c.pinned = c.pinned || pin
		for _, s := range c.shapes {
			if s.namespace != namespace {
				continue
			}
			for i, name := range s.names {
				hidden[name] = hidden[name] || s.hidden[i]
			}
		}
	}
	for _, c := range r.full {
		note(c)
		views[c.lane] = append(views[c.lane], view{c.shapes, c.data, c.base})
	}
	for i := range r.lanes {
		if c := r.lanes[i].chunk; c != nil {
			note(c)
			views[i] = append(views[i], view{slices.Clone(c.shapes), c.data, c.base})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(hidden)) {
		state.Attributes = append(state.Attributes, name)
		if hidden[name] {
			state.Hidden = append(state.Hidden, name)
		}
	}
	state.Share = 1 / float64(int64(1)<<level)
	if since := max(earliest, r.evicted, time.Now().Add(-Age).UnixMicro()); earliest > 0 {
		state.Since = time.UnixMicro(since).UTC()
	}
	return views, state
}

// Write writes the requests of a namespace to w, in the order of their times, a line each. Requests that were decided
// at the same time can be out of order by as long as a decision takes. stop ends it early when
// it returns an error, which Write returns.
func (r *Recorder) Write(w io.Writer, namespace string, stop func() error) (Recording, error) {
	views, state := r.snapshot(namespace, true)
	least := 0
	for s := state.Share; s < 1; s *= 2 {
		least++
	}
	var cursors []*cursor
	for _, v := range views {
		if c := (&cursor{chunks: v}); c.next() {
			cursors = append(cursors, c)
		}
	}
	out := bufio.NewWriterSize(w, 64<<10)
	var line []byte
	from := state.Since.UnixMicro()
	for n := 0; len(cursors) > 0; n++ {
		if n%4096 == 0 {
			if err := stop(); err != nil {
				return state, err
			}
		}
		at := 0
		for i, c := range cursors {
			if c.time < cursors[at].time {
				at = i
			}
		}
		c := cursors[at]
		if c.shape.namespace == namespace && c.zeros >= least && c.time >= from {
			state.Requests++
			line = c.append(line[:0])
			if _, err := out.Write(line); err != nil {
				return state, err
			}
		}
		if !c.next() {
			cursors = slices.Delete(cursors, at, at+1)
		}
	}
	return state, out.Flush()
}

// append appends the request as a line.
func (q *request) append(b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"time":`...), q.time, 10)
	if name := q.verb.String(); name != "take" {
		b = jsontext.AppendText(append(b, `,"verb":`...), name)
	}
	if q.hits != 0 {
		b = strconv.AppendInt(append(b, `,"hits":`...), q.hits, 10)
	}
	if q.feedback != "" {
		b = jsontext.AppendText(append(b, `,"feedback":`...), q.feedback)
	}
	if q.hold != [12]byte{} {
		b = append(base64.RawURLEncoding.AppendEncode(append(b, `,"hold":"`...), q.hold[:]), '"')
	}
	if q.final {
		b = append(b, `,"final":true`...)
	}
	b = append(b, `,"attributes":{`...)
	comma := false
	for i, v := range q.values {
		if len(v) == 0 {
			continue
		}
		if comma {
			b = append(b, ',')
		}
		comma = true
		b = append(jsontext.AppendText(b, q.shape.names[i]), ':')
		b = jsontext.AppendText(b, string(v))
	}
	return append(b, "}}\n"...)
}

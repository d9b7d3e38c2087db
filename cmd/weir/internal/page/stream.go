package page

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
)

const (
	// stateEvery is how many changes come between two states.
	stateEvery = 5

	// streamWrite is how long a reader may take for one write, and maxChanged how many rules a change names.
	streamWrite = 10 * time.Second
	maxChanged  = 1000
)

// maxStreams is the maximum number of streams at the same time.
const maxStreams = 16

// errStreams is the error of further streams.
var errStreams = &access.Overload{Detail: "as many readers watch the page already as can; this one does not change by itself"}

// stream is a stream of server-sent events.
type stream struct {
	auth   *access.Authenticator
	caller *Caller
	space  *namespace.Namespace
	w      http.ResponseWriter
	r      *http.Request
	ctx    context.Context // is done when the reader is gone, and when all streams end
}

// openStream begins the answer to r, which is about space. The caller calls end, unless there is an error.
func (p *Page) openStream(c *Caller, space *namespace.Namespace, w http.ResponseWriter, r *http.Request) (s *stream, end func(), err error) {
	if !p.streams.Take(c.Holder.Share(), 1) {
		return nil, nil, errStreams
	}
	s = &stream{auth: p.c.Auth, caller: c, space: space, w: w, r: r}
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(p.ended, cancel)
	s.ctx = ctx
	endAnswer := answer.Stream(w, streamWrite)
	return s, func() {
		stop()
		cancel()
		p.streams.Leave(c.Holder.Share(), 1)
		endAnswer()
	}, nil
}

// send sends b, and reports whether the stream goes on: not if the reader is gone or too slow, or may not read the
// namespace any more.
func (s *stream) send(b []byte) bool {
	if s.r.Method == http.MethodHead || answer.Again(s.auth, s.r, s.space, s.caller.Holder) != nil {
		return false
	}
	return answer.Send(s.w, b, streamWrite) == nil
}

// stream sends what was counted in each second, and now and then the state of the service.
func (o *overview) stream(c *Caller, w http.ResponseWriter, r *http.Request) error {
	n, err := c.Namespace()
	if err != nil {
		return err
	}
	to, end, err := o.page.openStream(c, n, w, r)
	if err != nil {
		return err
	}
	defer end()
	changes, stop := o.history.watch(c.Name)
	defer stop()
	b := []byte(": weir\n\n")
	for i := 1; to.send(b); i++ {
		select {
		case <-to.ctx.Done():
			return nil
		case d := <-changes:
			b = appendEvent(b[:0], "tick", tickOf(&d))
		}
		if i%stateEvery != 0 {
			continue
		}
		s := o.state(c, n, time.Now())
		s.Rules = slices.DeleteFunc(s.Rules, func(t tally) bool { return t.Holds < 0 && t.Banned < 0 })
		b = appendEvent(b, "state", struct {
			Hash  string `json:"hash"`
			State *state `json:"state"`
		}{n.Source().Hash, s})
	}
	return nil
}

// appendEvent appends an event with a value as JSON.
func appendEvent(b []byte, name string, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		return b // unreachable: no event has a value that JSON lacks
	}
	return fmt.Appendf(b, "event: %s\ndata: %s\n\n", name, text)
}

// tick is a change in an event: when it was read, the counts of all rules, and those of each rule.
type tick struct {
	At    int64               `json:"at"`
	Lost  bool                `json:"lost,omitempty"`
	Total [4]int64            `json:"total"`
	Rules map[string][4]int64 `json:"rules"`
}

// tickOf returns d as an event has it, with the rules that are used most.
func tickOf(d *change) tick {
	t := tick{d.at.Unix(), d.lost, tuple(d.total), map[string][4]int64{}}
	names := slices.Collect(maps.Keys(d.rules))
	if len(names) > maxChanged {
		slices.SortFunc(names, func(x, y string) int { return cmp.Compare(d.rules[y].Matched, d.rules[x].Matched) })
		names = names[:maxChanged]
	}
	for _, name := range names {
		t.Rules[name] = tuple(d.rules[name])
	}
	return t
}

package page

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/internal/jsontext"
)

const (
	// stateEvery is how many changes come between two states.
	stateEvery = 5

	// streamWrite is how long a reader may take for one write, and maxChanged how many rules a change names.
	streamWrite = 10 * time.Second
	maxChanged  = 1000
)

// maxStreams is how many streams there are at the same time.
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
	if !p.streams.Take(c.Holder.Namespace) {
		return nil, nil, errStreams
	}
	s = &stream{auth: p.c.Auth, caller: c, space: space, w: w, r: r}
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(p.ended, cancel)
	s.ctx = ctx
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // which would end the context
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep events back
	return s, func() { stop(); cancel(); p.streams.Leave(c.Holder.Namespace) }, nil
}

// send sends b, and reports whether the stream goes on: not if the reader is gone or too slow, or may not read the
// namespace any more.
func (s *stream) send(b []byte) bool {
	h, err := s.auth.Authenticate(access.CredentialsOf(s.r), access.Read)
	if err != nil || h.Namespace != s.caller.Holder.Namespace || s.space.Gone() || s.r.Method == http.MethodHead {
		return false // tokens and namespaces may have changed
	}
	to := http.NewResponseController(s.w)
	_ = to.SetWriteDeadline(time.Now().Add(streamWrite))
	if _, err := s.w.Write(b); err != nil {
		return false
	}
	return to.Flush() == nil
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
			b = appendChange(b[:0], &d)
		}
		if i%stateEvery != 0 {
			continue
		}
		s := o.state(c, n, time.Now())
		s.Rules = slices.DeleteFunc(s.Rules, func(t tally) bool { return t.Holds < 0 && t.Banned < 0 })
		text, err := json.Marshal(s)
		if err != nil {
			return nil
		}
		b = append(append(append(b, "event: state\ndata: {\"hash\":"...), strconv.Quote(n.Source().Hash)...), ",\"state\":"...)
		b = append(append(b, text...), "}\n\n"...)
	}
	return nil
}

// appendChange appends a change as an event: when it was read, the counts of all rules, and those of each rule.
func appendChange(b []byte, d *change) []byte {
	b = append(b, "event: tick\ndata: {\"at\":"...)
	b = strconv.AppendInt(b, d.at.Unix(), 10)
	if d.lost {
		b = append(b, `,"lost":true`...)
	}
	b = appendCounts(append(b, `,"total":`...), d.total)
	b = append(b, `,"rules":{`...)
	names := make([]string, 0, len(d.rules))
	for name := range d.rules {
		names = append(names, name)
	}
	if len(names) > maxChanged {
		slices.SortFunc(names, func(x, y string) int { return cmp.Compare(d.rules[y].Matched, d.rules[x].Matched) })
		names = names[:maxChanged]
	}
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendCounts(append(jsontext.AppendText(b, name), ':'), d.rules[name])
	}
	return append(b, "}}\n\n"...)
}

func appendCounts(b []byte, c metrics.Counts) []byte {
	for i, n := range [...]int64{c.Matched, c.Denied, c.Shadow, c.Near} {
		b = append(b, "[,,,"[i])
		b = strconv.AppendInt(b, n, 10)
	}
	return append(b, ']')
}

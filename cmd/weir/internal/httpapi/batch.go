package httpapi

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/sizes"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/store"
)

// batch decides many requests in order. It reads all of them before it decides
// the first one, so that a batch that is not JSON counts nothing. Each request is
// decided by itself: a batch is not one atomic step, and a request with a fault
// does not affect the others.
func (a *API) batch(x *exchange, w http.ResponseWriter, r *http.Request) error {
	if err := x.read(r); err != nil {
		return err
	}
	x.scan.reset(x.body)
	if cap(x.body) > maxKept {
		x.body = nil // the scanner has a copy
	}
	parts, shared, f := x.scan.batch(x.item[0].Request.Attributes[:0])
	x.item[0].Request.Attributes = shared
	if f != nil {
		return f
	}
	if err := x.Caller.May(needs(parts)); err != nil {
		return err
	}
	if err := x.Reserve(int64(len(parts))*itemBytes + faultTimes*faultText(parts)); err != nil {
		return err
	}
	items := make([]weir.Item, 0, len(parts)) // of the parts without a fault
	for i := range parts {
		p := &parts[i]
		if p.fault == nil {
			p.request.Attributes = shared[p.from:p.to:p.to]
			items = append(items, weir.Item{Verb: p.verb, Request: p.request})
		}
	}
	_, err := x.namespace.Run(answer.Context(r), items, x.options(func(s run.Size) error {
		if err := x.Reserve(int64(s.Usages)*usageMemory + s.Text + s.Bytes()); err != nil {
			return err
		}
		x.out = slices.Grow(x.out, int(s.Bytes())+answerBytes*len(parts))
		return nil
	}))
	if err != nil && (len(items) != 1 || items[0].Err == nil) { // a single item has its own
		return err
	}
	b := append(x.out, `{"answers":[`...)
	for i := range parts {
		if i > 0 {
			b = append(b, ',')
		}
		if f := parts[i].fault; f != nil {
			b = appendProblem(b, answer.ProblemOf(f))
			continue
		}
		it := &items[0]
		items = items[1:]
		if it.Err == nil {
			b = appendDecision(b, it.Verb, &it.Decision)
			continue
		}
		problem := answer.ProblemOf(it.Err)
		if problem.Field != "" {
			problem.Field = fmt.Sprintf("requests[%d].%s", i, problem.Field)
		}
		b = appendProblem(b, problem)
	}
	return x.respond(w, append(b, ']', '}'))
}

// appendProblem appends p as the answer to a request of a batch.
func appendProblem(b []byte, p *answer.Problem) []byte {
	return append(p.Append(append(b, `{"problem":`...)), '}')
}

// The memory of a batch, in bytes, without its body and the text of its answer. TestBatchFloods in
// cmd/weir measures the memory of a process with these.
const (
	itemBytes   = 2 << 10 // for each request
	usageMemory = 512     // for each rule that matches one
	answerBytes = 200     // of the answer to one request, without its rules
	faultTimes  = 8       // the text of a fault is copied, and a control character takes six bytes
)

// faultText returns the size of the text of all faults, in bytes. It can have names from the body.
func faultText(parts []part) (n int64) {
	for i := range parts {
		if f := parts[i].fault; f != nil {
			n += int64(len(f.Path) + len(f.Problem))
		}
	}
	return n
}

// needs returns the scopes that a caller needs for all parts of a batch that are decided.
func needs(parts []part) (need access.Scope) {
	for i := range parts {
		switch {
		case parts[i].fault != nil:
		case parts[i].named == store.Record, parts[i].named == store.Refund:
			need |= access.Record
		default:
			need |= access.Decide
		}
	}
	return need
}

// batch reads a batch. It appends the attributes of all parts to attrs.
func (s *scanner) batch(attrs []weir.Attribute) (parts []part, _ []weir.Attribute, f *fault.Fault) {
	start, found := s.pos, false
	f = s.object(func(name string, at int) (f *fault.Fault) {
		switch {
		case name != "requests":
			f = s.fault(at, "is unknown; a batch has requests")
		case found:
			f = s.twice(at)
		default:
			found = true
			parts, attrs, f = s.parts(attrs)
		}
		return f.In(name)
	})
	switch {
	case f == nil && !found:
		f = s.missing("requests", start)
	case f == nil:
		f = s.end()
	}
	return parts, attrs, f
}

// parts reads the array of requests. A fault of a request is that of its part, and the text goes on behind the
// request, as long as it is JSON.
func (s *scanner) parts(attrs []weir.Attribute) (parts []part, _ []weir.Attribute, f *fault.Fault) {
	f = s.array(func(i int) *fault.Fault {
		if i == sizes.Batch {
			return s.fault(s.pos, "more than %d", sizes.Batch)
		}
		start := s.pos
		p, more, f := s.request(attrs, store.Take, true)
		if f == nil {
			attrs = more
		} else {
			p = part{fault: f.In(fmt.Sprintf("requests[%d]", i))}
			s.pos = start
			if f = s.skip(); f != nil {
				return f.In(fmt.Sprintf("[%d]", i))
			}
		}
		parts = append(parts, p)
		return nil
	})
	return parts, attrs, f
}

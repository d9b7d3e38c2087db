package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/sizes"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/store"
)

// batch decides many requests in order. It reads all of them before it decides
// the first one, so that a malformed batch counts nothing. Each request is
// decided by itself: a batch is not one atomic step.
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
	if err := x.caller.May(needs(parts)); err != nil {
		return err
	}
	if err := x.Reserve(int64(len(parts)) * itemBytes); err != nil {
		return err
	}
	items := make([]weir.Item, len(parts))
	for i, p := range parts {
		items[i].Verb, items[i].Request = p.verb, p.request
		items[i].Request.Attributes = shared[p.from:p.to:p.to]
	}
	a.planning <- struct{}{}
	planned := sync.OnceFunc(func() { <-a.planning })
	defer planned()
	_, err := x.namespace.Engine().Run(r.Context(), items, run.Options{Caller: x.caller.Token(), MaxSize: x.namespace.MaxAnswer(), Admit: func(s run.Size) error {
		planned()
		if err := x.checkEscapes(s); err != nil {
			return err
		}
		x.out = x.out[:0]
		if err := x.Reserve(int64(s.Usages)*usageMemory + s.Text + s.Bytes()); err != nil {
			return err
		}
		x.out = slices.Grow(x.out, int(s.Bytes())+answerBytes*len(items))
		return nil
	}})
	if err != nil && (len(items) != 1 || items[0].Err == nil) { // a single item has its own
		return err
	}
	b := append(x.out, `{"answers":[`...)
	for i := range items {
		if i > 0 {
			b = append(b, ',')
		}
		if err := items[i].Err; err != nil {
			problem := answer.ProblemOf(err)
			if problem.Field != "" {
				problem.Field = fmt.Sprintf("requests[%d].%s", i, problem.Field)
			}
			b = append(problem.Append(append(b, `{"problem":`...)), '}')
			continue
		}
		b = appendDecision(b, items[i].Verb, &items[i].Decision)
	}
	return x.respond(w, append(b, ']', '}'))
}

// The memory of a batch, in bytes, without its body and the text of its answer. TestBatchFloods in
// cmd/weir measures the memory of a process with these.
const (
	itemBytes   = 2 << 10 // for each request
	usageMemory = 512     // for each rule that matches one
	answerBytes = 200     // of the answer to one request, without its rules
)

// needs returns the scopes that a caller needs for all parts of a batch.
func needs(parts []part) (need access.Scope) {
	for i := range parts {
		switch parts[i].named {
		case store.Record, store.Refund:
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

// parts reads the array of requests.
func (s *scanner) parts(attrs []weir.Attribute) (parts []part, _ []weir.Attribute, f *fault.Fault) {
	f = s.array(func(i int) (f *fault.Fault) {
		if i == sizes.Batch {
			return s.fault(s.pos, "more than %d", sizes.Batch)
		}
		var p part
		if p, attrs, f = s.request(attrs, store.Take, true); f != nil {
			return f.In(fmt.Sprintf("[%d]", i))
		}
		parts = append(parts, p)
		return nil
	})
	return parts, attrs, f
}

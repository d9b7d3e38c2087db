package httpapi

import (
	"fmt"
	"net/http"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store"
)

// decide is the call that every action makes: one request, one decision.
func (a *API) decide(verb store.Verb) handler {
	return func(x *exchange, w http.ResponseWriter, r *http.Request) error {
		if err := x.read(r); err != nil {
			return err
		}
		if f := x.scan.decode(x.body, &x.request); f != nil {
			return malformed(x.body, f)
		}
		if err := a.engine.Do(r.Context(), verb, &x.request, &x.decision); err != nil {
			return err
		}
		x.out = appendDecision(x.out[:0], &x.decision)
		return answer(w, x.out)
	}
}

// explain says what would happen to a request and why; it counts nothing.
func (a *API) explain(x *exchange, w http.ResponseWriter, r *http.Request) error {
	if err := x.read(r); err != nil {
		return err
	}
	if f := x.scan.decode(x.body, &x.request); f != nil {
		return malformed(x.body, f)
	}
	why, err := a.engine.Explain(r.Context(), x.request)
	if err != nil {
		return err
	}
	b := appendDecision(append(x.out[:0], `{"decision":`...), &why.Decision)
	b = append(b, `,"rules":[`...)
	for i := range why.Rules {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendExplanation(b, &why.Rules[i])
	}
	x.out = append(b, ']', '}')
	return answer(w, x.out)
}

func appendExplanation(b []byte, e *weir.RuleExplanation) []byte {
	b = appendText(append(b, `{"rule":`...), e.Rule)
	b = appendText(append(b, `,"kind":`...), kindName(e.Kind))
	b = appendBool(append(b, `,"matched":`...), e.Matched)
	if e.Shadow {
		b = append(b, `,"shadow":true`...)
	}
	b = appendTexts(append(b, `,"reasons":`...), e.Reasons)
	if e.Usage != nil {
		b = append(appendUsage(append(b, `,"usage":{`...), e.Usage), '}')
	}
	return append(b, '}')
}

// part is one request of a batch; its attributes are shared[from:to].
type part struct {
	verb     store.Verb
	hits     int64
	from, to int
}

// batch decides many requests in order. All of them are read before the first
// is decided, so that a malformed batch counts nothing. Each is decided by
// itself: they are not one atomic step.
func (a *API) batch(x *exchange, w http.ResponseWriter, r *http.Request) error {
	if err := x.read(r); err != nil {
		return err
	}
	x.scan.reset(x.body)
	parts, shared, f := x.scan.batch(x.request.Attributes[:0])
	x.request.Attributes = shared
	if f != nil {
		return malformed(x.body, f)
	}
	b := append(x.out[:0], `{"answers":[`...)
	for i, p := range parts {
		if i > 0 {
			b = append(b, ',')
		}
		req := weir.Request{Attributes: shared[p.from:p.to:p.to], Hits: p.hits}
		if err := a.engine.Do(r.Context(), p.verb, &req, &x.decision); err != nil {
			problem := problemOf(err)
			if problem.Field != "" {
				problem.Field = fmt.Sprintf("requests[%d].%s", i, problem.Field)
			}
			b = append(problem.append(append(b, `{"problem":`...)), '}')
			continue
		}
		b = appendDecision(b, &x.decision)
	}
	x.out = append(b, ']', '}')
	return answer(w, x.out)
}

// batch reads a batch; the attributes of all its parts are appended to attrs.
func (s *scanner) batch(attrs []weir.Attribute) ([]part, []weir.Attribute, *fault) {
	var parts []part
	start := s.pos
	if f := s.open('{'); f != nil {
		return nil, attrs, f
	}
	found := false
	for first := true; ; first = false {
		more, f := s.more(first, '}')
		if f != nil {
			return nil, attrs, f
		}
		if !more {
			break
		}
		s.peek()
		at := s.pos
		name, f := s.name()
		switch {
		case f != nil:
			return nil, attrs, f
		case name != "requests":
			return nil, attrs, (&fault{at: at, problem: "is unknown; a batch has requests"}).in(name)
		case found:
			return nil, attrs, (&fault{at: at, problem: "is there twice"}).in(name)
		}
		found = true
		if parts, attrs, f = s.parts(attrs); f != nil {
			return nil, attrs, f.in("requests")
		}
	}
	if !found {
		return nil, attrs, &fault{at: start, field: "requests", problem: "is missing"}
	}
	return parts, attrs, s.end()
}

// parts reads the array of requests.
func (s *scanner) parts(attrs []weir.Attribute) (parts []part, _ []weir.Attribute, f *fault) {
	if f = s.open('['); f != nil {
		return nil, attrs, f
	}
	for first := true; ; first = false {
		more, f := s.more(first, ']')
		if !more || f != nil {
			return parts, attrs, f
		}
		if s.peek(); len(parts) == maxBatch {
			return nil, attrs, &fault{at: s.pos, problem: fmt.Sprintf("more than %d", maxBatch)}
		}
		p := part{from: len(attrs)}
		if attrs, p.hits, p.verb, f = s.request(attrs, true); f != nil {
			return nil, attrs, f.in(fmt.Sprintf("[%d]", len(parts)))
		}
		p.to = len(attrs)
		parts = append(parts, p)
	}
}

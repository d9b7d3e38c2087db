package httpapi

import (
	"strconv"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Bounds of one call.
const (
	maxBody       = 1 << 20 // bytes
	maxAttributes = 64
	maxAttribute  = 1 << 10 // bytes, of a name and of a value
	maxBatch      = 1000    // requests
)

// part is one request of a batch. Its attributes are the elements from and up
// to to of a slice that all parts share.
type part struct {
	verb     store.Verb
	hits     int64 // 0 makes the verb a check, of one hit
	feedback string
	from, to int
}

// decode reads body as one request for verb into req, whose attributes it
// reuses. It returns the verb to run.
func (s *scanner) decode(body []byte, verb store.Verb, req *weir.Request) (store.Verb, *fault.Fault) {
	s.reset(body)
	p, attrs, f := s.request(req.Attributes[:0], false)
	if f == nil {
		f = s.end()
	}
	p.verb = verb
	verb, *req = p.ask(attrs)
	return verb, f
}

// ask returns the request in p, and the verb to run: a check for hits: 0.
func (p *part) ask(attrs []weir.Attribute) (store.Verb, weir.Request) {
	if p.hits == 0 {
		return store.Check, weir.Request{Attributes: attrs}
	}
	return p.verb, weir.Request{Attributes: attrs, Hits: p.hits, Feedback: p.feedback}
}

// request reads an object with attributes, hits, feedback and, in a batch, a
// verb. It appends the attributes to attrs.
func (s *scanner) request(attrs []weir.Attribute, batch bool) (part, []weir.Attribute, *fault.Fault) {
	p := part{verb: store.Take, hits: 1, from: len(attrs)}
	start, zero := s.pos, 0
	var seen struct{ attributes, hits, feedback, verb bool }
	f := s.object(func(name string, at int) (f *fault.Fault) {
		again := false
		switch {
		case name == "attributes":
			again, seen.attributes = seen.attributes, true
			attrs, f = s.attributes(attrs)
		case name == "hits":
			again, seen.hits, zero = seen.hits, true, s.pos
			p.hits, f = s.hits()
		case name == "feedback":
			again, seen.feedback = seen.feedback, true
			p.feedback, f = s.feedback()
		case name == "verb" && batch:
			again, seen.verb = seen.verb, true
			p.verb, f = s.verb()
		case batch:
			f = s.fault(at, "is unknown; a request in a batch has attributes, hits, feedback and verb")
		default:
			f = s.fault(at, "is unknown; a request has attributes, hits and feedback")
		}
		if f == nil && again {
			f = s.twice(at)
		}
		return f.In(name)
	})
	switch {
	case f != nil:
	case !seen.attributes:
		f = s.missing("attributes", start)
	case p.hits == 0 && seen.feedback:
		f = s.fault(zero, "is 0, which counts nothing; leave it out with feedback").In("hits")
	}
	p.to = len(attrs)
	return p, attrs, f
}

// attributes reads the object of attributes and appends them to attrs.
func (s *scanner) attributes(attrs []weir.Attribute) ([]weir.Attribute, *fault.Fault) {
	start := len(attrs)
	f := s.object(func(name string, at int) *fault.Fault {
		if f := suits(attrs[start:], name); f != nil {
			f.Place = s.place(at)
			return f
		}
		at = s.pos
		value, f := s.value()
		if f == nil && len(value) > maxAttribute {
			f = s.fault(at, "has %d bytes, more than %d", len(value), maxAttribute)
		}
		attrs = append(attrs, weir.Attribute{Name: name, Value: value})
		return f.In(name)
	})
	return attrs, f
}

// suits returns the fault, without a place, of adding an attribute called name
// to attrs. It returns nil when there is none.
func suits(attrs []weir.Attribute, name string) *fault.Fault {
	switch {
	case name == "":
		return fault.Newf("", "an attribute without a name")
	case len(name) > maxAttribute:
		return fault.Newf("", "an attribute's name has %d bytes, more than %d", len(name), maxAttribute)
	case len(attrs) == maxAttributes:
		return fault.Newf("", "more than %d attributes", maxAttributes)
	}
	for i := range attrs {
		if attrs[i].Name == name {
			return fault.Newf(name, "is there twice")
		}
	}
	return nil
}

// value reads a string, a number or a boolean as the text of an attribute.
func (s *scanner) value() (string, *fault.Fault) {
	switch c := s.peek(); {
	case c == '"':
		return s.string()
	case c == 't':
		return "true", s.literal("true")
	case c == 'f':
		return "false", s.literal("false")
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	}
	return "", s.unexpected("a string, a number or a boolean")
}

// hits reads the cost of a request. A cost of 0 turns the request into a check.
func (s *scanner) hits() (int64, *fault.Fault) {
	if c := s.peek(); c != '-' && (c < '0' || c > '9') {
		return 0, s.unexpected("a number")
	}
	at := s.pos
	text, f := s.number()
	if f != nil {
		return 0, f
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case text[0] == '-':
		return 0, s.fault(at, "is negative; use refund to give hits back")
	case strings.Contains(text, "."):
		return 0, s.fault(at, "is not a whole number")
	case err != nil || n > window.MaxHits:
		return 0, s.fault(at, "is more than %d", window.MaxHits)
	}
	return n, nil
}

// feedback reads the name that a refund is given for.
func (s *scanner) feedback() (string, *fault.Fault) {
	if s.peek() != '"' {
		return "", s.unexpected("a name in quotes")
	}
	at := s.pos
	name, f := s.string()
	switch {
	case f != nil:
		return "", f
	case name == "":
		return "", s.fault(at, "is empty; leave it out to give hits back")
	case len(name) > maxAttribute:
		return "", s.fault(at, "has %d bytes, more than %d", len(name), maxAttribute)
	}
	return name, nil
}

// verb reads the verb of a request in a batch.
func (s *scanner) verb() (store.Verb, *fault.Fault) {
	if s.peek() != '"' {
		return 0, s.unexpected("take, check, record or refund in quotes")
	}
	at := s.pos
	name, f := s.string()
	if f != nil {
		return 0, f
	}
	for _, v := range verbs {
		if name == v.String() {
			return v, nil
		}
	}
	return 0, s.fault(at, "is %q; want take, check, record or refund", name)
}

// verbs lists the verbs that a request can have.
var verbs = [...]store.Verb{store.Take, store.Check, store.Record, store.Refund}

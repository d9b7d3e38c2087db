package httpapi

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// What one call may carry.
const (
	maxBody       = 1 << 20 // bytes
	maxAttributes = 64
	maxAttribute  = 1 << 10 // bytes, of a name and of a value
	maxBatch      = 1000    // requests
)

// decode reads body as one request into req, whose attributes it reuses.
func (s *scanner) decode(body []byte, req *weir.Request) *fault {
	s.reset(body)
	attrs, hits, _, f := s.request(req.Attributes[:0], false)
	if f == nil {
		f = s.end()
	}
	req.Attributes, req.Hits = attrs, hits
	return f
}

// request reads an object with attributes, hits and, in a batch, a verb.
// It appends the attributes to attrs.
func (s *scanner) request(attrs []weir.Attribute, batch bool) (_ []weir.Attribute, hits int64, verb store.Verb, f *fault) {
	hits, verb = 1, store.Take
	start := s.pos
	if f = s.open('{'); f != nil {
		return attrs, hits, verb, f
	}
	var seen struct{ attributes, hits, verb bool }
	for first := true; ; first = false {
		more, f := s.more(first, '}')
		if f != nil {
			return attrs, hits, verb, f
		}
		if !more {
			break
		}
		s.peek()
		at := s.pos
		name, f := s.name()
		if f != nil {
			return attrs, hits, verb, f
		}
		twice := false
		switch {
		case name == "attributes":
			twice, seen.attributes = seen.attributes, true
			attrs, f = s.attributes(attrs)
		case name == "hits":
			twice, seen.hits = seen.hits, true
			hits, f = s.hits()
		case name == "verb" && batch:
			twice, seen.verb = seen.verb, true
			verb, f = s.verb()
		default:
			f = unknown(name, at, batch)
		}
		if f == nil && twice {
			f = &fault{at: at, problem: "is there twice"}
		}
		if f != nil {
			return attrs, hits, verb, f.in(name)
		}
	}
	if !seen.attributes {
		f = &fault{at: start, field: "attributes", problem: "is missing"}
	}
	return attrs, hits, verb, f
}

func unknown(name string, at int, batch bool) *fault {
	if batch {
		return &fault{at: at, problem: "is unknown; a request in a batch has attributes, hits and verb"}
	}
	return &fault{at: at, problem: "is unknown; a request has attributes and hits"}
}

// attributes reads the object of attributes and appends them to attrs.
func (s *scanner) attributes(attrs []weir.Attribute) ([]weir.Attribute, *fault) {
	if f := s.open('{'); f != nil {
		return attrs, f
	}
	start := len(attrs)
	for first := true; ; first = false {
		more, f := s.more(first, '}')
		if !more || f != nil {
			return attrs, f
		}
		s.peek()
		at := s.pos
		name, f := s.name()
		if f != nil {
			return attrs, f
		}
		if f := suits(attrs[start:], name); f != nil {
			f.at = at
			return attrs, f
		}
		at = s.pos
		value, f := s.value()
		if f == nil && len(value) > maxAttribute {
			f = &fault{at: at, problem: fmt.Sprintf("has %d bytes, more than %d", len(value), maxAttribute)}
		}
		if f != nil {
			return attrs, f.in(name)
		}
		attrs = append(attrs, weir.Attribute{Name: name, Value: value})
	}
}

// suits says why name cannot join attrs, wherever they come from.
func suits(attrs []weir.Attribute, name string) *fault {
	switch {
	case name == "":
		return &fault{problem: "an attribute without a name"}
	case len(name) > maxAttribute:
		return &fault{problem: fmt.Sprintf("an attribute's name has %d bytes, more than %d", len(name), maxAttribute)}
	case len(attrs) == maxAttributes:
		return &fault{problem: fmt.Sprintf("more than %d attributes", maxAttributes)}
	}
	for i := range attrs {
		if attrs[i].Name == name {
			return &fault{field: name, problem: "is there twice"}
		}
	}
	return nil
}

// value reads a string, a number or a boolean as an attribute's text.
func (s *scanner) value() (string, *fault) {
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

// hits reads a request's cost; 0 looks only.
func (s *scanner) hits() (int64, *fault) {
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
		return 0, &fault{at: at, problem: "is negative; use refund to give hits back"}
	case strings.Contains(text, "."):
		return 0, &fault{at: at, problem: "is not a whole number"}
	case err != nil || n > window.MaxHits:
		return 0, &fault{at: at, problem: fmt.Sprintf("is more than %d", window.MaxHits)}
	case n == 0:
		return weir.LookOnly, nil
	}
	return n, nil
}

// verb reads what a request in a batch asks for.
func (s *scanner) verb() (store.Verb, *fault) {
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
	return 0, &fault{at: at, problem: fmt.Sprintf("is %q; want take, check, record or refund", name)}
}

// verbs are what a request can ask for.
var verbs = [...]store.Verb{store.Take, store.Check, store.Record, store.Refund}

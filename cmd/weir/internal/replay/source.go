package replay

import (
	"context"
	"errors"

	"github.com/weirhq/weir/cmd/weir/internal/logs/accesslog"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Source is a source of requests, such as logs. [Logs] returns one.
type Source interface {
	// Open prepares the source to be read once from its start. attributes are the
	// attributes that the rules use.
	Open(ctx context.Context, attributes []string) (Reader, error)
}

// Reader reads the requests of a source, one after the other.
type Reader interface {
	// Next sets e to the next request, or to a line that is not a request (e.Bad).
	// The texts in e are valid until the next call of Next or Close; Next reuses
	// e.Values. The error is [io.EOF] after the last request. After an error,
	// Next returns it again.
	Next(e *Entry) error

	// Close ends the reading.
	Close() error
}

// skipper is implemented by readers that count the lines about something else ([ErrOther]).
type skipper interface{ skipped() int64 }

// skippedOf returns the number of lines that r has skipped.
func skippedOf(r Reader) int64 {
	if s, ok := r.(skipper); ok {
		return s.skipped()
	}
	return 0
}

// Verb is what a request of a log asks of the rules.
type Verb uint8

const (
	Take   Verb = iota // decide, and count what is admitted
	Check              // only decide
	Record             // only count
	Refund             // give back
	Settle             // end the hold of a take at its real cost
	Cancel             // end it as if the take had not been
	Renew              // prolong it
)

// Store returns the verb of package store.
func (v Verb) Store() store.Verb {
	return [...]store.Verb{store.Take, store.Check, store.Record, store.Refund, store.Settle, store.Cancel, store.Renew}[v]
}

// Entry is a request of a source.
type Entry struct {
	// Time is the time of the request.
	Time window.Instant

	// Verb is what the request asks. A [Parser] sets it for a format whose lines are not
	// all a Take.
	Verb Verb

	// Hits is the cost of the request. 0 means 1, and in a Settle what was held. A [Parser] sets it, and the next
	// three, for a format that has them.
	Hits int64

	// Feedback is the event of a Refund. Empty: Hits are given back.
	Feedback string

	// Hold names what a Take holds, and what a Settle, Cancel or Renew is about. Final reports whether a Take cannot hold.
	Hold  string
	Final bool

	// Values holds the values of the attributes that were passed to
	// [Source.Open], in that order. A missing value is empty.
	Values []string

	// Log is the name of the log, Line the number of the line in it, from 1, and
	// Text the line. Lines is the number of lines that the entry takes if that is more
	// than one; Line is then the first of them.
	Log   string
	Line  int64
	Lines int64
	Text  string

	// Bad is the reason why the line is not a request. If it is set, Time, Verb, Hits and
	// Values have no meaning.
	Bad error
}

// Format is a format of logs with one request a line. It is safe for concurrent
// use.
type Format interface {
	// NewParser returns a parser for one log.
	NewParser(attributes []string) Parser
}

// Parser parses the lines of one log, in order.
type Parser interface {
	// Parse sets e.Time and e.Values from a line without its newline. e.Values
	// has an element for each attribute, with the text of the line before. For the last
	// line of a request or a fault that takes several lines, Parse also sets e.Lines and
	// e.Text; it returns ErrSkip for the others.
	// Parse returns [ErrSkip] or [ErrOther] for a line that holds no request, and another
	// error for a bad line.
	Parse(line string, e *Entry) error
}

// Ender is an optional interface of a [Parser] whose requests can take several lines.
type Ender interface {
	// End is called after the last line of a log. If the log ends inside a request,
	// End sets e.Lines and e.Text and returns the error of a bad line.
	End(e *Entry) error
}

// HoldEnder is an optional interface of a [Format] that can have the ends of holds.
type HoldEnder interface{ EndsHolds() bool }

// ErrSkip is returned by a [Parser] for a line that is part of the format and no request, such as a
// header. ErrOther is returned for a line about something else, in a log that has such lines. Reports
// have the number of the latter.
var (
	ErrSkip  = errors.New("not a request")
	ErrOther = errors.New("about something else")
)

// AccessLog is the format of access logs, common and combined. See the package's
// documentation for its attributes.
var AccessLog Format = accessFormat{}

type accessFormat struct{}

func (accessFormat) NewParser(attributes []string) Parser {
	p := &accessParser{}
	e := &p.entry
	fields := map[string]*string{
		"ip": &e.IP, "method": &e.Method, "path": &e.Path, "query": &e.Query, "status": &e.Status,
		"bytes": &e.Bytes, "referer": &e.Referer, "agent": &e.Agent, "host": &e.Host,
	}
	for i, name := range attributes {
		if value := fields[name]; value != nil {
			p.fields = append(p.fields, field{i, value})
		}
	}
	return p
}

type accessParser struct {
	lines  accesslog.Parser
	entry  accesslog.Entry
	fields []field
}

// field is an attribute that the rules use, with a pointer to its value.
type field struct {
	at    int // in Entry.Values
	value *string
}

func (p *accessParser) Parse(line string, e *Entry) error {
	if err := p.lines.Parse(line, &p.entry); err != nil {
		return err
	}
	e.Time = p.entry.Time
	for _, f := range p.fields {
		e.Values[f.at] = *f.value
	}
	return nil
}

package replay

import (
	"github.com/weirhq/weir/cmd/weir/internal/logs/accesslog"
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

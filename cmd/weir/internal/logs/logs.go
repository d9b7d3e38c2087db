// Package logs reads logs in many formats as requests for package replay: access
// logs, JSON lines, CSV, logfmt, and lines that a pattern matches, packed or not. A
// [Spec] states the format, and which fields become which attributes.
package logs

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/replay"
	"github.com/weirhq/weir/fault"
)

// Spec describes the lines of logs. The zero value describes access logs.
type Spec struct {
	// Format is one of [Formats]. Empty means combined.
	Format string

	// Map has the field for each attribute that is not called like its field. A
	// field is a path of keys in JSON (".auth.sub"), a column in CSV, a key in
	// logfmt, and the name of an attribute in an access log. It can end in
	// functions, each after a bar: "request_uri|path".
	Map map[string]string

	// Set has attributes with the same value in all requests.
	Set map[string]string

	// Pattern is a regular expression (RE2) for the format pattern. Its named groups are the
	// fields of a line; lines that it does not match are skipped.
	Pattern string

	// Time is the field with the time, or a field with the date and one with the time of day, with
	// a + between. Empty: one of the usual names.
	Time string

	// TimeFormat is the form of times: empty to recognise it, unix, unix_ms,
	// unix_us, unix_ns, or a layout of package time.
	TimeFormat string

	// Zone is the zone of times that have none. Nil means UTC.
	Zone *time.Location

	// Year is the year of the first time of a log whose times have none. 0: the latest in which
	// that time is not in the future.
	Year int

	// Columns has the names of the columns of CSV without a header. Comma is the
	// separator of columns; 0 means a comma.
	Columns []string
	Comma   rune
}

// kinds has a row for each format.
var kinds = []struct {
	name, about string
	preset      Spec // for what a Spec leaves out
	new         func(f *format, fields []string) extractor
}{
	{"combined", "access logs, common or combined", combined, nil},
	{"json", "an object a line", Spec{}, newJSON},
	{"csv", "comma-separated values; the first line has the names", Spec{}, newCSV},
	{"logfmt", "key=value pairs", Spec{}, newLogfmt},
	{"envoy", "Envoy's access log as JSON, with Istio's names", envoy, newJSON},
	{"nginx", "nginx's access log as JSON, with the names of nginx's variables", nginx, newJSON},
	{"alb", "access logs of AWS Application Load Balancers", alb, newALB},
	{"cloudfront", "standard logs of CloudFront", cloudfront, newW3C},
	{"w3c", "the extended log format of the W3C, as IIS writes it", w3c, newW3C},
	{"koala", "koala's log of calls: browse is a check, update a record; times in Asia/Shanghai", koala, newKoala},
	{"weir", "requests as weir serve --record keeps them, with their verbs and hits", recorded, newRecorded},
	{"pattern", "lines that --pattern matches; its named groups are the fields", Spec{}, newPattern},
}

// combined cleans the paths of access logs.
var combined = Spec{Map: map[string]string{"path": "path|path"}}

// envoy has the names of Envoy's default JSON access log.
var envoy = Spec{Time: "start_time", Map: map[string]string{
	"ip": "downstream_remote_address|ip", "method": "method", "path": "path|path", "query": "path|query", "status": "response_code",
	"bytes": "bytes_sent", "agent": "user_agent", "host": "authority|host", "referer": "referer",
}}

// nginx has the names of nginx's variables.
var nginx = Spec{Map: map[string]string{
	"ip": "remote_addr", "method": "request_method", "path": "request_uri|path", "query": "request_uri|query", "status": "status",
	"bytes": "body_bytes_sent", "agent": "http_user_agent", "referer": "http_referer", "host": "host|host",
}}

// alb has the names of package logs for the columns of an application load balancer, and w3c and
// cloudfront those for columns of the extended log format.
var (
	alb = Spec{Time: "time", Map: map[string]string{
		"ip": "client:port|ip", "method": "request|method", "path": "request|url|path", "query": "request|url|query", "host": "request|url|host",
		"status": "elb_status_code", "bytes": "sent_bytes", "agent": "user_agent",
	}}
	w3c = Spec{Time: "date+time", Map: map[string]string{
		"ip": "c-ip", "method": "cs-method", "path": "cs-uri-stem|path", "query": "cs-uri-query", "status": "sc-status", "bytes": "sc-bytes",
		"agent": "cs(User-Agent)", "referer": "cs(Referer)", "host": "cs-host|host",
	}}
	cloudfront = Spec{Time: "date+time", Map: map[string]string{
		"ip": "c-ip", "method": "cs-method", "path": "cs-uri-stem|path", "query": "cs-uri-query", "status": "sc-status", "bytes": "sc-bytes",
		"agent": "cs(User-Agent)|unescape", "referer": "cs(Referer)|unescape", "host": "x-host-header|host",
	}}
)

// koala has the name of the time in the output of koalaLine.
var koala = Spec{Time: "time", TimeFormat: "2006-01-02 15:04:05"}

// recorded has the name and the form of the time in a line of a recording.
var recorded = Spec{Time: "time", TimeFormat: "unix_us"}

// Formats returns the names of the formats.
func Formats() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return names
}

// Description is a format of logs.
type Description struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

// Described returns the formats with what they are.
func Described() []Description {
	list := make([]Description, len(kinds))
	for i, k := range kinds {
		list[i] = Description{k.name, k.about}
	}
	return list
}

// About returns a line about each format, for help.
func About() string {
	var b strings.Builder
	for _, k := range kinds {
		fmt.Fprintf(&b, "  %-10s %s\n", k.name, k.about)
	}
	return b.String()
}

// Compile returns the format that s describes. The error is a [fault.List].
func (s Spec) Compile() (replay.Format, error) {
	var faults fault.List
	switch {
	case s.Format == "" && s.Pattern != "":
		s.Format = "pattern"
	case s.Format == "":
		s.Format = "combined"
	}
	at := slices.Index(Formats(), s.Format)
	if at < 0 {
		faults.Addf("format", "%q: want one of %s", s.Format, strings.Join(Formats(), ", "))
		return nil, faults.Err()
	}
	k := kinds[at]
	f := &format{spec: s, attributes: maps.Clone(k.preset.Map)}
	if f.attributes == nil {
		f.attributes = map[string]string{}
	}
	maps.Copy(f.attributes, s.Map)
	if f.spec.Time == "" {
		f.spec.Time = k.preset.Time
	}
	if f.spec.TimeFormat == "" {
		f.spec.TimeFormat = k.preset.TimeFormat
	}
	if s.Format == "koala" && s.Zone == nil {
		zone, err := Zone("Asia/Shanghai")
		if err != nil {
			return nil, fault.List{fault.Newf("timezone", "%v", err)}
		}
		f.spec.Zone = zone
	}
	for _, name := range slices.Sorted(maps.Keys(f.attributes)) {
		if _, err := parseField(f.attributes[name]); err != nil {
			faults.Addf("map."+name, "%v", err)
		}
		if _, twice := s.Set[name]; twice && s.Map[name] != "" {
			faults.Addf("set."+name, "has a field under map, too: want one of them")
		}
	}
	for name, set := range map[string]bool{"time": s.Time != "", "time_format": s.TimeFormat != ""} {
		if set && (k.new == nil || s.Format == "weir") {
			faults.Addf(name, "does not go with %s, whose times have a fixed position and form", s.Format)
		}
	}
	if s.Format != "csv" && (len(s.Columns) > 0 || s.Comma != 0) {
		faults.Addf("columns", "columns and separator are for csv")
	}
	if err := checkTimeFormat(s.TimeFormat); err != nil {
		faults.Addf("time_format", "%v", err)
	}
	if s.Year != 0 && (s.Year < 1970 || s.Year > 2250) {
		faults.Addf("year", "%d: want a year from 1970 to 2250", s.Year)
	}
	switch isPattern := s.Format == "pattern"; {
	case !isPattern && s.Pattern != "":
		faults.Addf("pattern", "does not go with %s: leave out the format", s.Format)
	case isPattern && s.Pattern == "":
		faults.Addf("pattern", `missing: want a regular expression with named groups, such as ^(?P<time>\w+ +\d+ [\d:]+) .* user (?P<user>\S+)$`)
	case isPattern:
		var err error
		if f.pattern, err = compilePattern(s.Pattern); err != nil {
			faults.Addf("pattern", "%v", err)
		}
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	f.new = k.new
	return f, nil
}

// format is a compiled Spec.
type format struct {
	spec       Spec
	attributes map[string]string // fields by attribute
	pattern    *regexp.Regexp
	new        func(f *format, fields []string) extractor
}

// mapped returns the fields that the description maps, which have to be there.
func (f *format) mapped() (fields []string) {
	for _, name := range slices.Sorted(maps.Keys(f.spec.Map)) {
		field, _ := parseField(f.spec.Map[name]) // checked by Compile
		fields = append(fields, field.path)
	}
	return fields
}

// extractor reads fields from the lines of one log.
type extractor interface {
	// extract sets values to the fields of a line, "" for missing ones.
	extract(line string, values []string) error
}

// EndsHolds implements [replay.HoldEnder].
func (f *format) EndsHolds() bool { return f.spec.Format == "weir" }

// NewParser implements [replay.Format].
func (f *format) NewParser(attributes []string) replay.Parser {
	p := &parser{times: timeReader{form: f.spec.TimeFormat, zone: f.spec.Zone, year: f.spec.Year}, times0: -1}
	var paths []string
	for at, name := range attributes {
		if v, ok := f.spec.Set[name]; ok {
			p.constants = append(p.constants, constant{at, v})
			continue
		}
		path := name
		if mapped, ok := f.attributes[name]; ok {
			path = mapped
		}
		field, _ := parseField(path) // checked by Compile; a name of an attribute has no functions
		p.fields = append(p.fields, target{at, field.functions})
		paths = append(paths, field.path)
	}
	if f.new == nil {
		p.access = replay.AccessLog.NewParser(paths)
		if len(p.constants) == 0 && !slices.ContainsFunc(p.fields, func(f target) bool { return len(f.functions) > 0 }) {
			return p.access // saves a copy of all values
		}
		p.entry.Values = make([]string, len(paths))
		return p
	}
	p.timeNames = usualTimes
	if f.spec.Time != "" {
		p.timeNames = []string{f.spec.Time}
	}
	names := p.timeNames
	if date, clock, ok := strings.Cut(f.spec.Time, "+"); ok {
		names, p.dated = []string{date, clock}, true
	}
	for _, name := range names {
		paths = append(paths, strings.TrimPrefix(name, "."))
	}
	p.values = make([]string, len(paths))
	p.extractor = f.new(f, paths)
	switch of := p.extractor.(type) {
	case *csvLine:
		p.several = of.several
	case *koalaLine:
		p.asked = &of.entry
	case *recordedLine:
		p.asked = &of.entry
	}
	return p
}

// usualTimes are the usual names of the field with the time. In CSV their case does
// not matter.
var usualTimes = []string{
	"time", "ts", "timestamp", "@timestamp", "start_time", "time_iso8601", "time_local", "msec", "datetime", "date", "Timestamp", "@t", "eventTime",
}

// parser is a [replay.Parser] of one log.
type parser struct {
	extractor extractor
	access    replay.Parser // instead of extractor
	entry     replay.Entry  // of access
	values    []string      // of fields, then of the names of times
	fields    []target
	constants []constant
	times     timeReader
	timeNames []string
	times0    int  // the index in timeNames of the name that this log uses, or -1
	dated     bool // the date and the time of day are two fields

	// asked is what the last line asks, or nil if each is a take of one hit.
	asked *replay.Entry

	// several returns the number of lines of the record that ends with line, and its
	// text. It is nil if each record is a line.
	several func(line string) (lines int64, text string)
}

// target is the destination of a field.
type target struct {
	at        int // in replay.Entry.Values
	functions []function
}

type constant struct {
	at    int
	value string
}

// Parse implements [replay.Parser].
func (p *parser) Parse(line string, e *replay.Entry) error {
	values := p.values
	if p.access != nil {
		if err := p.access.Parse(line, &p.entry); err != nil {
			return err
		}
		e.Time, values = p.entry.Time, p.entry.Values
	} else {
		err := p.extractor.extract(strings.TrimSuffix(line, "\r"), values)
		if err == nil {
			err = p.time(e)
		}
		if p.several != nil {
			e.Lines, e.Text = p.several(line)
		}
		if err != nil {
			return err
		}
		if a := p.asked; a != nil {
			e.Verb, e.Hits, e.Feedback, e.Hold, e.Final = a.Verb, a.Hits, a.Feedback, a.Hold, a.Final
		}
	}
	for i, f := range p.fields {
		v := values[i]
		for _, function := range f.functions {
			v = function(v)
		}
		e.Values[f.at] = v
	}
	for _, c := range p.constants {
		e.Values[c.at] = c.value
	}
	return nil
}

// End implements [replay.Ender].
func (p *parser) End(e *replay.Entry) error {
	c, ok := p.extractor.(*csvLine)
	if !ok || len(c.record) == 0 {
		return nil
	}
	c.finish()
	e.Lines, e.Text = c.several("")
	return errOpenQuotes
}

// time sets e.Time from the values.
func (p *parser) time(e *replay.Entry) (err error) {
	times := p.values[len(p.fields):]
	if p.dated {
		if times[0] == "" || times[1] == "" {
			return fmt.Errorf("no time: %s are not both there", p.timeNames[0])
		}
		if e.Time, err = p.times.read(times[0] + " " + times[1]); err != nil {
			return fmt.Errorf("%s: %w", p.timeNames[0], err)
		}
		return nil
	}
	if p.times0 < 0 || times[p.times0] == "" { // the first line, or one with another field
		p.times0 = slices.IndexFunc(times, func(v string) bool { return v != "" })
	}
	if p.times0 < 0 {
		if len(p.timeNames) > 1 {
			return fmt.Errorf("no time: name its field with --time, such as --time %s", p.timeNames[1])
		}
		return fmt.Errorf("no time: field %s is missing", p.timeNames[0])
	}
	e.Time, err = p.times.read(times[p.times0])
	if err != nil {
		return fmt.Errorf("%s: %w", p.timeNames[p.times0], err)
	}
	return nil
}

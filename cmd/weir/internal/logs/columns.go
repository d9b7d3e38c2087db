package logs

import (
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weirhq/weir/cmd/weir/internal/replay"
)

// csvLine reads comma-separated values. A record is a line, or several lines if a
// newline is inside quotes.
type csvLine struct {
	comma  string
	fields []string // wanted
	mapped []string // those that are required
	at     []int    // the column of each wanted field, or -1
	header bool     // the next record is the header
	width  int      // number of columns
	cells  []string

	missing error // a mapped column is not there: all lines are bad

	record []byte // the lines so far of a record that ends in quotes
	lines  int64  // how many they are
	whole  string // the last record, if it had several lines
	wholes int64  // how many
}

// longestRecord is the maximum size of a record with newlines, in bytes. It bounds how much text
// an unclosed quotation mark affects.
const longestRecord = 64 << 10

var (
	errOpenQuotes = errors.New("a text in quotes begins here and does not end")
	errLongRecord = fmt.Errorf("a text in quotes begins here and does not end within %d bytes", longestRecord)
)

func newCSV(f *format, fields []string) extractor {
	c := &csvLine{comma: ",", fields: fields, mapped: f.mapped(), header: true}
	if f.spec.Comma != 0 {
		c.comma = string(f.spec.Comma)
	}
	if len(f.spec.Columns) > 0 {
		c.header = false
		c.columns(f.spec.Columns)
	}
	return c
}

// columns stores the names of the columns.
func (c *csvLine) columns(names []string) {
	c.width = len(names)
	c.at = make([]int, len(c.fields))
	for i, field := range c.fields {
		c.at[i] = slices.Index(names, field)
		if c.at[i] < 0 && slices.Contains(usualTimes, field) {
			c.at[i] = slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, field) })
		}
	}
	c.missing = missingColumn(c.mapped, names)
}

func (c *csvLine) extract(line string, values []string) error {
	c.whole, c.wholes = "", 0
	if line == "" && len(c.record) == 0 {
		return replay.ErrSkip
	}
	line, err := c.join(line)
	if err != nil {
		return err
	}
	if err := c.split(line); err != nil {
		return err
	}
	if c.header {
		c.header = false
		c.cells[0] = strings.TrimPrefix(c.cells[0], "\ufeff")
		names := make([]string, len(c.cells)) // cells are parts of a block that is used again
		for i, name := range c.cells {
			names[i] = strings.TrimSpace(strings.Clone(name))
		}
		c.columns(names)
		return replay.ErrSkip
	}
	if c.missing != nil {
		return c.missing
	}
	if len(c.cells) != c.width {
		return fmt.Errorf("%d columns, want %d", len(c.cells), c.width)
	}
	for i, at := range c.at {
		values[i] = ""
		if at >= 0 {
			values[i] = c.cells[at]
		}
	}
	return nil
}

// join returns the record that ends with line. It returns ErrSkip if the record continues in the
// next line.
func (c *csvLine) join(line string) (record string, err error) {
	inside := len(c.record) > 0
	if !inside && strings.IndexByte(line, '"') < 0 {
		return line, nil
	}
	open := endsInQuotes(line, c.comma, inside)
	if !open && !inside {
		return line, nil
	}
	c.record = append(c.record, line...)
	c.lines++
	switch {
	case len(c.record) >= longestRecord:
		c.finish()
		return "", errLongRecord
	case open:
		c.record = append(c.record, '\n')
		return "", replay.ErrSkip
	}
	c.finish()
	return c.whole, nil
}

// finish ends the record that has begun.
func (c *csvLine) finish() {
	c.whole, c.wholes = string(c.record), c.lines
	c.record, c.lines = c.record[:0], 0
}

// several returns the number of lines and the text of the last record, whose last line is
// line.
func (c *csvLine) several(line string) (lines int64, text string) {
	if c.wholes == 0 {
		return 0, line
	}
	return c.wholes, c.whole
}

// endsInQuotes reports whether text ends inside a cell in quotes. inside reports
// whether it begins inside of one, and otherwise text begins with a cell.
func endsInQuotes(text, comma string, inside bool) bool {
	for {
		if !inside {
			if !strings.HasPrefix(text, `"`) {
				_, rest, more := strings.Cut(text, comma)
				if !more {
					return false
				}
				text = rest
				continue
			}
			text = text[1:]
		}
		end := strings.IndexByte(text, '"')
		if end < 0 {
			return true
		}
		text = text[end+1:]
		if inside = strings.HasPrefix(text, `"`); inside { // a quotation mark within the text
			text = text[1:]
			continue
		}
		_, rest, more := strings.Cut(text, comma)
		if !more {
			return false
		}
		text = rest
	}
}

// split splits a line into cells.
func (c *csvLine) split(line string) error {
	c.cells = c.cells[:0]
	if !strings.Contains(line, `"`) {
		for {
			cell, rest, more := strings.Cut(line, c.comma)
			c.cells = append(c.cells, cell)
			if !more {
				return nil
			}
			line = rest
		}
	}
	r := csv.NewReader(strings.NewReader(line))
	r.Comma, _ = utf8.DecodeRuneInString(c.comma)
	r.FieldsPerRecord = -1
	cells, err := r.Read()
	if err != nil {
		var bad *csv.ParseError
		if errors.As(err, &bad) {
			return fmt.Errorf("column %d: %w", bad.Column, bad.Err)
		}
		return err
	}
	c.cells = append(c.cells, cells...)
	return nil
}

// logfmtLine reads key=value pairs.
type logfmtLine struct{ indexes indexes }

func newLogfmt(_ *format, fields []string) extractor { return &logfmtLine{indexesOf(fields)} }

// indexes has, by the name of a field, the indexes of its value.
type indexes map[string][]int

func indexesOf(fields []string) indexes {
	p := indexes{}
	for i, name := range fields {
		p[name] = append(p[name], i)
	}
	return p
}

func (p indexes) set(values []string, name, value string) {
	for _, i := range p[name] {
		values[i] = value
	}
}

func (l *logfmtLine) extract(line string, values []string) error {
	clear(values)
	found := false
	for rest := strings.TrimLeft(line, " \t"); rest != ""; rest = strings.TrimLeft(rest, " \t") {
		end := strings.IndexAny(rest, "= \t")
		if end < 0 {
			end = len(rest)
		}
		key := rest[:end]
		rest = rest[end:]
		value := ""
		if strings.HasPrefix(rest, "=") {
			var ok bool
			if value, rest, ok = logfmtValue(rest[1:]); !ok {
				return fmt.Errorf("column %d: a text in quotes does not end", len(line)-len(rest)+1)
			}
			found = true
		}
		l.indexes.set(values, key, value)
	}
	if !found {
		return errors.New("no key=value pair")
	}
	return nil
}

// logfmtValue returns the value at the start of text, and what follows it.
func logfmtValue(text string) (value, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexAny(text, " \t")
		if end < 0 {
			end = len(text)
		}
		return text[:end], text[end:], true
	}
	for end := 1; end < len(text); end++ {
		switch text[end] {
		case '\\':
			end++
		case '"':
			return unescaped(text[1:end]), text[end+1:], true
		}
	}
	return "", text, false
}

// unescaped returns text without the backslashes that escape characters.
func unescaped(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	return strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\r`, "\r", `\"`, `"`, `\\`, `\`).Replace(text)
}

// koalaLine reads the log of koala's calls: lines such as
//
//	NOTICE: 2013-06-28 18:30:56 [logid=1 file=… no=88 call=…] [ cip=10.0.0.1 intf=/rule/browse act=ask uid=7 ] [ BodyString=… ]
//
// The fields are time, cip (the caller's address), intf (the call) and koala's
// arguments. koala does not escape the values, so a value can have blanks, and text
// that looks like another argument is one. Other lines of koala's log hold no call.
type koalaLine struct {
	indexes indexes
	entry   replay.Entry // the verb of the last line
}

func newKoala(_ *format, fields []string) extractor { return &koalaLine{indexes: indexesOf(fields)} }

// koalaVerbs are what koala's calls ask. koala's clients browse before an action and update after
// it, unless the browse writes through.
var koalaVerbs = map[string]replay.Verb{
	"rule/browse": replay.Check, "rule/browse_complete": replay.Check, "rule/update": replay.Record,
}

const (
	koalaStart = "] [ cip="
	koalaEnd   = " ] [ BodyString="
	koalaTime  = len("2006-01-02 15:04:05")
)

var errNotKoala = errors.New("want LEVEL: YYYY-MM-DD hh:mm:ss [")

func (k *koalaLine) extract(line string, values []string) error {
	clear(values)
	level, rest, ok := strings.Cut(line, ": ")
	if !ok || strings.ToUpper(level) != level || len(rest) < koalaTime+2 || rest[koalaTime] != ' ' {
		return errNotKoala
	}
	at := strings.Index(rest, koalaStart)
	if at < 0 {
		return replay.ErrOther
	}
	k.indexes.set(values, "time", rest[:koalaTime])
	call := rest[at+len("] [ "):]
	if end := strings.LastIndex(call, koalaEnd); end >= 0 {
		call = call[:end]
	}
	known, through := false, false
	for call != "" {
		name, rest, _ := strings.Cut(call, "=")
		value := rest
		call = ""
		for from := 0; ; { // the value ends at a blank before the next name
			blank := strings.IndexByte(rest[from:], ' ')
			if blank < 0 {
				break
			}
			blank += from
			if next := strings.IndexAny(rest[blank+1:], " ="); next > 0 && rest[blank+1+next] == '=' {
				value, call = rest[:blank], rest[blank+1:]
				break
			}
			from = blank + 1
		}
		k.indexes.set(values, name, value)
		switch name {
		case "intf":
			k.entry.Verb, known = koalaVerbs[strings.Trim(value, "/")]
		case "_writeThrough":
			through = value == "yes"
		}
	}
	switch {
	case !known:
		return replay.ErrOther
	case through && k.entry.Verb == replay.Check:
		k.entry.Verb = replay.Take
	}
	return nil
}

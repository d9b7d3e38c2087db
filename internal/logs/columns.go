package logs

import (
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weirhq/weir/replay"
)

// csvLine reads comma-separated values, one record a line.
type csvLine struct {
	comma  string
	fields []string // wanted
	at     []int    // the column of each wanted field, or -1
	header bool     // the next line is the header
	width  int      // number of columns
	cells  []string
}

func newCSV(f *format, fields []string) (extractor, error) {
	c := &csvLine{comma: ",", fields: fields, header: true}
	if f.spec.Comma != 0 {
		c.comma = string(f.spec.Comma)
	}
	if len(f.spec.Columns) > 0 {
		c.header = false
		c.columns(f.spec.Columns)
	}
	return c, nil
}

// columns notes the names of the columns.
func (c *csvLine) columns(names []string) {
	c.width = len(names)
	c.at = make([]int, len(c.fields))
	for i, field := range c.fields {
		c.at[i] = slices.Index(names, field)
	}
}

func (c *csvLine) extract(line string, values []string) error {
	if line == "" {
		return replay.ErrSkip
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
type logfmtLine struct{ fields []string }

func newLogfmt(_ *format, fields []string) (extractor, error) { return &logfmtLine{fields}, nil }

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
		for i, name := range l.fields {
			if name == key {
				values[i] = value
			}
		}
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

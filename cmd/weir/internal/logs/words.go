package logs

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weirhq/weir/cmd/weir/internal/replay"
)

// wordsLine reads lines of values with blanks or tabs between them, such as those of load
// balancers and of the extended log format of the W3C. A value can be in quotes, and "-" stands
// for a missing one.
type wordsLine struct {
	indexes indexes // by column
	mapped  []string
	at      [][]int // the indexes of the value of each column; empty before a header
	fixed   bool    // the format has no header, and newer versions add columns
	missing error   // a mapped column is not there: all lines are bad
}

// newW3C returns a reader of logs whose columns are in the line #Fields.
func newW3C(f *format, fields []string) extractor {
	return &wordsLine{indexes: indexesOf(fields), mapped: f.mapped()}
}

// newALB returns a reader of the logs of application load balancers.
func newALB(f *format, fields []string) extractor {
	w := &wordsLine{indexes: indexesOf(fields), mapped: f.mapped(), fixed: true}
	w.columns(albColumns)
	return w
}

// albColumns are the columns of an application load balancer that all of its versions have.
var albColumns = strings.Fields("type time elb client:port target:port request_processing_time target_processing_time response_processing_time " +
	"elb_status_code target_status_code received_bytes sent_bytes request user_agent ssl_cipher ssl_protocol target_group_arn trace_id " +
	"domain_name chosen_cert_arn matched_rule_priority request_creation_time actions_executed redirect_url error_reason target:port_list " +
	"target_status_code_list classification classification_reason")

// columns stores the names of the columns.
func (w *wordsLine) columns(names []string) {
	w.at = make([][]int, len(names))
	for i, name := range names {
		w.at[i] = w.indexes[name]
	}
	w.missing = missingColumn(w.mapped, names)
}

// missingColumn returns an error if names lacks a column that map names.
func missingColumn(mapped, names []string) error {
	for _, name := range mapped {
		if !slices.Contains(names, name) {
			return fmt.Errorf("no column %q, which map names: the columns are %s", name, shorten(strings.Join(names, ", ")))
		}
	}
	return nil
}

func (w *wordsLine) extract(line string, values []string) error {
	if strings.HasPrefix(line, "#") && !w.fixed {
		if names, ok := strings.CutPrefix(line, "#Fields:"); ok {
			w.columns(strings.Fields(strings.Clone(names))) // the line is part of a block
		}
		return replay.ErrSkip
	}
	switch {
	case line == "":
		return replay.ErrSkip
	case len(w.at) == 0:
		return errors.New("no line #Fields above, which names the columns")
	case w.missing != nil:
		return w.missing
	}
	clear(values)
	n := 0
	for rest := line; rest != ""; n++ {
		var value string
		var ok bool
		if value, rest, ok = word(rest); !ok {
			return fmt.Errorf("column %d: a text in quotes does not end", n+1)
		}
		if n >= len(w.at) || value == "-" {
			continue
		}
		for _, i := range w.at[n] {
			values[i] = value
		}
	}
	if n < len(w.at) || n > len(w.at) && !w.fixed {
		return fmt.Errorf("%d columns, want %d", n, len(w.at))
	}
	return nil
}

// word returns the first value of a line, and the rest of the line.
func word(line string) (value, rest string, ok bool) {
	if !strings.HasPrefix(line, `"`) {
		end := strings.IndexAny(line, " \t")
		if end < 0 {
			return line, "", true
		}
		return line[:end], line[end+1:], true
	}
	for end := 1; end < len(line); end++ {
		switch {
		case line[end] == '\\':
			end++
		case line[end] != '"':
		case end+1 == len(line):
			return line[1:end], "", true
		case line[end+1] == ' ' || line[end+1] == '\t':
			return line[1:end], line[end+2:], true
		}
	}
	return "", "", false
}

package koalafile

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weirhq/weir/cmd/weir/internal/files"
	"github.com/weirhq/weir/cmd/weir/internal/rulewriter"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
)

// Native returns a rules file that decides the same as s, with the same
// counters. Dicts stay in their files, whose paths relative shortens. Native
// adds a warning for each dict that it writes into the rules file instead.
func (s *Site) Native(relative func(path string) string) ([]byte, error) {
	d := rulewriter.Draft{
		Rules:    slices.Clone(s.Rules),
		Outcomes: s.Outcomes,
		Zone:     s.Zone,
		Head: "yaml-language-server: $schema=weir.schema.json\n\n" +
			"Written by weir import koala from " + filepath.Base(s.Name) + ". The manual is docs/reference/rules.md;\n" +
			"docs/from/koala.md says which rule of koala's became what.",
		Comments: s.Comments, OutcomeComments: s.RowComments,
	}
	for i := range d.Rules {
		if r := &d.Rules[i]; r.Kind() == rule.KindVerdict {
			r.OnOutage = rule.OutageLocal // a verdict asks no store
		}
	}
	faults := notUTF8(s.Name, s.Text)
	for i, dict := range s.Lists {
		text, err := files.List(s.Paths[i])
		if err != nil {
			return nil, err
		}
		path := relative(s.Paths[i])
		faults = append(faults, notUTF8(path, text)...)
		list, warnings := listSource(dict.Name, path, text)
		list.Comment = dict.Comment
		d.Lists = append(d.Lists, list)
		s.Warnings = append(s.Warnings, warnings...)
	}
	if faults != nil {
		return nil, faults.Err()
	}
	return rulewriter.Write(&d)
}

// notUTF8 returns a fault at the first place in a file that is not UTF-8, which
// a rules file must be.
func notUTF8(name string, text []byte) fault.List {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if utf8.Valid(line) {
			continue
		}
		good := strings.ToValidUTF8(string(line), "\n") // no line has one before its end
		column := utf8.RuneCountInString(good[:strings.IndexByte(good, '\n')]) + 1
		return fault.List{{
			Place:   fault.Place{File: name, Line: number, Column: column, Source: strings.ToValidUTF8(strings.TrimRight(string(line), "\r\n"), "\ufffd")},
			Problem: "the line is not UTF-8 text, which rules files must be: convert the file, for example with iconv -f GBK -t UTF-8, and make sure that callers send UTF-8",
		}}
	}
	return nil
}

// listSource returns a dict as a list: its file, or its values, with a warning,
// if weir reads a line of the file differently.
func listSource(name, path string, text []byte) (list rulewriter.List, warning fault.List) {
	list.Name = name
	for number, line := range splitLines(string(text)) {
		item := strings.TrimSpace(line)
		if item == "" {
			continue
		}
		comment := item[0] == '#' || strings.Contains(item, " #") || strings.Contains(item, "\t#")
		_, err := rule.In(name, []string{item})
		if (comment || err != nil) && warning == nil {
			warning = fault.List{{
				Place:   fault.Place{File: path, Line: number, Column: 1, Source: item},
				Problem: fmt.Sprintf("the values of list %q are written into the rules file, because weir would read this line of the list's file differently", name),
			}}
		}
		if err == nil { // a malformed line was skipped before, with a warning
			list.Values = append(list.Values, item)
		}
	}
	if warning == nil {
		list.Values, list.File = nil, path
	}
	return list, warning
}

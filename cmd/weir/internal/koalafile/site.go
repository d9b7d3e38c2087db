package koalafile

import (
	"fmt"
	"os"
	"regexp"

	"github.com/weirhq/weir/cmd/weir/internal/files"
	"github.com/weirhq/weir/fault"
)

// sectionLine and ruleFileLine match lines of koala's rule file and main file.
// No rules file of weir's can have such a line.
var (
	sectionLine  = regexp.MustCompile(`(?im)^(\x{feff})?\[(dicts|rules|result)\][ \t\r]*$`)
	ruleFileLine = regexp.MustCompile(`(?m)^(\x{feff})?[ \t]*rule_file[ \t]*=`)
)

// Is reports whether text is a rule file or a main file of koala's, and not a
// rules file of weir's.
func Is(text []byte) bool { return sectionLine.Match(text) || isMain(text) }

// NotRules returns an error that names the flag and the command for text, the content of a file
// that was given as a rules file of weir's, if it is one of koala's.
func NotRules(name string, text []byte) error {
	if !Is(text) {
		return nil
	}
	file, flag := "rule file", "--koala"
	if isMain(text) {
		file, flag = "main file", "--koala-config"
	}
	return fmt.Errorf("%s is koala's %s, and not a rules file: weir serve takes it as %s, and weir import koala %s converts it", name, file, flag, name)
}

func isMain(text []byte) bool { return ruleFileLine.Match(text) && !sectionLine.Match(text) }

// Site is a rule file with the name and the text from which it was read.
type Site struct {
	*File
	Name string
	Text []byte

	// Warnings are those of the main file and of the rule file.
	Warnings fault.List
}

// Read reads text, which is a rule file, or a main file that names one. name is its name in
// faults. A text that is not from a file, such as the standard input, is loose: its main file
// cannot include others, and its paths are relative to the current directory. The Warnings
// are also set if there is an error.
func Read(name string, text []byte, loose bool) (s Site, err error) {
	s = Site{Name: name, Text: text}
	if isMain(text) {
		read := files.Rules
		if loose {
			read = nil
		}
		var main Main
		if main, s.Warnings, err = ParseMain(name, text, read); err != nil {
			return s, err
		}
		s.Name = main.RuleFile
		if s.Text, err = files.Rules(s.Name); err != nil {
			return s, noRuleFile(name, err)
		}
	}
	if s.File, err = Parse(s.Name, s.Text, files.List); err == nil {
		s.Warnings = append(s.Warnings, s.File.Warnings...)
	}
	return s, err
}

// CheckRuleFile returns an error if the rule file of m, which was read from the
// main file at path, does not exist.
func (m *Main) CheckRuleFile(path string) error {
	if _, err := os.Stat(m.RuleFile); err != nil {
		return noRuleFile(path, err)
	}
	return nil
}

func noRuleFile(main string, err error) error {
	return fmt.Errorf("%s: rule_file: %w; a relative path starts at the directory of the main file, or at the one above", main, err)
}

package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/koala"
)

// koalaSections and koalaMain match lines of koala's rule file and of its main
// file. A rules file cannot hold such lines.
var (
	koalaSections = regexp.MustCompile(`(?im)^(\x{feff})?\[(dicts|rules|result)\][ \t\r]*$`)
	koalaMain     = regexp.MustCompile(`(?m)^(\x{feff})?[ \t]*rule_file[ \t]*=`)
)

func isKoala(src []byte) bool { return koalaSections.Match(src) || koalaMain.Match(src) }

// koalaRules is koala's rule file with the source that it was read from. When
// the command was given koala's main file, source is the rule file named there.
type koalaRules struct {
	source
	*koala.File
	warnings fault.List
}

// loadKoala reads koala's rules. It returns warnings with an error, too.
func loadKoala(in source) (k koalaRules, err error) {
	k.source = in
	if koalaMain.Match(in.text) && !koalaSections.Match(in.text) {
		if err := k.followMain(); err != nil {
			return k, err
		}
	}
	// For the standard input, paths of dicts are relative to the current directory.
	if k.File, err = koala.ParseAt(k.name, k.text, os.ReadFile); err == nil {
		k.warnings = append(k.warnings, k.File.Warnings...)
	}
	return k, err
}

// followMain replaces koala's main file in k with the rule file that it names.
func (k *koalaRules) followMain() (err error) {
	var m koala.Main
	if k.stdin {
		m, k.warnings, err = koala.ParseMain(k.name, k.text)
	} else {
		m, k.warnings, err = koala.LoadMain(k.name)
	}
	if err != nil {
		return err
	}
	main := k.name
	k.source = source{name: m.RuleFile}
	if k.text, err = os.ReadFile(m.RuleFile); err != nil {
		return noRuleFile(main, err)
	}
	return nil
}

// noRuleFile returns the error for a rule file that a main file names and that
// cannot be read.
func noRuleFile(main string, err error) error {
	return fmt.Errorf("%s: rule_file: %w; a relative path starts at the directory of the main file, or at the one above", main, err)
}

// printWarnings prints each warning once, with all lines that have it.
func printWarnings(w io.Writer, warnings fault.List) {
	type place struct{ file, problem string }
	lines := map[place][]string{}
	for _, f := range warnings {
		at := place{f.Place.File, f.Problem}
		lines[at] = append(lines[at], fmt.Sprint(f.Place.Line))
	}
	for _, f := range warnings {
		at := place{f.Place.File, f.Problem}
		all := lines[at]
		if all == nil {
			continue // printed already
		}
		delete(lines, at)
		first := *f
		first.Problem += also(all[1:])
		fmt.Fprintf(w, "warning: %v\n", &first)
	}
}

// also returns a note of further lines, of the first ten when there are more.
func also(lines []string) string {
	const most = 10
	switch n := len(lines); {
	case n == 0:
		return ""
	case n == 1:
		return " (also line " + lines[0] + ")"
	case n > most:
		return fmt.Sprintf(" (also lines %s and %d more)", strings.Join(lines[:most], ", "), n-most)
	}
	return " (also lines " + strings.Join(lines, ", ") + ")"
}

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/rulefile"
)

func newImport() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Convert the rules of another program into a rules file",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newImportKoala())
	return cmd
}

func newImportKoala() *cobra.Command {
	return &cobra.Command{
		Use:   "koala FILE",
		Short: "Convert koala's rules into a rules file",
		Long: `Convert koala's rule file into a rules file that decides the same, and print it.
FILE is koala's rule file, or its main file, which names the rule file; - is the
standard input. Counters survive the change from one file to the other. Warnings
show where koala decided differently.

Dicts stay in their files. Paths below the current directory are written relative
to it, so put the rules file there.`,
		Example: "  weir import koala conf/koala_rule.conf > rules.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := readSource(cmd, args[0])
			if err != nil {
				return err
			}
			k, err := loadKoala(in)
			var rules []byte
			if err == nil {
				rules, err = k.rulesFile()
			}
			printWarnings(cmd.ErrOrStderr(), k.warnings)
			if err != nil {
				fmt.Fprintln(cmd.ErrOrStderr(), err)
				return fmt.Errorf("%s has faults; nothing was written", in.name)
			}
			_, err = cmd.OutOrStdout().Write(rules)
			return err
		},
	}
}

// rulesFile returns a rules file that decides as k does. It adds a warning to k
// for each dict whose values are written into the rules file.
func (k *koalaRules) rulesFile() ([]byte, error) {
	d := rulefile.Draft{
		Rules:    k.Rules,
		Outcomes: k.Outcomes,
		Zone:     k.Zone,
		Head: "yaml-language-server: $schema=weir.schema.json\n\n" +
			"Written by weir import koala from " + filepath.Base(k.name) + ". The manual is docs/rules.md;\n" +
			"docs/koala.md says which rule of koala's became what.",
		Comments: k.Comments, OutcomeComments: k.RowComments,
	}
	faults := notUTF8(k.name, k.text)
	for i, dict := range k.Lists {
		text, err := os.ReadFile(k.Paths[i])
		if err != nil {
			return nil, err
		}
		faults = append(faults, notUTF8(fromHere(k.Paths[i]), text)...)
		list, warnings := listSource(dict.Name, k.Paths[i], text)
		list.Comment = dict.Comment
		d.Lists = append(d.Lists, list)
		k.warnings = append(k.warnings, warnings...)
	}
	if faults != nil {
		return nil, faults.Err()
	}
	return rulefile.Write(&d)
}

// notUTF8 returns a fault for the first text in a file that is not UTF-8.
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

// listSource returns a dict as a list. The list refers to the dict's file. If weir
// would read the file differently, the list holds the values instead, and there
// is a warning.
func listSource(name, path string, text []byte) (list rulefile.ListSource, warning fault.List) {
	list.Name = name
	number := 0
	for line := range bytes.Lines(bytes.TrimPrefix(text, []byte("\ufeff"))) {
		number++
		item := string(bytes.TrimSpace(line))
		if item == "" {
			continue
		}
		comment := item[0] == '#' || strings.Contains(item, " #") || strings.Contains(item, "\t#")
		_, err := rule.NewList(name, []string{item})
		if (comment || err != nil) && warning == nil {
			warning = fault.List{{
				Place:   fault.Place{File: fromHere(path), Line: number, Column: 1, Source: item},
				Problem: fmt.Sprintf("the values of list %q are written into the rules file, because weir would read this line of the list's file differently", name),
			}}
		}
		if err == nil { // else koala's reader has skipped it, with a warning
			list.Values = append(list.Values, item)
		}
	}
	if warning == nil {
		list.Values, list.File = nil, fromHere(path)
	}
	return list, warning
}

// fromHere returns path relative to the current directory if path is below it.
func fromHere(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	relative, err := filepath.Rel(here, path)
	if err != nil || !filepath.IsLocal(relative) {
		return path
	}
	return filepath.ToSlash(relative)
}

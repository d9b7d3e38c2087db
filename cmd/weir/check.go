package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/cmd/weir/internal/events"
	"github.com/weirhq/weir/cmd/weir/internal/findings"
	"github.com/weirhq/weir/cmd/weir/internal/koalafile"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rulefile"
)

func newCheck() *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:   "check FILE|DIR…",
		Short: "Check rules files and print every error and warning",
		Long: `Check rules files and the list files that they name. Every error is printed with
its place (file:line:column), the line itself, and what was expected. FILE may be
- for the standard input. Of a directory, the file NAME.yaml of each namespace is
checked, as weir serve --rules DIR reads them.

Warnings show what is valid and probably not meant, such as a rule that never
applies. Each has a name: --explain NAME tells more about it, and the field
"ignore: NAME" in a rule, or at the top of the file, silences it.

Koala's rule file and main file are checked, too: a file with a line [rules] or
rule_file = PATH is one of them. Warnings show where koala decides differently.

So is a file with webhooks (weir serve --webhooks) and the files with their
secrets. Nothing is sent.

To ask whether an action may happen, use weir take --check.

Exit status: 0 no errors, 1 errors, or warnings with --strict.`,
		Example: `  weir check rules.yaml
  weir check rules/                         # a file for each namespace
  weir check --strict --json rules.yaml     # for continuous integration
  weir check --explain dead-rule`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.explain != "" {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.MinimumNArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, files []string) error {
			if o.explain != "" {
				return explainWarning(cmd.OutOrStdout(), o.explain)
			}
			colour(cmd)
			return o.check(cmd, files)
		},
	}
	cmd.Flags().BoolVar(&o.strict, "strict", false, "exit with 1 for warnings too")
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	cmd.Flags().Int64Var(&o.nodes, "nodes", 1, "warn of rules whose leases are too small for this `number` of instances")
	cmd.Flags().StringVar(&o.explain, "explain", "", "explain the warning called `NAME`")
	complete(cmd, "explain", slices.Sorted(maps.Keys(rulefile.WarningTexts())))
	return cmd
}

func explainWarning(w io.Writer, name string) error {
	texts := rulefile.WarningTexts()
	text, ok := texts[name]
	if !ok {
		names := slices.Sorted(maps.Keys(texts))
		hint := fault.DidYouMean(name, names)
		if hint == "" {
			hint = ": want one of\n  " + strings.Join(names, "\n  ")
		}
		return &usageError{fmt.Sprintf("unknown warning %q%s", name, hint)}
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

type checkOptions struct {
	strict, json bool
	explain      string
	nodes        int64
}

// checked is what a check found in a file. Its JSON form is the output of
// weir check --json.
type checked struct {
	File     string             `json:"file"`
	OK       bool               `json:"ok"` // no errors
	Rules    int                `json:"rules"`
	Errors   []findings.Finding `json:"errors"`
	Warnings []findings.Finding `json:"warnings"`
	More     int                `json:"more_warnings,omitempty"` // above mostWarnings

	text string // errors as text
	is   string // what the file contains, if it has no errors
	warn func(io.Writer)
}

// mostWarnings is the maximum number of warnings about a file that are printed. A hostile file has hundreds of thousands.
const mostWarnings = 1000

// check checks files and prints what it finds.
func (o *checkOptions) check(cmd *cobra.Command, files []string) error {
	bad, warnings := 0, 0
	results := []checked{}
	for _, c := range checkAll(cmd, files, o.nodes) {
		results = append(results, c)
		warnings += len(c.Warnings) + c.More
		if !c.OK {
			bad++
		}
		if !o.json {
			c.print(cmd.OutOrStdout(), cmd.ErrOrStderr())
		}
	}
	if o.json {
		e := json.NewEncoder(cmd.OutOrStdout())
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(map[string]any{"files": results}); err != nil {
			return err
		}
	}
	switch {
	case bad > 0:
		return fmt.Errorf("errors in %d of %s", bad, plural(len(results), "file"))
	case warnings > 0 && o.strict:
		return fmt.Errorf("%s, which --strict does not accept", plural(warnings, "warning"))
	}
	return nil
}

// print prints errors and warnings to errs, and the number of rules to out.
func (c *checked) print(out, errs io.Writer) {
	if c.warn != nil {
		c.warn(errs)
	}
	if c.More > 0 {
		fmt.Fprintf(errs, "warning: %d more are not shown\n", c.More)
	}
	if !c.OK {
		fmt.Fprintln(errs, c.text)
		return
	}
	fmt.Fprintf(out, "%s: %s, ok\n", c.File, c.is)
}

// checkAll checks files, and those of the namespaces in directories.
func checkAll(cmd *cobra.Command, files []string, nodes int64) (all []checked) {
	for _, name := range files {
		if info, err := os.Stat(name); name == "-" || err != nil || !info.IsDir() {
			all = append(all, checkFile(cmd, name, nodes))
			continue
		}
		found, bad, err := namespace.Files(name)
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("%s: holds no rules file: want one NAME.yaml for each namespace", name)
		}
		if err != nil {
			all = append(all, failed(name, err))
		}
		for _, f := range bad {
			all = append(all, failed(f.Place.File, f))
		}
		for _, f := range found {
			all = append(all, checkFile(cmd, f.Path, nodes))
		}
	}
	return all
}

// failed returns the result for a file that could not be read.
func failed(name string, err error) checked {
	c := checked{File: name, Errors: []findings.Finding{}, Warnings: []findings.Finding{}}
	c.fail(err)
	return c
}

// checkFile checks one file.
func checkFile(cmd *cobra.Command, name string, nodes int64) checked {
	in, err := readSource(cmd, name)
	if err != nil {
		return failed(name, err)
	}
	c := checked{File: in.name, Errors: []findings.Finding{}, Warnings: []findings.Finding{}}
	if koalafile.Is(in.text) {
		c.koala(in)
		return c
	}
	if events.IsWebhooks(in.text) {
		c.webhooks(in)
		return c
	}
	file, err := in.rules()
	if err != nil {
		c.fail(err)
		return c
	}
	warnings := most(&c, file.Warnings(nodes))
	c.Warnings = findings.Warnings(warnings)
	c.warn = func(out io.Writer) {
		for _, w := range warnings {
			f := *w.Fault
			f.Problem += " (" + w.Name + ")"
			fmt.Fprintf(out, "warning: %v\n", &f)
		}
	}
	c.OK, c.Rules = true, file.Set.Len()
	c.is = plural(c.Rules, "rule")
	if n := len(warnings) + c.More; n > 0 {
		c.is += ", " + plural(n, "warning")
	}
	return c
}

// most returns the first of warnings, and notes how many it leaves out.
func most[L ~[]W, W any](c *checked, warnings L) L {
	n := min(len(warnings), mostWarnings)
	c.More = len(warnings) - n
	return warnings[:n]
}

// koala checks a file of koala's.
func (c *checked) koala(in source) {
	site, err := koalafile.Read(in.name, in.text, in.stdin)
	warnings := most(c, site.Warnings)
	for _, w := range warnings {
		c.Warnings = append(c.Warnings, findings.Of("koala", w))
	}
	c.warn = func(out io.Writer) { printWarnings(out, warnings) }
	if err != nil {
		c.fail(err)
		return
	}
	c.OK, c.Rules, c.File = true, site.Set.Len(), site.Name
	c.is = plural(c.Rules, "koala rule") + ", " + plural(len(site.Warnings), "warning")
}

// webhooks checks a file with webhooks.
func (c *checked) webhooks(in source) {
	hooks, err := events.ParseWebhooks(in.name, in.text)
	if err != nil {
		c.fail(err)
		return
	}
	c.OK, c.is = true, plural(len(hooks), "webhook")
}

// fail records the errors in err.
func (c *checked) fail(err error) {
	c.text = err.Error()
	c.Errors = findings.Errors(err)
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
			continue // already printed
		}
		delete(lines, at)
		first := *f
		first.Problem += also(all[1:])
		fmt.Fprintf(w, "warning: %v\n", &first)
	}
}

// also returns text about further lines, at most ten of them.
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

package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/cmd/weir/internal/replay"
	"github.com/weirhq/weir/cmd/weir/internal/rulewriter"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/rulefile"
	"github.com/weirhq/weir/window"
)

func newSuggest() *cobra.Command {
	var from, name, keys string
	var windows []string
	var sweep replay.Sweep
	var f reportFlags
	cmd := &cobra.Command{
		Use:   "suggest --rules FILE [--rule NAME] [LOG…]",
		Short: "Suggest the number of a limit from a log",
		Long: longLogs(`Measure what each key of a limit uses within the rule's window, and what other
quotas would have denied: how many requests, and how many keys. Everything is
measured in one pass. The suggested quota is the smallest of --quotas that denies
at most --keys of the keys, or one key if there are 50 or more.

The tests and the key are those of the rule. Its own limit does not matter. All
numbers are those of a rules file with only this rule.`),
		Example: `  weir suggest --rules rules.yaml --rule logins access.log
  weir suggest --rules rules.yaml --rule logins --windows 1m,1h,day --quotas 5,10,20 access.log`,
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := requiredRules(cmd, from, args)
			if err != nil {
				return err
			}
			if sweep.Rule, err = limitName(file.Set, name); err != nil {
				return err
			}
			i, _ := file.Set.Find(sweep.Rule)
			for _, text := range windows {
				w, err := parseWindow(text, file.Zone)
				if err != nil {
					return &usageError{"--windows: " + err.Error()}
				}
				sweep.Windows = append(sweep.Windows, w)
			}
			if sweep.Share, err = parseShare(keys); err != nil {
				return &usageError{"--keys: " + err.Error()}
			}
			slices.Sort(sweep.Quotas)
			s, err := measure(cmd, &f, args, args, []*rules{file}, func(ctx context.Context, source replay.Source, options []replay.Option) (*replay.Suggestion, error) {
				return replay.Suggest(ctx, file.Set, sweep, source, options...)
			})
			if err == nil && !f.json {
				printRule(cmd, file.File, file.Set.Rule(i), s)
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&from, "rules", "", "rules `file`; - is the standard input")
	flags.StringVar(&name, "rule", "", "`name` of the limit (default: the only limit of the file)")
	flags.StringSliceVar(&windows, "windows", nil, "windows to measure, such as `1m,1h,day` (default: the rule's own)")
	flags.Int64SliceVar(&sweep.Quotas, "quotas", nil, "candidates, at most 64, such as `5,10,20` (default: twenty from 1 to 1000)")
	flags.Lookup("quotas").DefValue = "" // help must not show an empty list
	flags.StringVar(&keys, "keys", "0.1%", "highest `share` of keys that the suggested quota may deny")
	f.add(cmd)
	completeBy(cmd, "rule", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		var names []string
		for _, r := range (&client{rules: from}).knownRules(cmd) {
			names = append(names, r.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

// limitName returns name, or the name of the only limit in rules.
func limitName(rules *rule.Set, name string) (string, error) {
	if _, known := rules.Find(name); known {
		return name, nil
	}
	var limits []string
	for i := range rules.Len() {
		if r := rules.Rule(i); r.Kind() == rule.KindLimit && r.Mode != rule.Off {
			limits = append(limits, r.Name)
		}
	}
	if name != "" {
		hint := cmp.Or(fault.DidYouMean(name, limits), ": the limits are "+strings.Join(limits, ", "))
		return "", &usageError{fmt.Sprintf("--rule: no rule %q%s", name, hint)}
	}
	if len(limits) != 1 {
		return "", &usageError{"--rule NAME is required: the limits are " + strings.Join(limits, ", ")}
	}
	return limits[0], nil
}

// parseWindow parses a length of time, or a period of the calendar.
func parseWindow(text string, zone *time.Location) (window.Window, error) {
	for p := window.Minute; p <= window.Year; p++ {
		if p.String() == text {
			return window.Calendar(p, zone), nil
		}
	}
	d, err := rulefile.ParseDuration(text)
	return window.Sliding(d), err
}

// printRule prints the rule with the suggested numbers, to paste.
func printRule(cmd *cobra.Command, file *rulefile.File, r *rule.Rule, s *replay.Suggestion) {
	for i := range s.Windows {
		w := &s.Windows[i]
		if w.Suggested < 0 {
			continue
		}
		one := *r
		one.Quota, one.Window = &rule.Quota{Value: w.Candidates[w.Suggested].Quota}, w.Of()
		d := rulewriter.Draft{Rules: []rule.Rule{one}, Zone: file.Zone, Addresses: file.Set.Compiled().Addresses(), Outcomes: map[string]rule.Outcome{}}
		if one.Then != "" && one.Then != rule.Deny {
			d.Outcomes[one.Then] = rule.Outcome{}
		}
		for _, name := range listsOf(one.When) {
			d.Lists = append(d.Lists, rulewriter.List{Name: name, Values: []string{"x"}})
		}
		text, err := rulewriter.Write(&d)
		if err != nil {
			continue // a test that rules files do not have
		}
		_, text, _ = bytes.Cut(text, []byte("rules:\n"))
		fmt.Fprintf(cmd.OutOrStdout(), "\n%s", text)
	}
}

// listsOf returns the names of the lists in tests.
func listsOf(when []rule.Condition) (names []string) {
	var note func(t rule.Test)
	note = func(t rule.Test) {
		function, arguments, parts := rule.FormOf(t)
		if function == "In" && !slices.Contains(names, arguments[0]) {
			names = append(names, arguments[0])
		}
		for _, part := range parts {
			note(part)
		}
	}
	for _, c := range when {
		note(c.Test)
	}
	return names
}

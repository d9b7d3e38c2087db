package main

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/cmd/weir/internal/answer"
)

// complete makes the shell complete a flag with the given values.
func complete(cmd *cobra.Command, flag string, values []string) {
	completeBy(cmd, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// completeBy makes the shell complete a flag with the values that f returns.
func completeBy(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // no such flag: a bug in this package
	}
}

// isPlain reports whether a shell inserts word as it is. Words of a service can be anything, and a
// terminal or a shell would act on some of them.
func isPlain(word string) bool {
	return word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return !unicode.IsGraphic(r) || strings.ContainsRune("`$;&|<>()!\\\"'", r)
	})
}

// needs returns the attributes that r needs or tests.
func needs(r *answer.Rule) []string {
	all := append(slices.Clone(r.Per), r.Sum, r.Distinct)
	for _, test := range r.When {
		name, _, _ := strings.Cut(test, " ")
		all = append(all, name)
	}
	return all
}

// knownRules returns the rules of the service, or of the file that --rules names.
func (c *client) knownRules(cmd *cobra.Command) []answer.Rule {
	ctx, cancel := context.WithTimeout(cmd.Context(), time.Second)
	defer cancel()
	var known struct{ Rules []answer.Rule }
	if text, err := c.call(ctx, http.MethodGet, "/v1/rules", nil); err != nil || json.Unmarshal(text, &known) != nil {
		return nil
	}
	return known.Rules
}

// completeRules completes the name of a rule, and then the attributes of its key.
func (c *client) completeRules(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, r := range c.knownRules(cmd) {
		switch {
		case len(args) == 0:
			if isPlain(r.Name) {
				names = append(names, r.Name)
			}
		case r.Name == args[0]:
			return attributeArgs(r.Per, args)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeAttributes completes the attributes that the rules need or test.
func (c *client) completeAttributes(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, r := range c.knownRules(cmd) {
		names = append(names, needs(&r)...)
	}
	return attributeArgs(names, args)
}

// attributeArgs returns NAME= for each attribute that args do not have.
func attributeArgs(names, args []string) (missing []string, d cobra.ShellCompDirective) {
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if arg := name + "="; isPlain(name) && !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, arg) }) {
			missing = append(missing, arg)
		}
	}
	if missing == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return missing, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/cmd/weir/internal/answer"
)

type (
	overrideAnswer struct {
		Rule       string            `json:"rule"`
		Attributes map[string]string `json:"attributes"`
		Limit      int64             `json:"limit"`
		Burst      int64             `json:"burst,omitempty"`
		Until      *time.Time        `json:"until,omitempty"`
		Note       string            `json:"note,omitempty"`
		By         string            `json:"by,omitempty"`
		Idle       bool              `json:"idle,omitempty"`
	}
	overridesAnswer struct {
		Overrides []overrideAnswer `json:"overrides"`
		Next      string           `json:"next"`
		Degraded  bool             `json:"degraded"`
	}
	auditAnswer struct{ answer.Audit }
)

func newOverride() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "override",
		Short: "Give keys of a rule another limit",
		Long: `Give some keys of a rule another limit, until an instant if one is given. The rules file stays
as it is, and so do the counts.`,
	}
	cmd.AddCommand(newOverrideSet(), newOverrideList(), newOverrideRemove())
	return cmd
}

func newOverrideSet() *cobra.Command {
	var c client
	o := overrideAnswer{Limit: -1}
	until := ""
	cmd := &cobra.Command{
		Use:   "set RULE ATTRIBUTE=VALUE…",
		Short: "Set the limit of keys, in the place of the rule's",
		Long: `Set the limit of keys, in the place of the rule's. The attributes are some or all of the rule's
per. If several overrides concern a key, the one with the most attributes decides.`,
		Example: "  weir override set calls customer=acme --limit 500 --until 2027-12-01T00:00:00Z --note \"ticket 4711\"\n  weir override set calls customer=evil --limit 0",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			o.Rule = args[0]
			if o.Attributes, err = attributes(args[1:]); err != nil {
				return err
			}
			if !cmd.Flags().Changed("limit") {
				return &usageError{"--limit is missing: the hits that the limit admits, or 0 to deny"}
			}
			if until != "" {
				at, err := time.Parse(time.RFC3339, until)
				if err != nil {
					return &usageError{fmt.Sprintf("--until: %q: want an instant such as 2027-12-01T00:00:00Z", until)}
				}
				o.Until = &at
			}
			return c.ask(cmd, http.MethodPut, "/v1/overrides", &o, new(overrideAnswer))
		},
	}
	c.flags(cmd)
	cmd.Flags().Int64Var(&o.Limit, "limit", 0, "the `hits` that the limit admits; 0 denies")
	cmd.Flags().Int64Var(&o.Burst, "burst", 0, "the burst of a bucket, in `hits` (default that of the rule)")
	cmd.Flags().StringVar(&until, "until", "", "the `instant` at which the override ends, such as 2027-12-01T00:00:00Z (default never)")
	cmd.Flags().StringVar(&o.Note, "note", "", "why it is set, as `text` of up to 256 bytes")
	cmd.ValidArgsFunction = c.completeRules
	return cmd
}

func newOverrideList() *cobra.Command {
	var c client
	cmd := &cobra.Command{
		Use:     "list [RULE]",
		Short:   "List the overrides of a rule, or of all rules",
		Long:    "List the overrides of a rule, or of all rules. Idle ones have no effect, because their rule is gone.",
		Example: "  weir override list\n  weir override list calls --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			q := url.Values{}
			if len(args) > 0 {
				q.Set("rule", args[0])
			}
			for {
				var page overridesAnswer
				if err := c.ask(cmd, http.MethodGet, "/v1/overrides?"+q.Encode(), nil, &page); err != nil || page.Next == "" {
					return err
				}
				q.Set("after", page.Next)
			}
		},
	}
	c.flags(cmd)
	cmd.ValidArgsFunction = c.completeRules
	return cmd
}

func newOverrideRemove() *cobra.Command {
	var c client
	cmd := &cobra.Command{
		Use:     "rm RULE ATTRIBUTE=VALUE…",
		Short:   "Remove an override",
		Long:    "Remove an override, so that the rule's limit counts again. It is no error if the key has none.",
		Example: "  weir override rm calls customer=acme",
		Args:    cobra.MinimumNArgs(2),
	}
	return c.forKey(cmd, func(cmd *cobra.Command, query string) error {
		return c.tell(cmd, http.MethodDelete, "/v1/overrides"+query, nil, "removed")
	})
}

// pairsOf returns attributes as NAME=VALUE.
func pairsOf(attributes map[string]string) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		pairs = append(pairs, name+"="+attributes[name])
	}
	return strings.Join(pairs, " ")
}

func (o *overrideAnswer) print(w io.Writer) {
	fmt.Fprintf(w, "%s\t%s\tlimit %d", o.Rule, pairsOf(o.Attributes), o.Limit)
	if o.Burst > 0 {
		fmt.Fprintf(w, ", burst %d", o.Burst)
	}
	if o.Until != nil {
		fmt.Fprintf(w, ", until %s", o.Until.Format(time.RFC3339))
	}
	if o.Idle {
		fmt.Fprint(w, ", idle")
	}
	if o.By != "" {
		fmt.Fprintf(w, "\tby %s", o.By)
	}
	if o.Note != "" {
		fmt.Fprintf(w, "\t%s", o.Note)
	}
	fmt.Fprintln(w)
}

func (p *overridesAnswer) print(w io.Writer) {
	for i := range p.Overrides {
		p.Overrides[i].print(w)
	}
	if len(p.Overrides) == 0 {
		fmt.Fprintln(w, "no overrides")
	}
	if p.Degraded {
		fmt.Fprintln(w, "the store does not answer: there may be others")
	}
}

func newAudit() *cobra.Command {
	var c client
	n, until := 50, ""
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show who changed overrides, rules and counts",
		Long: `Show who set and removed overrides, who dropped what a rule has counted for a key, and which rules
were loaded or refused, newest first. The service keeps the newest 10,000 changes.`,
		Example: "  weir audit --n 10\n  weir audit --until 2026-11-20T12:00:00Z --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q := url.Values{"n": {strconv.Itoa(n)}}
			if until != "" {
				q.Set("until", until)
			}
			return c.ask(cmd, http.MethodGet, "/v1/audit?"+q.Encode(), nil, new(auditAnswer))
		},
	}
	c.flags(cmd)
	cmd.Flags().IntVar(&n, "n", n, "show at most so many, from 1 to 1000")
	cmd.Flags().StringVar(&until, "until", "", "the latest `instant`, such as 2026-11-20T12:00:00Z")
	return cmd
}

func (a *auditAnswer) print(w io.Writer) {
	for i := range a.Entries {
		e := &a.Entries[i]
		by := cmp.Or(strings.TrimSpace(e.Token+" "+e.Address), "weir")
		fmt.Fprintf(w, "%s\t%s\t%s\t%s", e.Time.Local().Format(time.DateTime), by, e.Action, strings.TrimSpace(e.Rule+" "+pairsOf(e.Attributes)))
		if len(e.Before) > 0 {
			fmt.Fprintf(w, "\tbefore %s", e.Before)
		}
		if len(e.After) > 0 {
			fmt.Fprintf(w, "\tafter %s", e.After)
		}
		fmt.Fprintln(w)
	}
	if len(a.Entries) == 0 {
		fmt.Fprintln(w, "no changes")
	}
	if a.Degraded {
		fmt.Fprintln(w, "the store does not answer: these are the changes of this instance only")
	}
}

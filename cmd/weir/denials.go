package main

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func newDenials() *cobra.Command {
	var c client
	var since string
	n := 50
	cmd := &cobra.Command{
		Use:        "denials [RULE] [ATTRIBUTE=VALUE…]",
		SuggestFor: []string{"why"},
		Short:      "Show why takes were denied in the last 24 hours",
		Long: `Show the denials of the last 24 hours and their reasons, newest first: of all rules, of
one rule, or of one key. To name a key, give all attributes in the per of its rule. Without a
rule, all rules are shown whose per has only attributes that are given. Denials during an outage
of the store have no key; they are shown as well, because they may concern this one.

The service keeps 10,000 denials of each rule, and ten a minute of each key.`,
		Example: "  weir denials posts-per-hour user=42\n  weir denials user=42 --since 2h\n  weir denials posts-per-hour --since 2026-11-20T12:00:00Z --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			rule := ""
			if len(args) > 0 && !strings.Contains(args[0], "=") {
				rule, args = args[0], args[1:]
			}
			q, err := keyQuery(rule, args, "n", "since")
			if err != nil {
				return err
			}
			q.Set("n", strconv.Itoa(n))
			if since != "" {
				q.Set("since", since)
			}
			return c.ask(cmd, http.MethodGet, "/v1/denials?"+q.Encode(), nil, new(denialsAnswer))
		},
	}
	c.flags(cmd)
	cmd.Flags().StringVar(&since, "since", "", "the earliest: a length of time before now, such as 90m, or an `instant`, such as 2026-11-20T12:00:00Z")
	cmd.Flags().IntVar(&n, "n", n, "show at most so many, from 1 to 1000")
	cmd.ValidArgsFunction = c.completeRules
	return cmd
}

// print prints the denials, and what is missing among them.
func (d *denialsAnswer) print(w io.Writer) {
	v := topView{zone: time.Local, layout: time.DateTime}
	for _, line := range v.table(d.Denials) {
		fmt.Fprintln(w, line)
	}
	if len(d.Denials) == 0 {
		fmt.Fprintln(w, "no denials")
	}
	if !d.Oldest.IsZero() {
		fmt.Fprintln(w, "the oldest denial that is kept:", v.clock(d.Oldest))
	}
	if d.Dropped > 0 {
		fmt.Fprintln(w, "not kept, because they were too many at a time: at most", d.Dropped)
	}
	if d.Degraded {
		fmt.Fprintln(w, "the store does not answer: these are the denials of this instance only")
	}
}

package main

import (
	"net/http"

	"github.com/spf13/cobra"
)

// newVerbs are the commands that ask for a decision.
func newVerbs() []*cobra.Command {
	return []*cobra.Command{
		newVerb("take", "/v1/take", "Ask whether an action may happen, and count it if so",
			"  weir take action=post user=42\n  weir take action=completion team=red tokens=1200"),
		newVerb("look", "/v1/check", "Ask whether an action may happen, and count nothing",
			"  weir look action=post user=42"),
		newVerb("record", "/v1/record", "Count an action whatever the limits",
			"  weir record page=/home --hits 3"),
		newVerb("refund", "/v1/refund", "Give the hits of an action back",
			"  weir refund action=post user=42\n  weir refund action=search ip=192.0.2.7 --feedback solved"),
	}
}

func newVerb(name, path, short, example string) *cobra.Command {
	var c client
	var ask request
	cmd := &cobra.Command{
		Use:     name + " ATTRIBUTE=VALUE…",
		Short:   short,
		Long:    short + ".\n\nExit status: 0 allowed, 3 denied.",
		Example: example,
		RunE: func(cmd *cobra.Command, args []string) error {
			attrs, err := attributes(args)
			if err != nil {
				return err
			}
			if ask.Feedback != "" && cmd.Flags().Changed("hits") {
				return &usageError{"--feedback gives back what the rules state: leave --hits out"}
			}
			ask.Attributes = attrs
			answer, err := c.call(cmd.Context(), http.MethodPost, path, &ask)
			if err != nil {
				return err
			}
			var d decision
			if err := c.show(cmd, answer, &d); err != nil {
				return err
			}
			if !d.Allowed {
				return errDenied
			}
			return nil
		},
	}
	c.flags(cmd)
	cmd.Flags().Int64Var(&ask.Hits, "hits", 1, "what the action costs; 0 checks and counts nothing")
	if name == "refund" {
		cmd.Flags().StringVar(&ask.Feedback, "feedback", "", "`NAME` of what has happened since: give back what the rules state for it, not hits")
	}
	return cmd
}

func newExplain() *cobra.Command {
	var c client
	var hits int64
	cmd := &cobra.Command{
		Use:     "explain ATTRIBUTE=VALUE…",
		Short:   "Say which rules match an action and why; count nothing",
		Example: "  weir explain action=post user=42",
		RunE: func(cmd *cobra.Command, args []string) error {
			attrs, err := attributes(args)
			if err != nil {
				return err
			}
			answer, err := c.call(cmd.Context(), http.MethodPost, "/v1/explain", request{Attributes: attrs, Hits: hits})
			if err != nil {
				return err
			}
			return c.show(cmd, answer, new(explanation))
		},
	}
	c.flags(cmd)
	cmd.Flags().Int64Var(&hits, "hits", 1, "what the action costs")
	return cmd
}

func newUsage() *cobra.Command {
	var c client
	cmd := &cobra.Command{
		Use:     "usage RULE ATTRIBUTE=VALUE…",
		Short:   "Show what a rule has counted for a key",
		Example: "  weir usage posts-per-hour user=42\n  weir usage page-views page=/home --json",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			query, err := keyQuery(args[0], args[1:])
			if err != nil {
				return err
			}
			answer, err := c.call(cmd.Context(), http.MethodGet, "/v1/usage"+query, nil)
			if err != nil {
				return err
			}
			return c.show(cmd, answer, new(usage))
		},
	}
	c.flags(cmd)
	return cmd
}

func newForget() *cobra.Command {
	var c client
	cmd := &cobra.Command{
		Use:     "forget RULE ATTRIBUTE=VALUE…",
		Short:   "Forget what a rule has counted for a key",
		Example: "  weir forget posts-per-hour user=42",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			query, err := keyQuery(args[0], args[1:])
			if err != nil {
				return err
			}
			_, err = c.call(cmd.Context(), http.MethodDelete, "/v1/usage"+query, nil)
			return err
		},
	}
	c.flags(cmd)
	return cmd
}

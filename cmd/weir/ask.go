package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"
)

func newTake() *cobra.Command {
	var check bool
	cmd := newVerb(verb{
		name: "take", offline: true,
		short: "Decide whether an action may happen, and count it if so",
		long: `Decide whether an action may happen, and count it if so. A denied action is not
charged to the limits. With --check, nothing is counted.

With --rules, the answer comes from a rules file without a service. Its counters
are empty.`,
		hits: "hits that the action costs; 0 checks, as --check does",
		example: `  weir take action=post user=42
  weir take action=completion team=red tokens=1200
  weir take --check action=post user=42
  weir take --rules rules.yaml action=post user=42   # without a service`,
		path: func() string {
			if check {
				return "/v1/check"
			}
			return "/v1/take"
		},
	}, new(request))
	cmd.Flags().BoolVar(&check, "check", false, "answer as a take would, but count nothing")
	return cmd
}

func newRecord() *cobra.Command {
	return newVerb(verb{
		name:    "record",
		short:   "Count an action that has happened, even past the limits",
		long:    "Count an action that has already happened, even past the limits.",
		hits:    "hits to count",
		example: "  weir record page=/home --hits 3",
		path:    func() string { return "/v1/record" },
	}, new(request))
}

func newRefund() *cobra.Command {
	body := new(request)
	cmd := newVerb(verb{
		name:  "refund",
		short: "Give back the hits of an action",
		long: `Give back the hits of an action, for example because it failed. Every rule that
matches gives back its newest hits, never more than it holds. With --feedback
each rule gives back the hits that it states for that name.`,
		hits: "hits to give back",
		example: `  weir refund action=post user=42
  weir refund action=search ip=192.0.2.7 --feedback solved`,
		path: func() string { return "/v1/refund" },
	}, body)
	cmd.Flags().StringVar(&body.Feedback, "feedback", "", "give back the hits that the rules state for `NAME`")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if body.Feedback != "" && cmd.Flags().Changed("hits") {
			return &usageError{"--feedback and --hits exclude each other: the rules state the hits of a feedback"}
		}
		return nil
	}
	return cmd
}

// verb describes a command that asks the service for a decision.
type verb struct {
	name, short, long, hits, example string

	path    func() string // of the API; called when the flags are known
	offline bool          // the command can ask a rules file
}

// newVerb returns the command for v. Its flags and arguments fill body.
func newVerb(v verb, body *request) *cobra.Command {
	var c client
	cmd := &cobra.Command{
		Use:     v.name + " ATTRIBUTE=VALUE…",
		Short:   v.short,
		Long:    v.long + "\n\nExit status: 0 allowed, 3 denied.",
		Example: v.example,
		RunE: func(cmd *cobra.Command, args []string) error {
			attrs, err := attributes(args)
			if err != nil {
				return err
			}
			body.Attributes = attrs
			var d decision
			if err := c.ask(cmd, http.MethodPost, v.path(), body, &d); err != nil {
				return err
			}
			if !d.Allowed {
				return errDenied
			}
			return nil
		},
	}
	c.flags(cmd)
	if v.offline {
		c.offline(cmd)
	}
	cmd.Flags().Int64Var(&body.Hits, "hits", 1, v.hits)
	body.Key.flag(cmd)
	cmd.ValidArgsFunction = c.completeAttributes
	return cmd
}

// idempotencyKey is the value of the flag --idempotency-key. It is empty if the flag is not given.
type idempotencyKey string

func (k *idempotencyKey) flag(cmd *cobra.Command) {
	cmd.Flags().Var(k, "idempotency-key", "count once for all calls with this `KEY` and the same arguments, within 10 minutes")
}

// String implements [pflag.Value].
func (k *idempotencyKey) String() string { return string(*k) }

// Type implements [pflag.Value].
func (*idempotencyKey) Type() string { return "string" }

// Set implements [pflag.Value]. An empty key, perhaps of a variable that is not set, would count each time.
func (k *idempotencyKey) Set(text string) error {
	if text == "" {
		return errors.New("want a key of 1 to 128 bytes")
	}
	*k = idempotencyKey(text)
	return nil
}

func newExplain() *cobra.Command {
	var c client
	var hits int64
	cmd := &cobra.Command{
		Use:        "explain ATTRIBUTE=VALUE…",
		SuggestFor: []string{"why"},
		Short:      "Show which rules match an action, and why; count nothing",
		Long: `Show which rules match an action, and why. Nothing is counted. With --rules, the
rules are those of a file, and no service is needed.`,
		Example: `  weir explain action=post user=42
  weir explain --rules rules.yaml action=post user=42`,
		RunE: func(cmd *cobra.Command, args []string) error {
			attrs, err := attributes(args)
			if err != nil {
				return err
			}
			return c.ask(cmd, http.MethodPost, "/v1/explain", request{Attributes: attrs, Hits: hits}, new(explanation))
		},
	}
	c.flags(cmd)
	c.offline(cmd)
	cmd.Flags().Int64Var(&hits, "hits", 1, "hits that the action costs")
	cmd.ValidArgsFunction = c.completeAttributes
	return cmd
}

func newUsage() *cobra.Command {
	var c client
	cmd := &cobra.Command{
		Use:   "usage RULE ATTRIBUTE=VALUE…",
		Short: "Show what a rule has counted for a key",
		Long: `Show what a rule has counted for a key. The attributes are those that make the
key: the rule's per. A counter also prints its history.`,
		Example: "  weir usage posts-per-hour user=42\n  weir usage page-views page=/home --json",
		Args:    cobra.MinimumNArgs(1),
	}
	return c.forKey(cmd, func(cmd *cobra.Command, query string) error {
		return c.ask(cmd, http.MethodGet, "/v1/usage"+query, nil, new(usage))
	})
}

// forKey completes cmd, whose arguments are a rule and the attributes of a key: it calls do with them as a query.
func (c *client) forKey(cmd *cobra.Command, do func(cmd *cobra.Command, query string) error) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		query, err := keyQuery(args[0], args[1:])
		if err != nil {
			return err
		}
		return do(cmd, "?"+query.Encode())
	}
	c.flags(cmd)
	cmd.ValidArgsFunction = c.completeRules
	return cmd
}

func newForget() *cobra.Command {
	var c client
	cmd := &cobra.Command{
		Use:     "forget RULE ATTRIBUTE=VALUE…",
		Short:   "Drop what a rule has counted for a key",
		Long:    "Drop what a rule has counted for a key, as if the key had never been used.",
		Example: "  weir forget posts-per-hour user=42",
		Args:    cobra.MinimumNArgs(1),
	}
	return c.forKey(cmd, func(cmd *cobra.Command, query string) error {
		return c.tell(cmd, http.MethodDelete, "/v1/usage"+query, nil, "forgotten")
	})
}

func newSet() *cobra.Command {
	var c client
	cmd := &cobra.Command{
		Use:   "set RULE HITS ATTRIBUTE=VALUE…",
		Short: "Set what a rule has counted for a key",
		Long: `Set what a rule has counted for a key, to correct it. All hits are dated now, so in a sliding
window they leave together.`,
		Example: "  weir set posts-per-hour 2 user=42",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			hits, err := strconv.ParseInt(args[1], 10, 64)
			if err != nil {
				return &usageError{fmt.Sprintf("%q: want a number of hits after the rule", args[1])}
			}
			attrs, err := attributes(args[2:])
			if err != nil {
				return err
			}
			return c.ask(cmd, http.MethodPost, "/v1/set", correction{args[0], attrs, &hits}, new(countSet))
		},
	}
	c.flags(cmd)
	cmd.ValidArgsFunction = c.completeRules
	return cmd
}

func newUnban() *cobra.Command {
	var c client
	cmd := &cobra.Command{
		Use:     "unban RULE ATTRIBUTE=VALUE…",
		Short:   "End the ban of a key",
		Long:    "End the ban of a key. Its holds and strikes stay. It is no error if the key is not banned.",
		Example: "  weir unban login-failures account=42",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			attrs, err := attributes(args[1:])
			if err != nil {
				return err
			}
			return c.ask(cmd, http.MethodPost, "/v1/unban", correction{args[0], attrs, nil}, new(banLifted))
		},
	}
	c.flags(cmd)
	cmd.ValidArgsFunction = c.completeRules
	return cmd
}

// correction is what set and unban send.
type correction struct {
	Rule       string            `json:"rule"`
	Attributes map[string]string `json:"attributes"`
	Hits       *int64            `json:"hits,omitempty"`
}

type countSet struct {
	Before int64 `json:"before"`
	Used   int64 `json:"used"`
}

func (c *countSet) print(w io.Writer) { fmt.Fprintf(w, "%d, was %d\n", c.Used, c.Before) }

type banLifted struct {
	Lifted bool `json:"lifted"`
}

func (b *banLifted) print(w io.Writer) {
	if !b.Lifted {
		fmt.Fprintln(w, "not banned")
	}
}

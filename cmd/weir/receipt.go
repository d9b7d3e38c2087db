package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
)

// errNotHeld sets the exit status of a call about a take that holds nothing any
// more. The answer is already printed.
var errNotHeld = errors.New("nothing was held")

func newSettle() *cobra.Command {
	return newEnding("settle", "End what a take holds, at its real cost",
		`End what a take holds, at its real cost. RECEIPT is the text that the take
printed. The attributes are those of the take, with the real amount of each
attribute that a rule sums. Without the amount, and without --hits, the cost is
the amount held. A higher cost counts in full, past the limit, too.`,
		"  weir settle MHw2iM7z… action=chat team=red tokens=640")
}

func newCancel() *cobra.Command {
	return newEnding("cancel", "Give back what a take counted",
		`Give back what a take counted, as if the take had not happened. RECEIPT is the
text that the take printed. The attributes and --hits are those of the take.`,
		"  weir cancel MHw2iM7z… action=chat team=red tokens=900")
}

func newRenew() *cobra.Command {
	return newEnding("renew", "Extend what a take holds",
		`Extend what a take holds: its length (hold, or the length of the window)
starts again now. RECEIPT is the text that the take printed. The attributes are
those of the take. If nothing is held any more, the worker has lost its slot.`,
		"  weir renew MHw2iM7z… action=export user=42 || exit")
}

// newEnding returns the command that sends a receipt to the path called as the
// command.
func newEnding(name, short, long, example string) *cobra.Command {
	var c client
	var hits int64
	var key idempotencyKey
	cmd := &cobra.Command{
		Use:     name + " RECEIPT ATTRIBUTE=VALUE…",
		Short:   short,
		Long:    long + "\n\nExit status: 0 done, 3 nothing was held any more, and nothing has changed.",
		Example: example,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.Contains(args[0], "=") {
				return &usageError{fmt.Sprintf("the first argument is %q: want the receipt that the take printed", args[0])}
			}
			attrs, err := attributes(args[1:])
			if err != nil {
				return err
			}
			body := ending{Receipt: args[0], Attributes: attrs, Key: key}
			if cmd.Flags().Changed("hits") {
				body.Hits = &hits
			}
			d := decision{ended: name}
			if err := c.ask(cmd, http.MethodPost, "/v1/"+name, body, &d); err != nil {
				return err
			}
			switch {
			case d.held():
				return nil
			case d.Degraded:
				return errors.New("the store did not answer: it may have the hold")
			}
			return errNotHeld
		},
	}
	c.flags(cmd)
	if name == "settle" {
		key.flag(cmd)
	}
	if name != "renew" {
		usage := "real cost in hits (default: the hits that are held)"
		if name == "cancel" {
			usage = "hits of the take (default 1)"
		}
		cmd.Flags().Int64Var(&hits, "hits", 0, usage)
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return cobra.NoFileCompletions(cmd, args, text)
		}
		return c.completeAttributes(cmd, args[1:], text)
	}
	return cmd
}

package main

import (
	"errors"
	"net/http"

	"github.com/spf13/cobra"
)

// errNotHeld sets the exit status of a call about a take that holds nothing any
// more. The answer is already printed.
var errNotHeld = errors.New("nothing was held")

func newSettle() *cobra.Command {
	return newEnding("settle", "End what a take holds, at its real cost",
		`End what a take holds, at its real cost. RECEIPT is that of the take, and the
attributes are those of the take, with the real amount of each sum. Without the
amount, and without --hits, the cost is what was held. More than was held counts
as well, past the limit.`,
		"  weir settle EHw2iM7z… action=chat team=red tokens=640")
}

func newCancel() *cobra.Command {
	return newEnding("cancel", "Give back what a take counted",
		`Give back what a take counted, as if it had not been. RECEIPT is that of the
take; the attributes and --hits are those of the take.`,
		"  weir cancel EHw2iM7z… action=chat team=red tokens=900")
}

func newRenew() *cobra.Command {
	return newEnding("renew", "Keep alive what a take holds",
		`Keep alive what a take holds: it ends as long after now as it would have ended
after the take. RECEIPT is that of the take, and the attributes are those of the
take. A worker whose renewal finds nothing has lost its place.`,
		"  weir renew EHw2iM7z… action=export user=42 || exit")
}

// newEnding returns the command that sends a receipt to the path called as the
// command.
func newEnding(name, short, long, example string) *cobra.Command {
	var c client
	var hits int64
	cmd := &cobra.Command{
		Use:     name + " RECEIPT ATTRIBUTE=VALUE…",
		Short:   short,
		Long:    long + "\n\nExit status: 0 done, 3 nothing was held any more; nothing has changed then.",
		Example: example,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			attrs, err := attributes(args[1:])
			if err != nil {
				return err
			}
			body := ending{Receipt: args[0], Attributes: attrs}
			if cmd.Flags().Changed("hits") {
				body.Hits = &hits
			}
			answer, err := c.call(cmd.Context(), http.MethodPost, "/v1/"+name, body)
			if err != nil {
				return err
			}
			d := decision{ended: name}
			if err := c.show(cmd, answer, &d); err != nil {
				return err
			}
			if !d.held() {
				return errNotHeld
			}
			return nil
		},
	}
	c.flags(cmd)
	if name != "renew" {
		cmd.Flags().Int64Var(&hits, "hits", 0, "hits, where they are not those of a take without --hits")
	}
	return cmd
}

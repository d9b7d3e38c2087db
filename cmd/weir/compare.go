package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/cmd/weir/internal/replay"
)

func newCompare() *cobra.Command {
	var f reportFlags
	most := ""
	examples := replay.DefaultExamples
	cmd := &cobra.Command{
		Use:   "compare OLD NEW [LOG…]",
		Short: "Compare two rules files on a log, decision by decision",
		Long: longLogs(`Replay logs through two rules files, each with its own counters, and report the
requests that are newly denied and newly allowed: by rule, by key, with examples.

Exit status: 0, or 1 if more than --max-newly-denied of all requests are newly
denied.`),
		Example: `  weir compare rules.yaml edited.yaml access.log
  weir compare --max-newly-denied 0.1% rules.yaml edited.yaml access.log.gz   # in CI`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			share := 1.0
			if most != "" {
				var err error
				if share, err = parseShare(most); err != nil {
					return &usageError{"--max-newly-denied: " + err.Error()}
				}
			}
			if inputs := slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg != "-" }); len(inputs) > 1 || len(inputs) == 1 && len(args) == 2 {
				return &usageError{"the standard input is named twice: name the files"}
			}
			before, err := rulesOf(cmd, args[0])
			if err != nil {
				return err
			}
			after, err := rulesOf(cmd, args[1])
			if err != nil {
				return err
			}
			c, err := measure(cmd, &f, args, args[2:], []*rules{before, after}, func(ctx context.Context, source replay.Source, options []replay.Option) (*replay.Comparison, error) {
				return replay.Compare(ctx, before.Set, after.Set, source, append(options, replay.WithExamples(examples))...)
			})
			if err == nil && float64(c.NewlyDenied) > share*float64(c.Requests) {
				err = fmt.Errorf("%d of %d requests are newly denied: more than --max-newly-denied %s", c.NewlyDenied, c.Requests, most)
			}
			return err
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&most, "max-newly-denied", "", "highest `share` of all requests that may be newly denied, such as 0.1%")
	cmd.Flags().IntVar(&examples, "examples", examples, "how many examples to list for each rule")
	return cmd
}

package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"

	"github.com/spf13/cobra"
)

func newExport() *cobra.Command {
	var c client
	period, format, after := "current", "ndjson", ""
	cmd := &cobra.Command{
		Use:   "export RULE",
		Short: "Print what a rule has counted for each of its keys",
		Long: `Print what a rule has counted for each of its keys: one line of JSON or CSV a key, with
its numbers at one instant. The column held has the hits of live holds, which are not
in used. In JSON the last line says whether that were all keys.

Counters in memory and in a data directory need "export: true" in the rule.

Exit status: 0 if the export is complete.`,
		Example: `  weir export tokens-per-month > now.ndjson
  weir export tokens-per-month --period last --format csv > invoice.csv`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			q := url.Values{"rule": {args[0]}, "period": {period}, "format": {format}}
			if after != "" {
				q.Set("after", after)
			}
			resp, err := c.send(cmd.Context(), http.MethodGet, "/v1/export?"+q.Encode(), nil)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			var end tail
			if _, err := io.Copy(io.MultiWriter(ofCallers(cmd.OutOrStdout()), &end), resp.Body); err != nil {
				return fmt.Errorf("the export was cut: %w", err)
			}
			// Some proxies drop the trailer.
			if resp.Trailer.Get("Weir-Complete") != "true" && (format != "ndjson" || !wholeExport.Match(end)) {
				return errors.New("the export is not complete")
			}
			return nil
		},
	}
	c.flags(cmd)
	_ = cmd.Flags().MarkHidden("json")
	cmd.Flags().StringVar(&period, "period", period, "current, or last: the calendar period that has ended last")
	cmd.Flags().StringVar(&format, "format", format, "ndjson or csv")
	cmd.Flags().StringVar(&after, "after", "", "go on where an earlier export of the rule has ended")
	cmd.ValidArgsFunction = c.completeRules
	return cmd
}

// wholeExport matches the end of a complete export in NDJSON. No line of a key begins like its last line.
var wholeExport = regexp.MustCompile(`(?m)^\{"complete":true,.*\}\n\z`)

// tail keeps the end of what is written to it, which has the last line of an export.
type tail []byte

func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	*t = (*t)[max(0, len(*t)-256):]
	return len(p), nil
}

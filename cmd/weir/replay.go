package main

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/cmd/weir/internal/replay"
	"github.com/weirhq/weir/rulefile"
)

func newReplay() *cobra.Command {
	var rules string
	var l logFlags
	var out outputFlags
	alone := true
	cmd := &cobra.Command{
		Use:   "replay --rules FILE [LOG…]",
		Short: "Replay a log through rules, on the log's own clock",
		Long: longLogs(`Replay logs through rules, on the logs' own clock, and report what the rules would
have done: what each rule matches, denies and decides, which keys it denies and
when, and which rules keep another one from denying.

The column decided has the requests whose outcome the rule set: of the rules that
deny a request, that is the first one in the file. The column alone has the requests
that a limit would deny if no other limit denied any. To measure it takes about as
much time again; --alone=false leaves it out.`),
		Example: `  weir replay --rules rules.yaml access.log.2.gz access.log
  weir replay --rules rules.yaml --format json --map user=.auth.sub --set action=login app.log
  zcat access.log.*.gz | weir replay --rules rules.yaml --json
  weir replay --rules rules.yaml --html report.html access.log`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if rules == "" {
				return &usageError{"--rules FILE is required"}
			}
			file, err := rulefile.Load(rules)
			if err != nil {
				return err
			}
			bar := newProgress(cmd.ErrOrStderr())
			source, err := l.read(cmd, args, bar)
			if err != nil {
				return err
			}
			ctx, stop := untilSignal(cmd)
			defer stop()
			options := []replay.Option{replay.WithTop(l.top), replay.WithProgress(bar.show)}
			if alone {
				options = append(options, replay.WithAlone())
			}
			if out.html != "" {
				options = append(options, replay.WithPeaks())
			}
			bar.start()
			report, err := replay.RunSource(ctx, file.Set, source, options...)
			bar.end()
			if report == nil || err != nil && report.Lines == 0 {
				return err
			}
			if err == nil {
				speed(cmd, report.Lines, bar.began)
			}
			return errors.Join(out.show(cmd, args, report, report.BadLines), stopped(err, report.Lines), l.checkBad(report.Lines, report.Bad, report.BadLines))
		},
	}
	cmd.Flags().StringVar(&rules, "rules", "", "rules `file`")
	l.add(cmd)
	out.add(cmd)
	cmd.Flags().BoolVar(&alone, "alone", alone, "measure what each limit denies alone")
	return cmd
}

// result is what a command that reads logs reports.
type result interface {
	WriteText(w io.Writer) error
	WriteTerminal(w io.Writer) error
}

// outputFlags are the flags for the form of a report.
type outputFlags struct {
	json bool
	html string // path of the page to write
}

func (o *outputFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.json, "json", false, "print the report as JSON")
	cmd.Flags().StringVar(&o.html, "html", "", "also write the report to `file`, as a page with charts that needs no network")
}

// show prints the result. Beside JSON, bad lines are printed as errors, too.
func (o *outputFlags) show(cmd *cobra.Command, args []string, r result, bad []replay.BadLine) error {
	if o.html != "" {
		if err := writePage(o.html, commandLine(cmd, args), r); err != nil {
			return err
		}
	}
	w := cmd.OutOrStdout()
	switch {
	case o.json:
		for _, line := range bad {
			if _, err := io.WriteString(cmd.ErrOrStderr(), line.String()+"\n"); err != nil {
				return err
			}
		}
		return json.NewEncoder(w).Encode(r)
	case isTerminal(w):
		return r.WriteTerminal(w)
	}
	return r.WriteText(w)
}

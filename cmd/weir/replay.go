package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/replay"
	"github.com/weirhq/weir/rulefile"
)

func newReplay() *cobra.Command {
	var rules, format string
	var asJSON bool
	top := replay.DefaultTop
	cmd := &cobra.Command{
		Use:   "replay --rules FILE [LOG…]",
		Short: "Replay an access log through rules, on the log's own clock",
		Long: `Replay access logs through rules, on the logs' own clock, and report what the
rules would have done. Logs are read in the order given. Without a LOG, or for
"-", the standard input is read. Logs may be packed with gzip. Lines that cannot
be read are counted and shown.

Each line is one request with the attributes ip, method, path (without the
query), query, status, bytes, referer, agent and host.`,
		Example: `  weir replay --rules rules.yaml access.log.2.gz access.log
  zcat access.log.*.gz | weir replay --rules rules.yaml --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if rules == "" {
				return &usageError{"--rules FILE is required"}
			}
			if format != "combined" {
				return &usageError{fmt.Sprintf("--format %q: want combined", format)}
			}
			file, err := rulefile.Load(rules)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				args = []string{"-"}
			}
			logs := make([]replay.Log, len(args))
			for i, name := range args {
				logs[i] = replay.File(name)
				if name == "-" {
					continue
				}
				if _, err := os.Stat(name); err != nil {
					return err // before any log is read
				}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			line := newProgressLine(cmd.ErrOrStderr())
			report, err := replay.Run(ctx, file.Set, logs, replay.WithTop(top), replay.WithProgress(line.show))
			line.end()
			if err != nil {
				if report == nil || report.Lines == 0 {
					return err
				}
				err = fmt.Errorf("%w; the report covers the %d lines before it", err, report.Lines)
			} else {
				line.done(report.Lines)
			}
			return errors.Join(showReport(cmd, report, asJSON), err)
		},
	}
	f := cmd.Flags()
	f.StringVar(&rules, "rules", "", "rules `file`")
	f.StringVar(&format, "format", "combined", "log `format`: combined, which includes the common format")
	f.BoolVar(&asJSON, "json", false, "print the report as JSON")
	f.IntVar(&top, "top", top, "how many denied keys to list for each rule")
	complete(cmd, "format", []string{"combined"})
	return cmd
}

// showReport prints the report. The JSON has no bad lines: they are printed as
// errors are.
func showReport(cmd *cobra.Command, report *replay.Report, asJSON bool) error {
	if !asJSON {
		return report.WriteText(cmd.OutOrStdout())
	}
	for _, bad := range report.BadLines {
		fmt.Fprintln(cmd.ErrOrStderr(), bad)
	}
	return json.NewEncoder(cmd.OutOrStdout()).Encode(report)
}

// progressLine shows the progress of a replay on one line of a terminal, a few
// times a second. It shows nothing elsewhere.
type progressLine struct {
	out      io.Writer
	terminal bool
	began    time.Time
	shown    time.Time
}

func newProgressLine(out io.Writer) *progressLine {
	p := &progressLine{out: out, began: time.Now()}
	if f, ok := out.(*os.File); ok {
		info, err := f.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

func (p *progressLine) show(at replay.Progress) {
	if now := time.Now(); p.terminal && now.Sub(p.shown) > 100*time.Millisecond {
		p.shown = now
		fmt.Fprintf(p.out, "\r\x1b[K%s: %d lines, %d bad", at.Log, at.Lines, at.Bad)
	}
}

// end clears the line.
func (p *progressLine) end() {
	if p.terminal {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

func (p *progressLine) done(lines int64) {
	took := time.Since(p.began)
	fmt.Fprintf(p.out, "%d lines in %v, %.0f a second\n", lines, took.Round(time.Millisecond), float64(lines)/took.Seconds())
}

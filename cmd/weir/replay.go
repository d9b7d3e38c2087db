package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirhq/weir/cmd/weir/internal/page"
	"github.com/weirhq/weir/cmd/weir/internal/replay"
	"github.com/weirhq/weir/cmd/weir/internal/server"
)

func newReplay() *cobra.Command {
	var from string
	var f reportFlags
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
		Example: `  weir replay --rules rules.yaml access.log*
  weir replay --rules rules.yaml --format json --map user=.auth.sub --set action=login app.log
  docker logs web | weir replay --rules rules.yaml --json
  weir replay --rules rules.yaml --html report.html access.log`,
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := requiredRules(cmd, from, args)
			if err != nil {
				return err
			}
			_, err = measure(cmd, &f, args, args, []*rules{file}, func(ctx context.Context, source replay.Source, options []replay.Option) (*replay.Report, error) {
				if alone {
					options = append(options, replay.WithAlone())
				}
				return replay.Run(ctx, file.Set, source, options...)
			})
			return err
		},
	}
	cmd.Flags().StringVar(&from, "rules", "", "rules `file`; - is the standard input")
	f.add(cmd)
	cmd.Flags().BoolVar(&alone, "alone", alone, "measure what each limit denies by itself")
	return cmd
}

// requiredRules loads the rules file of --rules, which is for the logs.
func requiredRules(cmd *cobra.Command, name string, logs []string) (*rules, error) {
	switch {
	case name == "":
		return nil, &usageError{"--rules FILE is required"}
	case name == "-" && (len(logs) == 0 || slices.Contains(logs, "-")):
		return nil, &usageError{"--rules - and the logs are both the standard input: name the logs, or the rules file"}
	}
	return rulesOf(cmd, name)
}

// result is what a command that reads logs reports.
type result interface {
	comparable
	Write(w io.Writer, graphs bool) error
	Read() (lines, bad int64, first []replay.BadLine, skipped int64)
}

// reportFlags are the flags of commands that report on logs.
type reportFlags struct {
	logFlags
	json bool
	html string // path of the page to write
}

func (f *reportFlags) add(cmd *cobra.Command) {
	f.logFlags.add(cmd)
	cmd.Flags().BoolVar(&f.json, "json", false, "print the report as JSON")
	cmd.Flags().StringVar(&f.html, "html", "", "also write the report to `file`, as a page with charts that needs no network")
}

// measure calls run with the logs called names, among the arguments args, and prints its
// result, which is about rules from files, even if run ends early. With JSON, bad lines are also printed as errors.
func measure[R result](cmd *cobra.Command, f *reportFlags, args, names []string, from []*rules, run func(context.Context, replay.Source, []replay.Option) (R, error)) (R, error) {
	var none R
	bar := newProgress(cmd.ErrOrStderr())
	source, err := f.read(cmd, names, bar)
	if err != nil {
		return none, err
	}
	ctx, stop := untilSignal(cmd)
	defer stop()
	options := []replay.Option{replay.WithTop(f.top), replay.WithProgress(bar.show)}
	if f.html != "" {
		options = append(options, replay.WithPeaks())
	}
	bar.start()
	r, err := run(ctx, source, options)
	bar.end()
	if _, unordered := errors.AsType[*replay.OrderError](err); unordered || r == none {
		return none, f.ordered(err, len(names))
	}
	lines, bad, first, skipped := r.Read()
	switch {
	case err != nil && lines == 0:
		return none, err
	case err != nil:
		err = fmt.Errorf("%w; the report covers the %s before it", err, plural(lines, "line"))
	default:
		took := time.Since(bar.began)
		fmt.Fprintf(cmd.ErrOrStderr(), "%s in %v, %.0f a second\n", plural(lines, "line"), took.Round(time.Millisecond), float64(lines)/took.Seconds())
	}
	return r, errors.Join(f.show(cmd, args, names, from, r, first), err, f.checkBad(lines, bad, first, skipped))
}

// show prints a result.
func (f *reportFlags) show(cmd *cobra.Command, args, names []string, from []*rules, r interface{ Write(io.Writer, bool) error }, bad []replay.BadLine) error {
	if f.html != "" {
		about := page.About{Command: commandLine(cmd, args), Version: server.Version(), Logs: names}
		for _, file := range from {
			about.Rules = append(about.Rules, page.RulesFile{Name: file.name, Hash: file.hash, Set: file.Set})
		}
		if err := writeReport(f.html, r, about); err != nil {
			return err
		}
	}
	w := cmd.OutOrStdout()
	if !f.json {
		return r.Write(w, isTerminal(w))
	}
	for _, line := range bad {
		fmt.Fprintln(cmd.ErrOrStderr(), line)
	}
	return json.NewEncoder(w).Encode(r)
}

// writeReport writes a report as an HTML file.
func writeReport(name string, r any, about page.About) error {
	var b bytes.Buffer
	if err := page.Report(&b, r, about); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.WriteFile(name, b.Bytes(), 0o644)
}

// commandLine returns the command line without the flags that name output files.
func commandLine(cmd *cobra.Command, args []string) string {
	words := []string{cmd.CommandPath()}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != "html" && f.Name != "json" {
			words = append(words, "--"+f.Name, strings.Trim(f.Value.String(), "[]"))
		}
	})
	return strings.Join(append(words, args...), " ")
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/cmd/weir/internal/logs"
	"github.com/weirhq/weir/cmd/weir/internal/replay"
	"github.com/weirhq/weir/rulefile"
)

// logFlags are the flags of commands that read logs.
type logFlags struct {
	spec, format, time, timeFormat, zone, separator string
	pattern                                         string
	year                                            int
	maps, sets, columns                             []string
	sort, maxBad                                    string
	mostBad                                         float64 // maxBad as a share
	merge                                           bool
	top                                             int
}

// logHelp describes logs for the help of commands.
const logHelp = `Requests are replayed in the order of their times. Logs are read one after the other,
the one with the earliest first line first, or all at the same time with --merge.
Lines that are out of order by up to --sort are sorted; if the order is worse, there
is no report, and the status is 2. Without a LOG, or for "-", the standard input is
read. Logs may be packed with gzip or zstd. Lines that cannot be read are counted and
shown; more than --max-bad of them end the command with status 1.

Formats:
`

const logFields = `
A line of an access log is one request with the attributes ip, method, path
(without the query), query, status, bytes, referer, agent and host. In the other
formats an attribute is the field of its name. --map user=.auth.sub takes the
attribute user from another field, and --set action=login sets an attribute in all
requests. A field can end in functions: "url|path" (without the query), "|query",
"|method" and "|url" (of a request line), "|ip" and "|host" (without the port),
"|first" and "|last" (of a list with commas), "|unescape" (%20), "|lower".
--log FILE reads all of this from YAML with the keys format, pattern, map, set,
time, time_format, timezone, year, columns and separator.`

// longLogs returns the long help of a command that reads logs.
func longLogs(text string) string { return text + "\n\n" + logHelp + logs.About() + logFields }

func (l *logFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&l.spec, "log", "", "YAML `file` that describes the logs; the flags below take precedence")
	f.StringVar(&l.format, "format", "", "log `format`: "+strings.Join(logs.Formats(), ", ")+" (default combined)")
	f.StringArrayVar(&l.maps, "map", nil, "`ATTRIBUTE=FIELD`: take an attribute from a field; can be repeated")
	f.StringArrayVar(&l.sets, "set", nil, "`ATTRIBUTE=VALUE`: set an attribute in all requests; can be repeated")
	f.StringVar(&l.pattern, "pattern", "", "regular `expression` for lines of any form; its named groups are the fields, and lines that it does not match are skipped")
	f.StringVar(&l.time, "time", "", "`field` with the time, or DATE+TIME for two fields (default: one of the usual names)")
	f.StringVar(&l.timeFormat, "time-format", "", "`form` of times: unix, unix_ms, unix_us, unix_ns, or a layout such as 2006-01-02 15:04:05 (default: recognised)")
	f.StringVar(&l.zone, "timezone", "", "time `zone` of times that have none (default UTC)")
	f.IntVar(&l.year, "year", 0, "`year` of the first time, if times have none (default: the latest in which it is not in the future)")
	f.StringSliceVar(&l.columns, "columns", nil, "`names` of the columns of CSV without a header")
	f.StringVar(&l.separator, "separator", "", "separator of columns in CSV: a `character` or tab (default a comma)")
	f.BoolVar(&l.merge, "merge", false, "read several logs at the same time, in the order of their times")
	f.StringVar(&l.sort, "sort", "1m", "sort lines that are out of order by up to this `time`; the lines of this time are kept in memory")
	f.StringVar(&l.maxBad, "max-bad", "1%", "highest `share` of lines that cannot be read")
	f.IntVar(&l.top, "top", replay.DefaultTop, "how many keys to list")
	complete(cmd, "format", logs.Formats())
}

// read returns the source that the flags and the arguments describe.
func (l *logFlags) read(cmd *cobra.Command, args []string, bar *progress) (replay.Source, error) {
	most, err := parseShare(l.maxBad)
	if err != nil {
		return nil, &usageError{"--max-bad: " + err.Error()}
	}
	l.mostBad = most
	spec, err := l.describe()
	if err != nil {
		return nil, err
	}
	format, err := spec.Compile()
	if err != nil {
		return nil, err
	}
	source := replay.Logs{Format: format, Merge: l.merge}
	if source.Sort, err = rulefile.ParseDuration(l.sort); err != nil {
		return nil, &usageError{"--sort: " + err.Error()}
	}
	if len(args) == 0 {
		args = []string{"-"}
	}
	for _, name := range args {
		source.Files = append(source.Files, replay.File(name, cmd.InOrStdin(), bar.read))
		if name == "-" {
			bar.total = -1
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return nil, err // before any log is read
		}
		if bar.total >= 0 {
			bar.total += info.Size()
		}
	}
	given := namesOf(source.Files)
	source.Files = source.ByTime(cmd.Context())
	if names := namesOf(source.Files); !slices.Equal(names, given) {
		fmt.Fprintln(cmd.ErrOrStderr(), "logs by the time of their first line:", strings.Join(names, ", "))
	}
	return source, nil
}

func namesOf(logs []replay.Log) (names []string) {
	for _, log := range logs {
		names = append(names, log.Name)
	}
	return names
}

// ordered returns err. If the lines of the logs are out of order, it adds the flag that helps.
func (l *logFlags) ordered(err error, files int) error {
	bad, ok := errors.AsType[*replay.OrderError](err)
	if !ok {
		return err
	}
	help := "--sort " + bad.Sort().String() + " sorts them"
	if files > 1 && !l.merge {
		help = "if these are logs of several servers, add --merge; " + help
	}
	return &usageError{err.Error() + ": the numbers would be wrong; " + help + ", with all lines of that time in memory"}
}

// describe returns the description of the logs.
func (l *logFlags) describe() (spec logs.Spec, err error) {
	if l.spec != "" {
		if spec, err = logs.Load(l.spec); err != nil {
			return spec, err
		}
	}
	for _, f := range []struct {
		name string
		args []string
		to   *map[string]string
	}{{"map", l.maps, &spec.Map}, {"set", l.sets, &spec.Set}} {
		all := maps.Clone(*f.to)
		if all == nil {
			all = map[string]string{}
		}
		for _, arg := range f.args {
			name, value, ok := strings.Cut(arg, "=")
			if !ok || name == "" {
				return spec, &usageError{fmt.Sprintf("--%s %q: want ATTRIBUTE=…", f.name, arg)}
			}
			all[name] = value
		}
		*f.to = all
	}
	for _, f := range []struct{ value, to *string }{{&l.format, &spec.Format}, {&l.time, &spec.Time}, {&l.timeFormat, &spec.TimeFormat}} {
		if *f.value != "" {
			*f.to = *f.value
		}
	}
	if l.pattern != "" {
		spec.Pattern = l.pattern
	}
	spec.Year = cmp.Or(l.year, spec.Year)
	if spec.Format == "" && spec.Pattern != "" {
		spec.Format = "pattern"
	}
	l.format = spec.Format // for hints
	if len(l.columns) > 0 {
		spec.Columns = l.columns
	}
	if l.separator != "" {
		if spec.Comma, err = logs.Separator(l.separator); err != nil {
			return spec, err
		}
	}
	if l.zone != "" {
		spec.Zone, err = logs.Zone(l.zone)
	}
	return spec, err
}

// checkBad returns an error if more lines are bad than --max-bad admits, or if there
// is no line at all.
func (l *logFlags) checkBad(lines, bad int64, list []replay.BadLine, skipped int64) error {
	switch {
	case lines == 0 && skipped > 0 && l.format == "pattern":
		return fmt.Errorf("the pattern matches none of the %d lines", skipped)
	case lines == 0 && skipped > 0:
		return fmt.Errorf("none of the %d lines of the logs is a request", skipped)
	case lines == 0:
		return errors.New("the logs are empty: no line was read")
	}
	if float64(bad) <= l.mostBad*float64(lines) {
		return nil
	}
	hint := "see --format"
	if len(list) > 0 && l.looks(&list[0]) != "" {
		hint = fmt.Sprintf("%s:%d looks like --format %s", list[0].Log, list[0].Line, l.looks(&list[0]))
	}
	return fmt.Errorf("%d of %s cannot be read: more than --max-bad %s; %s", bad, plural(lines, "line"), l.maxBad, hint)
}

// looks returns the format that a bad line seems to have, if it differs from the stated one.
func (l *logFlags) looks(line *replay.BadLine) string {
	switch format := l.format; {
	case strings.HasPrefix(line.Text, "#") && format == "":
		return "w3c"
	case albLine.MatchString(line.Text) && format != "alb":
		return "alb"
	case strings.HasPrefix(line.Text, "{") && format == "":
		return "json"
	case accessLine.MatchString(line.Text) && format != "" && format != "combined":
		return "combined"
	case strings.Contains(filepath.Base(line.Log), ".csv") && format != "csv":
		return "csv"
	}
	return ""
}

// albLine matches the start of a line of a load balancer.
var albLine = regexp.MustCompile(`^(https?|h2|grpcs|wss?) \d{4}-\d\d-\d\dT\S+Z app/`)

// accessLine matches the start of a line of an access log.
var accessLine = regexp.MustCompile(`^\S+ \S+ \S+ (\S+ )?\[[^]]+\] "`)

// parseShare parses a share such as 0.1% or 0.001.
func parseShare(text string) (float64, error) {
	number, isPercent := strings.CutSuffix(strings.TrimSpace(text), "%")
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if isPercent {
		n /= 100
	}
	if err != nil || !(n >= 0 && n <= 1) {
		return 0, fmt.Errorf("%q: want a share such as 0.1%%", text)
	}
	return n, nil
}

// untilSignal returns a context that ends with the program.
func untilSignal(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
}

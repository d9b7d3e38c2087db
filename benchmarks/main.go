// Command benchmarks measures weir, its peers and the raw costs in one run, and prints the tables as one Markdown
// document, or writes them as the results and the page for users.
//
//	go run . [-quick] [-only hot,million] [-rounds 3] [-images DIR] [-results FILE -page FILE]
//
// The sections are, in this order: hot, million, cores, collector, accuracy, engine, interfaces, envoy, stopped, grpc,
// resp, redis, batched, unbatched, postgres, cold, growth, expiry, rolling, matching, windows, replay. A full run takes about
// twenty minutes on two idle cores. -quick takes seconds and only checks that everything works; its numbers are
// meaningless.
//
// The program starts weir, redis-server, redis-benchmark, wrk and PostgreSQL. It runs in its folder.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/benchmarks/internal/measure"
)

func main() {
	err := measure.Try(func() {
		if !child() {
			measure.Check(run(os.Args[1:], os.Stdout, os.Stderr))
		}
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchmarks:", err)
		os.Exit(1)
	}
}

// section is one table of the document.
type section struct {
	name    string
	measure func(settings) *table
}

func sections() []section {
	return []section{
		{"hot", hot}, {"million", million}, {"cores", cores}, {"collector", collector}, {"accuracy", accuracy}, {"engine", engine},
		{"interfaces", interfaces}, {"envoy", envoy}, {"stopped", stopped}, {"grpc", grpcTakes}, {"resp", resp},
		{"redis", overRedis}, {"batched", batched}, {"unbatched", unbatched}, {"postgres", overPostgres},
		{"cold", cold}, {"growth", growth}, {"expiry", expiry}, {"rolling", rolling}, {"matching", matching}, {"windows", windows},
		{"replay", replay},
	}
}

// settings determine how much is measured, and gather what was found.
type settings struct {
	rounds int
	slice  time.Duration // of one measurement of one row in one round
	settle time.Duration // of the traffic before a measurement with many keys
	keys   int           // of the tables with many keys
	grown  int           // keys of the tables that grow

	arrivals int           // of a trace
	window   time.Duration // of the keys that expire
	light    time.Duration // of the traffic that follows

	pointers int           // in the heap during the calls that are timed
	open     time.Duration // of an open loop
	load     time.Duration // of calls to a service
	lines    int           // of a log

	progress io.Writer
	found    found
	folder   string    // for programs and files; it is removed at the end
	ends     *[]func() // run at the end of the section

	// The charts stay in memory until the run has ended, so that a run that fails does not mix its charts with those
	// of another run. nil: there are no charts.
	images map[string]string
	run    string // the run's mark, which is in the page and in each image

	began   time.Time
	command string // that repeats the run
	before  string // the load just before the run
}

var full = settings{
	rounds: 3, slice: 150 * time.Millisecond, settle: time.Second, keys: 1_000_000, grown: 10_000_000,
	arrivals: 200_000, window: 2 * time.Second, light: 6 * time.Second,
	pointers: 2_000_000, open: 2 * time.Second, load: 2 * time.Second, lines: 400_000,
}

var quick = settings{
	rounds: 1, slice: 2 * time.Millisecond, settle: 2 * time.Millisecond, keys: 10_000, grown: 100_000,
	arrivals: 5000, window: 50 * time.Millisecond, light: 20 * time.Millisecond,
	pointers: 10_000, open: 20 * time.Millisecond, load: 20 * time.Millisecond, lines: 1000,
}

// few returns the minimum number of turns of tables that take seconds to measure, and whose numbers depend on
// what the system does in one turn.
func (s settings) few() int { return max(s.rounds, 3) }

// found has the numbers of a run that the page and the texts of tables refer to, by section, row and column. A
// number that was not measured is absent.
type found map[cell]float64

// cell is the position of a number.
type cell struct{ section, row, column string }

// at returns a number of the run, or NaN.
func (f found) at(section, row, column string) float64 {
	if n, ok := f[cell{section, row, column}]; ok {
		return n
	}
	return measure.None()
}

func run(args []string, out, progress io.Writer) error {
	flags := flag.NewFlagSet("benchmarks", flag.ContinueOnError)
	flags.SetOutput(progress)
	fast := flags.Bool("quick", false, "take seconds, for tests; the numbers mean nothing")
	only := flags.String("only", "", "sections to measure, separated by commas; default: all")
	rounds := flags.Int("rounds", 0, "rounds of every row; 0 is the default")
	images := flags.String("images", "", "`folder` for the charts; default: no charts")
	page := flags.String("page", "", "`file` to write the page for users to, after all sections were measured; default: print the tables")
	results := flags.String("results", "", "`file` to write all tables to, with -page")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) { // the help is printed
		return nil
	} else if err != nil {
		return err
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	if *page != "" && *only != "" {
		return errors.New("-page needs all sections; leave out -only")
	}
	if (*page == "") != (*results == "") {
		return errors.New("-page and -results are from one run; give both")
	}
	s := full
	if *fast {
		s = quick
	}
	if *rounds > 0 {
		s.rounds = *rounds
	}
	s.progress, s.found, s.ends = progress, found{}, new([]func())
	s.began, s.command, s.before = time.Now(), command(flags), load()
	s.run = s.began.UTC().Format(timeFormat)
	if *images != "" {
		s.images = map[string]string{}
	}
	if s.folder, err = os.MkdirTemp("", "bench-peers-*"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(s.folder) }() // the system cleans its folder for temporary files

	var tables []*table
	var failed error
	for i, c := range chosen {
		fmt.Fprintf(progress, "%6.0f s  %s (%d of %d)\n", time.Since(s.began).Seconds(), c.name, i+1, len(chosen))
		var t *table
		err := measure.Try(func() { t = c.measure(s) })
		for _, end := range slices.Backward(*s.ends) {
			end()
		}
		if *s.ends = nil; err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", c.name, err))
			t = &table{Title: c.name, text: fmt.Sprintf("Not measured: %v.", err)}
		}
		tables = append(tables, t)
	}
	fmt.Fprintf(progress, "%6.0f s  done\n", time.Since(s.began).Seconds())
	facts := s.facts(tables)
	if *page == "" {
		fmt.Fprint(out, s.render("tables", facts))
		return errors.Join(failed, writeImages(*images, s.images))
	}
	if failed != nil {
		return fmt.Errorf("the page is as it was: %w", failed)
	}
	err = writeImages(*images, s.images)
	for _, f := range []struct{ name, part string }{{*results, "results"}, {*page, "page"}} {
		err = errors.Join(err, os.WriteFile(f.name+".next", []byte(s.render(f.part, facts)), 0o644))
	}
	if err != nil {
		return err
	}
	// Both are replaced whole.
	return errors.Join(os.Rename(*results+".next", *results), os.Rename(*page+".next", *page))
}

// command returns the make command that repeats the run. make itself sets -images, -results and -page.
func command(flags *flag.FlagSet) string {
	var given []string
	flags.Visit(func(f *flag.Flag) {
		if f.Name != "images" && f.Name != "page" && f.Name != "results" {
			given = append(given, "-"+f.Name+"="+f.Value.String())
		}
	})
	if len(given) == 0 {
		return "make bench-peers"
	}
	return fmt.Sprintf("make bench-peers PEERS=%q", strings.Join(given, " "))
}

// choose returns the sections that a comma-separated list names.
func choose(only string) (chosen []section, err error) {
	if only == "" {
		return sections(), nil
	}
	var names []string
	all := sections()
	for _, s := range all {
		names = append(names, s.name)
	}
	for name := range strings.SplitSeq(only, ",") {
		i := slices.Index(names, name)
		if i < 0 {
			return nil, fmt.Errorf("-only: no section %q; want some of %s", name, strings.Join(names, ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// draw stores a chart, if the run has charts, and returns its path in the results.
func (s settings) draw(name string, c chart) string {
	if s.images == nil || len(c.bars) == 0 {
		return ""
	}
	s.images[name] = c.svg("run of " + s.run)
	return "../docs/images/" + name
}

// writeImages writes the charts into a folder.
func writeImages(folder string, images map[string]string) (err error) {
	for name, image := range images {
		err = errors.Join(err, os.MkdirAll(folder, 0o755), os.WriteFile(filepath.Join(folder, name), []byte(image), 0o644))
	}
	return err
}

// later runs f at the end of the section.
func (s settings) later(f func()) { *s.ends = append(*s.ends, f) }

// weir returns the path of the program weir, which is built once.
func (s settings) weir() string {
	path := filepath.Join(s.folder, "weir")
	if _, err := os.Stat(path); err != nil {
		if out, err := exec.Command("go", "build", "-C", "../cmd/weir", "-o", path, ".").CombinedOutput(); err != nil {
			measure.Check(fmt.Errorf("go build: %w\n%s", err, out))
		}
	}
	return path
}

// file writes a file into the folder of the run and returns its path.
func (s settings) file(name, text string) string {
	path := filepath.Join(s.folder, name)
	measure.Check(os.WriteFile(path, []byte(text), 0o644))
	return path
}

// Command benchmarks measures weir, its peers and the raw costs in one run, and
// prints the tables as one Markdown document, or writes them as a page.
//
//	go run . [-quick] [-only hot,million] [-rounds 3] [-images DIR] [-page FILE]
//
// The sections are, in this order: hot, million, cores, collector, accuracy, engine,
// doors, envoy, stopped, grpc, resp, redis, company, apart, cold, growth, expiry, rolling, matching, windows, replay. A full run
// takes about twenty minutes on two idle cores. -quick takes seconds and only
// shows that everything works. Its numbers mean nothing.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/benchmarks/peer"
	"github.com/weirhq/weir/benchmarks/report"
)

func main() {
	if err := begin(); err != nil {
		fmt.Fprintln(os.Stderr, "benchmarks:", err)
		os.Exit(1)
	}
}

// begin does what main does, and returns an error.
func begin() error {
	if row := os.Getenv(coldRow); row != "" {
		return coldMain(row)
	}
	if log := os.Getenv(floorLog); log != "" {
		return floorMain(log)
	}
	if err := calm(); err != nil {
		return err
	}
	return run(os.Args[1:], os.Stdout, os.Stderr)
}

// coldMain runs a row of the section cold. row has the number of keys, the nanosecond at
// which the process was started, and the name of the peer.
func coldMain(row string) error {
	parts := strings.SplitN(row, ",", 3)
	if len(parts) < 3 {
		return fmt.Errorf("%s: %q", coldRow, row)
	}
	keys, err := strconv.Atoi(parts[0])
	began, err2 := strconv.ParseInt(parts[1], 10, 64)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	return coldChild(parts[2], keys, time.Unix(0, began))
}

// section is one table of the document.
type section struct {
	name    string
	measure func(settings) (*report.Table, error)
}

func sections() []section {
	return []section{
		{"hot", hot}, {"million", million}, {"cores", cores}, {"collector", collector}, {"accuracy", accuracy},
		{"engine", engine}, {"doors", doors}, {"envoy", envoy}, {"stopped", stopped}, {"grpc", grpcTakes}, {"resp", resp}, {"redis", redis}, {"company", company}, {"apart", apart}, {"cold", cold}, {"growth", growth}, {"expiry", expiry},
		{"rolling", rolling}, {"matching", matching}, {"windows", windows}, {"replay", replay},
	}
}

func run(args []string, out, progress io.Writer) (err error) {
	flags := flag.NewFlagSet("benchmarks", flag.ContinueOnError)
	flags.SetOutput(progress)
	fast := flags.Bool("quick", false, "take seconds, for tests; the numbers mean nothing")
	only := flags.String("only", "", "sections to measure, separated by commas; default: all")
	rounds := flags.Int("rounds", 0, "rounds of every row; 0 is the default")
	images := flags.String("images", "", "`folder` for the charts; default: no charts")
	file := flags.String("page", "", "`file` to write the page to, after all sections were measured; default: print the tables")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp): // the help is printed
		return nil
	case err != nil:
		return err
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	if *file != "" && *only != "" {
		return errors.New("-page needs all sections; leave out -only")
	}
	s := full()
	if *fast {
		s = quick()
	}
	if *rounds > 0 {
		s.rounds = *rounds
	}
	m := report.Machine{
		Began: time.Now(), Command: command(flags), Redis: redisVersion(), Rounds: s.rounds, Priority: priority(),
		Modules: peer.Modules(), Absent: peer.Absent(), Load: [2]string{report.Load(), ""},
	}
	s.progress, s.found, s.tools = progress, found{}, &tools{}
	s.charts = &charts{folder: *images, run: "run of " + m.Began.UTC().Format("2006-01-02 15:04:05 UTC"), images: map[string]string{}}
	defer func() { err = errors.Join(err, s.tools.close()) }()

	var tables []*report.Table
	var failed error
	for i, c := range chosen {
		fmt.Fprintf(progress, "%6.0f s  %s (%d of %d)\n", time.Since(m.Began).Seconds(), c.name, i+1, len(chosen))
		t, err := c.measure(s)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", c.name, err))
			t = &report.Table{Title: c.name, Text: fmt.Sprintf("Not measured: %v.", err)}
		}
		tables = append(tables, t)
	}
	m.Took, m.Load[1] = time.Since(m.Began), report.Load()
	fmt.Fprintf(progress, "%6.0f s  done\n", m.Took.Seconds())

	if *file == "" {
		m.Head(out)
		for _, t := range tables {
			t.Write(out)
		}
		return errors.Join(failed, s.charts.write())
	}
	if failed != nil {
		return fmt.Errorf("the page is as it was: %w", failed)
	}
	var text strings.Builder
	page(&text, m, tables, s.found)
	return errors.Join(s.charts.write(), writePage(*file, text.String()))
}

// command returns the make command that repeats the run. make itself sets -images and
// -page.
func command(flags *flag.FlagSet) string {
	var given []string
	flags.Visit(func(f *flag.Flag) {
		if f.Name != "images" && f.Name != "page" {
			given = append(given, "-"+f.Name+"="+f.Value.String())
		}
	})
	if len(given) == 0 {
		return "make bench-peers"
	}
	return fmt.Sprintf("make bench-peers PEERS=%q", strings.Join(given, " "))
}

// choose returns the sections that a comma-separated list names.
func choose(only string) ([]section, error) {
	if only == "" {
		return sections(), nil
	}
	var chosen []section
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(sections(), func(s section) bool { return s.name == name })
		if i < 0 {
			var names []string
			for _, s := range sections() {
				names = append(names, s.name)
			}
			return nil, fmt.Errorf("-only: no section %q; want some of %s", name, strings.Join(names, ", "))
		}
		chosen = append(chosen, sections()[i])
	}
	return chosen, nil
}

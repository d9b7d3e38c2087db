// Command benchmarks measures weir, its peers and the raw costs in one run, and
// prints the tables as one Markdown document.
//
//	go run . [-quick] [-only hot,million] [-rounds 3] [-images DIR]
//
// The sections are, in this order: hot, million, engine, rolling, accuracy,
// expiry, growth, redis, company. A full run takes about ten minutes on two idle cores.
// -quick takes seconds and only shows that everything works. Its numbers mean
// nothing.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/benchmarks/peer"
	"github.com/weirhq/weir/benchmarks/report"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "benchmarks:", err)
		os.Exit(1)
	}
}

// settings determine how much is measured.
type settings struct {
	rounds int
	slice  time.Duration // of one measurement of one row in one round
	keys   int           // of the tables with many keys
	grown  int           // keys of the tables that grow

	arrivals int           // of a trace
	window   time.Duration // of the keys that expire
	light    time.Duration // of the traffic that follows

	images   string // folder for the charts; empty: none
	progress io.Writer
}

func full() settings {
	return settings{
		rounds: 3, slice: 150 * time.Millisecond, keys: 1_000_000, grown: 10_000_000,
		arrivals: 200_000, window: 2 * time.Second, light: 6 * time.Second,
	}
}

func quick() settings {
	return settings{
		rounds: 1, slice: 2 * time.Millisecond, keys: 10_000, grown: 100_000,
		arrivals: 5000, window: 50 * time.Millisecond, light: 20 * time.Millisecond,
	}
}

// section is one table of the document.
type section struct {
	name    string
	measure func(settings) (*report.Table, error)
}

func sections() []section {
	return []section{
		{"hot", hot}, {"million", million}, {"engine", engine}, {"rolling", rolling},
		{"accuracy", accuracy}, {"expiry", expiry}, {"growth", growth}, {"redis", redis}, {"company", company},
	}
}

func run(args []string, out, progress io.Writer) error {
	flags := flag.NewFlagSet("benchmarks", flag.ContinueOnError)
	flags.SetOutput(progress)
	fast := flags.Bool("quick", false, "take seconds, for tests; the numbers mean nothing")
	only := flags.String("only", "", "sections to measure, separated by commas; default: all")
	rounds := flags.Int("rounds", 0, "rounds of every row; 0 is the default")
	images := flags.String("images", "", "`folder` for the charts; default: no charts")
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
	s := full()
	if *fast {
		s = quick()
	}
	if *rounds > 0 {
		s.rounds = *rounds
	}
	s.images, s.progress = *images, progress

	start := time.Now()
	var tables []*report.Table
	var failed error
	for _, c := range chosen {
		fmt.Fprintf(progress, "%6.0f s  %s\n", time.Since(start).Seconds(), c.name)
		t, err := c.measure(s)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", c.name, err))
			t = &report.Table{Title: c.name, Text: fmt.Sprintf("Not measured: %v.", err)}
		}
		tables = append(tables, t)
	}
	fmt.Fprintf(progress, "%6.0f s  done\n", time.Since(start).Seconds())

	report.Head(out, start, command(flags), redisVersion(), s.rounds, peer.Modules(), peer.Absent())
	for _, t := range tables {
		t.Write(out)
	}
	return failed
}

// command returns the make command that repeats the run. make itself sets -images.
func command(flags *flag.FlagSet) string {
	var given []string
	flags.Visit(func(f *flag.Flag) {
		if f.Name != "images" {
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
			return nil, fmt.Errorf("-only: no section %q; want hot, million, engine, rolling, accuracy, expiry, growth, redis or company", name)
		}
		chosen = append(chosen, sections()[i])
	}
	return chosen, nil
}

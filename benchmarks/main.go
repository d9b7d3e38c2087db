// Command benchmarks measures weir beside its peers and the raw costs, in one
// run, and prints the tables as one Markdown document.
//
//	go run . [-quick] [-only hot,million] [-rounds 3] [-images DIR]
//
// It knows these sections, in this order: hot, million, engine, rolling,
// accuracy, expiry, growth, redis. A full run takes about ten minutes on two
// cores that have nothing else to do. -quick takes seconds and shows only that
// everything works: its numbers are worth nothing.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/benchmarks/measure"
	"github.com/weirhq/weir/benchmarks/peer"
	"github.com/weirhq/weir/benchmarks/report"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "benchmarks:", err)
		os.Exit(1)
	}
}

// settings are how much is measured.
type settings struct {
	rounds int
	slice  time.Duration // of one measurement of one row in one round
	keys   int           // of the tables with many
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
		{"accuracy", accuracy}, {"expiry", expiry}, {"growth", growth}, {"redis", redis},
	}
}

func run(args []string, out, progress io.Writer) error {
	flags := flag.NewFlagSet("benchmarks", flag.ContinueOnError)
	flags.SetOutput(progress)
	fast := flags.Bool("quick", false, "take seconds, for tests; the numbers are worth nothing")
	only := flags.String("only", "", "sections to measure, with commas; all when empty")
	rounds := flags.Int("rounds", 0, "rounds of every row; 0 means the default")
	images := flags.String("images", "", "folder to write the charts to; none when empty")
	if err := flags.Parse(args); err != nil {
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
	for _, c := range chosen {
		fmt.Fprintf(progress, "%6.0f s  %s\n", time.Since(start).Seconds(), c.name)
		t, err := c.measure(s)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		tables = append(tables, t)
	}
	fmt.Fprintf(progress, "%6.0f s  done\n", time.Since(start).Seconds())

	command := strings.TrimSpace("make bench-peers " + strings.Join(shown(args), " "))
	report.Head(out, start, command, redisVersion(), s.rounds, peer.Modules(), peer.Absent())
	for _, t := range tables {
		t.Write(out)
	}
	return nil
}

// choose is the sections with the names in a list with commas.
func choose(only string) ([]section, error) {
	if only == "" {
		return sections(), nil
	}
	var chosen []section
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(sections(), func(s section) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-only: no section %q; want hot, million, engine, rolling, accuracy, expiry, growth or redis", name)
		}
		chosen = append(chosen, sections()[i])
	}
	return chosen, nil
}

// shown is how the command is told to make, which sets -images itself.
func shown(args []string) []string {
	var rest []string
	for i := 0; i < len(args); i++ {
		if strings.HasPrefix(args[i], "-images") {
			if !strings.Contains(args[i], "=") {
				i++
			}
			continue
		}
		rest = append(rest, args[i])
	}
	if len(rest) == 0 {
		return nil
	}
	return []string{`PEERS="` + strings.Join(rest, " ") + `"`}
}

// draw writes a chart, where charts are wanted, and returns what the document
// calls it.
func (s settings) draw(name string, c report.Chart) (string, error) {
	if s.images == "" || len(c.Bars) == 0 {
		return "", nil
	}
	if err := os.MkdirAll(s.images, 0o755); err != nil {
		return "", err
	}
	f, err := os.Create(filepath.Join(s.images, name))
	if err != nil {
		return "", err
	}
	if err := c.Write(f); err != nil {
		_ = f.Close() // the first error says more
		return "", err
	}
	return "images/" + name, f.Close()
}

// start makes a peer; an error says which one.
func start(p peer.Peer, c peer.Config) (peer.Limiter, error) {
	l, err := p.New(c)
	if err != nil {
		return l, fmt.Errorf("%s: %w", p.Name, err)
	}
	return l, nil
}

// started are the limiters of a section that keeps all of them until its end.
type started []peer.Limiter

func (s *started) start(p peer.Peer, c peer.Config) (peer.Limiter, error) {
	l, err := start(p, c)
	if err == nil {
		*s = append(*s, l)
	}
	return l, err
}

func (s *started) stop() {
	for _, l := range *s {
		l.Stop()
	}
}

// ours says that a row is weir's.
func ours(name string) bool {
	return strings.HasPrefix(name, "weir") || strings.HasPrefix(name, "Engine") || strings.HasSuffix(name, "Limiter.Allow")
}

// reference is the number that ratios are taken of.
func reference(peers []peer.Peer, numbers []measure.Numbers, column int) float64 {
	for i, p := range peers {
		if p.Reference {
			return numbers[i][column]
		}
	}
	return measure.None()
}

// label is a row's name, marked when ratios are taken of it.
func label(p peer.Peer) string {
	if p.Reference {
		return report.Bold(p.Name)
	}
	return p.Name
}

// notes are the settings of the peers that had a choice.
func notes(peers []peer.Peer) (list []string) {
	for _, p := range peers {
		if p.Note != "" {
			list = append(list, p.Name+": "+p.Note+".")
		}
	}
	return list
}

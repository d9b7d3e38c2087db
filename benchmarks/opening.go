package main

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"

	"github.com/weirhq/weir/benchmarks/peer"
	"github.com/weirhq/weir/benchmarks/report"
)

// opening writes what a user gets, in the numbers of the run. A line whose numbers
// were not measured is left out.
func opening(f found) string {
	var b strings.Builder
	line := func(format string, numbers ...any) {
		if text := fmt.Sprintf(format, numbers...); !strings.Contains(text, "–") && !strings.Contains(text, "NaN") {
			fmt.Fprintf(&b, "- %s\n", text)
		}
	}
	ns := func(section, row, column string) string { return report.Number(f.at(section, row, column)) }
	line("**Never over the quota.** A sliding window admits at most **%.3f ×** the quota in any window, on every trace. The other limiters admit up to %.3f × ([accuracy](#accuracy)).",
		f.at("accuracy", "weir sliding, precision 100 (default)", "over"), f.worst())
	line("**A decision in memory takes %s ns** for one hot key in an exact sliding window, %s ns in a bucket and %s ns in a fixed window, with the numbers left, the wait and the reset in the answer, and without an allocation. "+
		"A denial takes %s ns ([hot key](#one-hot-key-in-memory)).",
		ns("hot", inMotion, "one"), ns("hot", bucketRow, "one"), ns("hot", fixedRow, "one"), ns("hot", slidingRow, "denied"))
	line("**A million keys take %s MB**, and one garbage collection on one core takes %s ms with them, beside %s ms without. With one x/time limiter for each key they take %s MB and %s ms ([a million keys](#a-million-keys-in-memory)).",
		report.Number(f.at("million", bucketRow, "bytes")), ns("million", bucketRow, "gc"), ns("million", "", "gc"),
		report.Number(f.at("million", "x/time/rate in a sync.Map", "bytes")), ns("million", "x/time/rate in a sync.Map", "gc"))
	line("**All %d cores together** make %s million decisions a second on a million keys (zipf, bucket), and %s million denials of one hot key ([several cores](#several-cores)).",
		runtime.NumCPU(), report.Number(1e3/f.at("cores zipf", bucketRow, "all")), report.Number(1e3/f.at("cores denied", bucketRow, "all")))
	line("**Beside a working garbage collector** the 99th percentile of a call is %s, and that of an empty call %s ([open loop](#calls-while-the-garbage-collector-works)).",
		report.Time(f.at("gc", exactRow, "p99")), report.Time(f.at("gc", "raw: an empty call", "p99")))
	line("**A million decisions cost** %s s of processor time in the library, %s s over HTTP, %s s through koala's calls, and %s s over Redis with the time of Redis included ([doors](#processor-time-of-decisions-through-each-door)).",
		ns("doors", engineDoor, "CPU"), ns("doors", takeDoor, "CPU"), ns("doors", koalaDoor, "CPU"), ns("doors", redisDoor, "CPU"))
	line("**Over Redis** 64 callers get %s decisions a second in a sliding window, %s × the rate of a script that only counts ([Redis](#over-redis)).",
		ns("redis", slidingRow, "64"), report.Ratio(f.at("redis", slidingRow, "ratio")))
	line("**The service** answers %s takes a second, %s × the rate of a handler that does nothing.", ns("doors", takeDoor, "calls"), report.Ratio(f.at("service", takeDoor, "rate")))
	line("**A fresh process** takes its first hit of each of a million keys in %s ns, the slowest of these calls in %s ([start](#a-process-that-has-just-started)).",
		ns("cold", bucketRow, "first"), report.Time(f.at("cold", bucketRow, "slowest")))
	line("**Replay** reads %s lines of a log in a second of processor time, through five rules ([replay](#replay)).", ns("replay", fiveRules, "rate"))
	return b.String()
}

// worst returns the most that a limiter other than weir admits.
func (f found) worst() float64 {
	worst := math.NaN()
	for _, p := range peer.Accuracy() {
		if n := f.at("accuracy", p.Name, "over"); !p.IsOurs() && !(n <= worst) {
			worst = n
		}
	}
	return worst
}

// losses writes which limiters are faster than weir.
func losses(f found) string {
	var b strings.Builder
	for _, c := range []struct{ title, section, column, ours, name string }{
		{"One hot key, admitted", "hot", "one", inMotion, "exact sliding window"},
		{"One hot key, admitted", "hot", "one", bucketRow, "bucket"},
		{"One hot key, denied", "hot", "denied", bucketRow, "bucket"},
		{"A million keys, zipf", "million", "one", bucketRow, "bucket"},
		{"A million keys, zipf", "million", "one", exactRow, "exact sliding window"},
	} {
		ours := f.at(c.section, c.ours, c.column)
		if math.IsNaN(ours) {
			continue
		}
		type loss struct {
			name string
			ns   float64
		}
		var faster []loss
		for _, p := range peer.Hot() {
			if n := f.at(c.section, p.Name, c.column); p.Kind != peer.Cost && !p.IsRaw() && !p.IsOurs() && n < ours {
				faster = append(faster, loss{p.Name, n})
			}
		}
		slices.SortFunc(faster, func(a, b loss) int { return cmp.Compare(a.ns, b.ns) })
		var names []string
		for _, l := range faster {
			names = append(names, fmt.Sprintf("%s (%s)", l.name, report.Number(l.ns)))
		}
		if len(names) == 0 {
			names = []string{"none"}
		}
		fmt.Fprintf(&b, "- %s: weir's %s takes %s ns. Faster are: %s.\n", c.title, c.name, report.Number(ours), strings.Join(names, ", "))
	}
	return b.String()
}

package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/weirhq/weir/benchmarks/report"
)

// aim is a number to reach.
type aim struct {
	measure, want string

	// reached returns the number as text, and whether it is good enough. A number
	// that was not measured is NaN, which no comparison reaches.
	reached func(f found) (text string, enough bool)
}

// at returns a number of the run, or NaN.
func (f found) at(section, row, column string) float64 {
	if n, ok := f[place{section, row, column}]; ok {
		return n
	}
	return math.NaN()
}

// The names of rows that the aims and the page's opening refer to.
const (
	rawHot      = "raw: xsync lookup + time.Since + GCRA by CAS"
	rawMillion  = "raw: 256 mutex + map shards, GCRA"
	inMotion    = "weir sliding, exact, in motion"
	exactRow    = "weir sliding, exact"
	readsRow    = "raw: 45 bytes of new memory, three reads"
	slidingRow  = "weir sliding"
	bucketRow   = "weir bucket"
	fixedRow    = "weir fixed"
	oneLimiter  = "Limiter.Allow"
	oneRule     = "Engine, 1 rule"
	threeRules  = "Engine, 3 rules, all match"
	threeFloor  = "floor: 3 rules written in the program"
	takeDoor    = "HTTP, POST /v1/take"
	limiterDoor = "library, Limiter"
	engineDoor  = "library, Engine with one rule"
	redisDoor   = "library, Engine with one rule, over Redis"
	koalaDoor   = "koala, /rule/browse"
	fiveRules   = "five rules"
)

// times returns a ratio as text.
func times(n float64) string { return report.Ratio(n) + " ×" }

// aims returns the aims, in the order of the page.
func aims() []aim {
	return append([]aim{
		{"one hot key, sliding exact, in motion", "≤ 1.9 × raw", atMost(1.9, hotRatio(inMotion, "one", rawHot))},
		{"the same beside x/time and RussellLuo in a sync.Map", "below both", func(f found) (string, bool) {
			ours, other := f.at("hot", inMotion, "one"), math.Min(f.at("hot", "x/time/rate in a sync.Map", "one"), f.at("hot", "RussellLuo/slidingwindow in a sync.Map", "one"))
			return fmt.Sprintf("%s ns, the faster of them %s", report.Number(ours), report.Number(other)), ours < other
		}},
		{"CL.THROTTLE by redis-benchmark, 50 connections, beside INCR of Redis", "≥ 1 ×", func(f found) (string, bool) {
			r := f.at("resp", throttleRow, "one") / f.at("resp", redisINCR, "one")
			return times(r), r >= 1
		}},
		{"the same, 16 at once", "≥ 1 ×", func(f found) (string, bool) {
			r := f.at("resp", throttleRow, "sixteen") / f.at("resp", redisINCR, "sixteen")
			return times(r), r >= 1
		}},
		{"one hot key, bucket", "≤ 1.5 × raw", atMost(1.5, hotRatio(bucketRow, "one", rawHot))},
		{"one hot key, fixed", "≤ 1.5 × raw", atMost(1.5, hotRatio(fixedRow, "one", rawHot))},
		{"one hot key, denied, sliding", "≤ 1.4 × raw's denial", atMost(1.4, hotRatio(slidingRow, "denied", rawHot))},
		{"one hot key, denied, bucket", "≤ 1.4 × raw's denial", atMost(1.4, hotRatio(bucketRow, "denied", rawHot))},
		{"one hot key, denied, fixed", "≤ 1.4 × raw's denial", atMost(1.4, hotRatio(fixedRow, "denied", rawHot))},
		{"the same on all cores, gain over one: sliding", gainWant, gain("denied", slidingRow, rawHot)},
		{"bucket", gainWant, gain("denied", bucketRow, rawHot)},
		{"fixed", gainWant, gain("denied", fixedRow, rawHot)},
		{"a million keys, zipf, bucket", "≤ 1.3 × raw", atMost(1.3, millionRatio(bucketRow))},
		{"a million keys, zipf, fixed", "≤ 1.3 × raw", atMost(1.3, millionRatio(fixedRow))},
		{"a million keys, zipf, sliding exact", "≤ 1.5 × raw", atMost(1.5, millionRatio(exactRow))},
		{"the same on all cores, gain over one: bucket", gainWant, gain("zipf", bucketRow, rawMillion)},
		{"fixed", gainWant, gain("zipf", fixedRow, rawMillion)},
		{"sliding exact", gainWant, gain("zipf", exactRow, rawMillion)},
		{"bytes a key: bucket, fixed, sliding; sliding with 3 hits", "≤ 48; ≤ 64", func(f found) (string, bool) {
			one := max(f.at("million", bucketRow, "bytes"), f.at("million", fixedRow, "bytes"), f.at("million", exactRow, "bytes"))
			three := f.at("million", exactRow+", 3 hits a key", "bytes")
			return fmt.Sprintf("%.0f; %.0f", one, three), one <= 48 && three <= 64
		}},
		{"allocations of a call", "0", func(f found) (string, bool) {
			n := max(f.at("hot", inMotion, "allocations"), f.at("hot", bucketRow, "allocations"), f.at("engine", threeRules, "allocations"))
			return report.Number(math.Round(n)), math.Round(n) == 0
		}},
		{"one collection on one core with a million keys, over one of an empty heap", "≤ 1 ms", func(f found) (string, bool) {
			n := max(f.at("million", bucketRow, "gc over"), f.at("million", fixedRow, "gc over"), f.at("million", exactRow, "gc over"))
			return report.Number(max(0, n)) + " ms", n <= 1
		}},
		{"Engine, one rule, over a Limiter", "≤ 1.4 ×", atMost(1.4, func(f found) float64 { return f.at("engine", oneRule, "ns") / f.at("engine", oneLimiter, "ns") })},
		{"Engine, three rules, over one", "≤ 1.9 ×", func(f found) (string, bool) {
			one := f.at("engine", oneRule, "ns")
			n := f.at("engine", threeRules, "ns") / one
			return fmt.Sprintf("%s; the three rules written in the program %s", times(n), times(f.at("engine", threeFloor, "ns")/one)), n <= 1.9
		}},
		{"Engine, 10,000 rules beside 10", "≤ 2 ×", atMost(2, func(f found) float64 {
			return f.at("engine", "Engine, 10,000 rules, one matches by equality", "ns") / f.at("engine", "Engine, 10 rules, one matches by equality", "ns")
		})},
		{"growing to ten million keys: calls over 1 ms in which the thread ran, in the turn with fewest", "0", pauses("busy", "most busy")},
		{"ten million keys expire: calls over 1 ms, in the turn with fewest", "0", pauses("slow expiring", "most slow expiring")},
		{"a million keys expired: memory left", "≤ 5 %", func(f found) (string, bool) {
			n := max(f.at("expiry", bucketRow, "left"), f.at("expiry", fixedRow, "left"), f.at("expiry", exactRow, "left"))
			return report.Share(n), n <= 0.05
		}},
		{"`rolling`: Add", "≤ 1.2 × raw", atMost(1.2, func(f found) float64 { return f.at("rolling", "weir rolling.Window", "ratio") })},
		{"`POST /v1/take`, 32 connections: calls a second", "≥ 0.85 × an empty handler", func(f found) (string, bool) {
			n := f.at("service", takeDoor, "rate")
			return times(n), n >= 0.85
		}},
		{"the same: processor time over the empty handler", "≤ 4 µs", func(f found) (string, bool) {
			n := f.at("service", takeDoor, "over")
			return report.Number(n) + " µs", n <= 4
		}},
		{"takes over gRPC that share a stream, 64 callers", "≥ 5 × a call for each", func(f found) (string, bool) {
			n := f.at("grpc", streamTake, "unary")
			return fmt.Sprintf("%s; without deciding %s", times(n), times(f.at("grpc", floorTake, "unary"))), n >= 5
		}},
		{"Envoy's calls, one descriptor, 64 callers: calls a second", "≥ 0.8 × an empty handler", func(f found) (string, bool) {
			n := f.at("envoy", oneDesc, "rate")
			return times(n), n >= 0.8
		}},
		{"the same: processor time over the empty handler; p99", "≤ 10 µs; ≤ 1.3 ×", func(f found) (string, bool) {
			over, p99 := f.at("envoy", oneDesc, "over"), f.at("envoy", oneDesc, "p99")
			return fmt.Sprintf("%s µs; %s", report.Number(over), times(p99)), over <= 10 && p99 <= 1.3
		}},
		{"ten descriptors, in time of one", "≤ 1.5 ×", func(f found) (string, bool) {
			n := f.at("envoy", oneDesc, "rate") / f.at("envoy", tenDescs, "rate")
			return fmt.Sprintf("%s; without deciding %s", times(n), times(f.at("envoy", emptyCall, "rate")/f.at("envoy", emptyTen, "rate"))), n <= 1.5
		}},
		{"over Redis, one descriptor: calls a second", "≥ 0.6 × an empty handler", func(f found) (string, bool) {
			n := f.at("envoy", oneOnRedis, "rate")
			return times(n), n >= 0.6
		}},
		{"2,000 of Envoy's calls a second, p99.9: in memory; over Redis", "< 3 ms; < 5 ms", func(f found) (string, bool) {
			memory, redis := f.at("envoy", oneDesc, "open"), f.at("envoy", oneOnRedis, "open")
			return fmt.Sprintf("%s; %s; the empty handler %s", report.Time(memory), report.Time(redis), report.Time(f.at("envoy", emptyCall, "open"))), memory < 3e6 && redis < 5e6
		}},
		{"the same while Redis is paused or killed: calls without an answer within Envoy's time-out", "0", func(f found) (string, bool) {
			n := 0.0
			for _, timeout := range stoppedTimeouts {
				for _, way := range stoppedWays {
					n += f.at("stopped", fmt.Sprint(way.name, " ", timeout.store), "failed")
				}
			}
			return report.Number(n), n == 0
		}},
		{"replay, five rules: lines a processor second", "≥ 1,200,000", func(f found) (string, bool) {
			n := f.at("replay", fiveRules, "rate")
			return report.Number(n), n >= 1_200_000
		}},
		{"most hits admitted in any window, sliding, all traces", "1.000 × the quota", func(f found) (string, bool) {
			n := f.at("accuracy", "weir sliding, precision 100 (default)", "over")
			return fmt.Sprintf("%.3f ×", n), n <= 1
		}},
	}, redisAims()...)
}

// atMost returns an aim that a ratio of at most most reaches.
func atMost(most float64, ratio func(found) float64) func(found) (string, bool) {
	return func(f found) (string, bool) {
		n := ratio(f)
		return times(n), n <= most
	}
}

func hotRatio(row, column, raw string) func(found) float64 {
	return func(f found) float64 { return f.at("hot", row, column) / f.at("hot", raw, column) }
}

func millionRatio(row string) func(found) float64 {
	return func(f found) float64 { return f.at("million", row, "one") / f.at("million", rawMillion, "one") }
}

// pauses returns an aim that the rows of weir reach if they have a turn without such
// calls. A pause that the table makes itself comes in every turn.
func pauses(fewest, most string) func(found) (string, bool) {
	return func(f found) (string, bool) {
		n := f.at("growth", bucketRow, fewest) + f.at("growth", exactRow, fewest)
		return fmt.Sprintf("%s; at most %s in a turn, reads of memory %s", report.Number(n),
			report.Number(max(f.at("growth", bucketRow, most), f.at("growth", exactRow, most))), report.Number(f.at("growth", readsRow, most))), n == 0
	}
}

// gainWant is what the cores of a machine can give: not more than they give to code
// that does almost nothing.
const gainWant = "≥ 1.8 ×, or 0.9 of raw's gain"

// gain returns an aim that a row reaches if it gains enough from all cores.
func gain(section, row, raw string) func(found) (string, bool) {
	return func(f found) (string, bool) {
		n, limit := f.at("cores "+section, row, "gain"), f.at("cores "+section, raw, "gain")
		return fmt.Sprintf("%s, raw %s", times(n), times(limit)), n >= 1.8 || n >= 0.9*limit
	}
}

// aimTable judges a run.
func aimTable(f found) *report.Table {
	t := &report.Table{
		Title: "Aims, and what was reached",
		Text: "The numbers are from the tables below. *raw* is the row in bold of a table: code that a program would write itself, without bounds on memory, expiry of keys or a detailed answer. " +
			"*zipf* is traffic in which some keys are much more frequent than others.",
		Head: []string{"measure", "aim", "reached", ""},
	}
	for _, a := range aims() {
		text, enough := a.reached(f)
		verdict := "missed"
		switch {
		case strings.Contains(text, "–") || strings.Contains(text, "NaN"):
			text, verdict = "–", "not measured"
		case enough:
			verdict = "reached"
		}
		t.Row(a.measure, a.want, text, verdict)
	}
	return t
}

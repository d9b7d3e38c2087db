package main

import (
	"fmt"
	"io"
	"time"

	"github.com/weirhq/weir/benchmarks/measure"
)

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

	pointers int           // in the heap beside the calls that are timed
	open     time.Duration // of an open loop
	load     time.Duration // of calls to a service
	lines    int           // of a log

	progress io.Writer
	found    found
	charts   *charts
	tools    *tools
}

func full() settings {
	return settings{
		rounds: 3, slice: 150 * time.Millisecond, settle: time.Second, keys: 1_000_000, grown: 10_000_000,
		arrivals: 200_000, window: 2 * time.Second, light: 6 * time.Second,
		pointers: 2_000_000, open: 2 * time.Second, load: 2 * time.Second, lines: 400_000,
	}
}

func quick() settings {
	return settings{
		rounds: 1, slice: 2 * time.Millisecond, settle: 2 * time.Millisecond, keys: 10_000, grown: 100_000,
		arrivals: 5000, window: 50 * time.Millisecond, light: 20 * time.Millisecond,
		pointers: 10_000, open: 20 * time.Millisecond, load: 20 * time.Millisecond, lines: 1000,
	}
}

// shortTurns is the least number of turns of tables that take seconds to measure, and whose
// numbers depend on what the system does in one turn.
const shortTurns = 3

// eachTurn is how many slices of one core and of all cores one round measures in turns.
// A single slice of all cores depends too much on chance: while another program runs on
// a core, goroutines wait for the locks of the goroutine that was running there.
const eachTurn = 3

// turns returns the medians of eachTurn calls of f.
func turns(f func() measure.Numbers) measure.Numbers {
	return measure.Rounds(eachTurn, []func() measure.Numbers{f})[0]
}

// inTurns returns the sentence that tables have about these turns.
func (s settings) inTurns() string {
	return fmt.Sprintf("The numbers of one core and of all are medians of %d slices of %v in turns, in each round.", eachTurn, s.slice)
}

// settled returns the sentence that tables have about settle. A bucket of 100 a minute forgets
// a hit after 0.6 s. Without the traffic before, luck decided whether the keys that were
// used once expired all together inside of a measurement.
func (s settings) settled() string {
	return fmt.Sprintf("The same traffic runs for %v before it is measured, so that buckets have forgotten the keys that it does not use.", s.settle)
}

// found has the numbers of a run that the page's opening and its aims refer to,
// by section, row and column. A number that was not measured is absent.
type found map[place]float64

// place is where a number stands.
type place struct{ section, row, column string }

// keep adds the numbers of a row, in the order of the columns.
func (f found) keep(section, row string, numbers []float64, columns ...string) {
	for i, column := range columns {
		f[place{section, row, column}] = numbers[i]
	}
}

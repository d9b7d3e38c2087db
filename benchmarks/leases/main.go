// Command leases drills leases: it runs processes that share a limit over a real store, with a load and faults, and audits
// every admission.
//
//	go run ./leases             # all drills, four minutes
//	go run ./leases -only surge # those whose names begin with it
//
// An admission from memory is dated by the reading of the clock that decided it, and one by the store
// by the readings before and after the call: the audit counts it in the windows that it is certainly in.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/weirhq/weir/benchmarks/internal/measure"
)

// line is one result.
type line struct {
	name, aim, measured string
	ok                  bool
}

func main() {
	if text, is := isNode(); is {
		measure.Check(runNode(text))
		return
	}
	only := flag.String("only", "", "run the drills whose `names` begin with one of these, separated by commas")
	flag.Parse()
	missed := 0
	for _, d := range drills {
		if !chosen(d.name, *only) {
			continue
		}
		for _, l := range run(d) {
			mark := "reached"
			if !l.ok {
				mark = "MISSED"
				missed++
			}
			fmt.Printf("%-20s | %-7s | %s | %s\n", l.name, mark, l.aim, l.measured)
		}
	}
	if missed > 0 {
		os.Exit(1)
	}
}

func chosen(name, only string) bool {
	for prefix := range strings.SplitSeq(only, ",") {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// run runs one drill in a directory in memory, if the machine has one.
func run(dr named) (lines []line) {
	parent := ""
	if _, err := os.Stat("/dev/shm"); err == nil {
		parent = "/dev/shm"
	}
	dir, err := os.MkdirTemp(parent, "weir-drill")
	measure.Check(err)
	defer func() { _ = os.RemoveAll(dir) }() // the system cleans its folder for temporary files
	d := &drill{dir: dir, room: 4 << 20}
	defer d.end()
	return dr.run(d, dr.name)
}

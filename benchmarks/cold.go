package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/benchmarks/measure"
	"github.com/weirhq/weir/benchmarks/peer"
	"github.com/weirhq/weir/benchmarks/report"
)

// coldRow names the environment variable that makes the program one row of the
// section cold: a fresh process that takes a hit for each of many keys.
const coldRow = "WEIR_BENCHMARKS_COLD"

// coldStart is what a fresh process tells about itself.
type coldStart struct {
	First   time.Duration // from the start of the process to the answer of the first call
	Fill    time.Duration // of the calls for all keys
	Slow    time.Duration // the slowest of them
	Again   time.Duration // of as many calls for the same keys
	Resided float64       // bytes of the process
	Most    float64
}

// coldChild measures one row in this process, which has just started.
func coldChild(name string, keys int, began time.Time) error {
	var subject peer.Peer
	for _, p := range coldPeers() {
		if p.Name == name {
			subject = p
		}
	}
	if subject.New == nil {
		return fmt.Errorf("%s: no row %q", coldRow, name)
	}
	l, err := start(subject, scarce())
	if err != nil {
		return err
	}
	defer l.Stop()
	all := measure.NewKeys(keys + 1)
	base, _ := measure.Resident(os.Getpid())
	var r coldStart
	l.Allow(all.At(uint32(keys)))
	r.First = time.Since(began)
	start := time.Now()
	last := start
	for i := range keys {
		l.Allow(strings.Clone(all.At(uint32(i))))
		now := time.Now()
		r.Slow = max(r.Slow, now.Sub(last))
		last = now
	}
	r.Fill = time.Since(start)
	start = time.Now()
	for i := range keys {
		l.Allow(all.At(uint32(i)))
	}
	r.Again = time.Since(start)
	now, most := measure.Resident(os.Getpid())
	r.Resided, r.Most = now-base, most-base
	return json.NewEncoder(os.Stdout).Encode(r)
}

// coldPeers returns the limiters of the section.
func coldPeers() []peer.Peer {
	idle := peer.Peer{Name: "raw: an empty call", Kind: peer.Cost, New: func(peer.Config) (peer.Limiter, error) {
		return peer.Limiter{Allow: func(string) bool { return true }}, nil
	}}
	return append([]peer.Peer{idle}, peer.CrowdedMillion()...)
}

// cold measures processes that have just started.
func cold(s settings) (*report.Table, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	peers := coldPeers()
	var failed error
	var jobs []func() measure.Numbers
	for _, p := range peers {
		jobs = append(jobs, func() measure.Numbers {
			var r coldStart
			cmd := exec.Command(program)
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d,%d,%s", coldRow, s.keys, time.Now().UnixNano(), p.Name))
			out, err := cmd.Output()
			if err == nil {
				err = json.Unmarshal(out, &r)
			}
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s: %w", p.Name, err))
			}
			n := float64(s.keys)
			return measure.Numbers{float64(r.Fill) / n, float64(r.Again) / n, float64(r.Slow), r.Resided / n, r.Most / n, float64(r.First)}
		})
	}
	numbers := measure.Rounds(s.rounds, jobs)
	if failed != nil {
		return nil, failed
	}
	t := &report.Table{
		Title: "A process that has just started",
		Text: fmt.Sprintf("A fresh process takes a hit for each of %s keys, one after the other, on one goroutine. *first call*, *again*: nanoseconds per call for keys that are new, and for the same keys once more; "+
			"both include reading the clock or the copy of the key. *memory*: bytes a key that the process has got more from the system at the end, and at most meanwhile, garbage included. "+
			"*first answer*: from the start of the process.", report.Number(float64(s.keys))),
		Head:  []string{"", "first call", "again", "slowest call", "memory", "at most", "first answer"},
		Notes: notes(peers),
	}
	for i, p := range peers {
		n := numbers[i]
		t.Row(p.Name, report.Number(n[0]), report.Number(n[1]), report.Time(n[2]), report.Number(max(0, n[3])), report.Number(max(0, n[4])), report.Time(n[5]))
		s.found.keep("cold", p.Name, n, "first", "again", "slowest", "memory", "most")
	}
	more, err := s.ready()
	t.More = append(t.More, more)
	return t, err
}

// ready measures how long the service takes until it accepts connections.
func (s settings) ready() (*report.Table, error) {
	var list strings.Builder
	for i := range s.keys {
		fmt.Fprintf(&list, "user-%d\n", i)
	}
	path, err := s.tools.file("blocked.txt", list.String())
	if err != nil {
		return nil, err
	}
	rows := []struct{ name, rules string }{
		{"weir serve, one rule", doorRules},
		{fmt.Sprintf("weir serve, a list of %s lines", report.Number(float64(s.keys))), `lists:
  blocked: {file: ` + strconv.Quote(path) + `}
rules:
  - {name: posts, when: {action: post, user: "*"}, per: [user], limit: 1000000, window: 1h}
  - {name: blocked, when: {user: {in: blocked}}, then: deny}
`},
	}
	var failed error
	var jobs []func() measure.Numbers
	for _, row := range rows {
		jobs = append(jobs, func() measure.Numbers {
			service, err := s.tools.serve(row.rules)
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s: %w", row.name, err))
				return make(measure.Numbers, 2)
			}
			now, _ := measure.Resident(service.PID())
			_ = service.Stop() // it was running
			return measure.Numbers{float64(service.Ready), now}
		})
	}
	numbers := measure.Rounds(s.rounds, jobs)
	t := &report.Table{
		Title: "The service, until it accepts calls", Text: "From the start of the process to its first connection, and its memory then.",
		Head: []string{"", "until ready", "memory, MB"},
	}
	for i, row := range rows {
		t.Row(row.name, report.Time(numbers[i][0]), report.Number(numbers[i][1]/1e6))
	}
	return t, failed
}

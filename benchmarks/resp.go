package main

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"strconv"

	"github.com/weirhq/weir/benchmarks/measure"
	"github.com/weirhq/weir/benchmarks/report"
)

// respCommand is one row: a command of redis-benchmark and the server that answers it.
type respCommand struct {
	name    string
	redis   bool // Redis answers it
	command []string
}

// respCommands returns the rows. PING is what the protocol costs alone: weir's parser
// answers a constant.
func respCommands() []respCommand {
	return []respCommand{
		{redisINCR, true, []string{"INCR", "key:__rand_int__"}},
		{"Redis, PING", true, []string{"PING"}},
		{throttleRow, false, []string{"CL.THROTTLE", "key:__rand_int__", "15", "30", "60"}},
		{"weir, WEIR.TAKE", false, []string{"WEIR.TAKE", "action", "post", "user", "u__rand_int__"}},
		{"weir, PING: the parser alone", false, []string{"PING"}},
	}
}

const (
	// leastTurns is the least number of turns. One row differs from another by less than
	// one turn from the next.
	leastTurns = 5

	redisINCR   = "Redis, INCR"
	throttleRow = "weir, CL.THROTTLE"
)

// pipelines are the numbers of commands that redis-benchmark sends at once.
var pipelines = []int{1, 16}

// resp measures weir's Redis protocol beside Redis, with redis-benchmark.
func resp(s settings) (*report.Table, error) {
	t := &report.Table{
		Title: "The Redis protocol, beside Redis",
		Text: "Commands a second of `redis-benchmark -c 50 -r 100000`, and microseconds of the server's processor time for a command. " +
			"Each number is the median of at least five turns. redis-benchmark runs on the same cores. weir counts in memory; `CL.THROTTLE` and `WEIR.TAKE` decide, `INCR` adds one.",
		Head: []string{"", "one at a time", "µs", "16 at once (`-P 16`)", "µs"},
	}
	path, err := exec.LookPath("redis-benchmark")
	server, err2 := measure.StartRedis()
	if err2 == nil {
		defer server.Stop()
	}
	if err := errors.Join(err, err2); err != nil {
		t.Text, t.Head = fmt.Sprintf("Not measured: %v.", err), nil
		return t, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	door := l.Addr().String()
	if err := l.Close(); err != nil {
		return nil, err
	}
	service, err := s.tools.serve(doorRules, "--resp-listen", door)
	if err != nil {
		return nil, err
	}
	defer func() { _ = service.Stop() }() // it was running

	var failed error
	var jobs []func() measure.Numbers
	for _, c := range respCommands() {
		addr, pid := door, service.PID()
		if c.redis {
			addr, pid = server.Addr, server.PID()
		}
		jobs = append(jobs, func() measure.Numbers {
			var all measure.Numbers
			for _, p := range pipelines {
				rate, cpu, err := redisBenchmark(s, path, addr, pid, p, c.command)
				if err != nil {
					failed = errors.Join(failed, fmt.Errorf("%s: %w", c.name, err))
				}
				all = append(all, rate, cpu)
			}
			return all
		})
	}
	numbers := measure.Rounds(max(s.rounds, leastTurns), jobs)
	if failed != nil {
		return nil, failed
	}
	for i, c := range respCommands() {
		n := numbers[i]
		t.Row(c.name, report.Number(n[0]), report.Number(1e6*n[1]), report.Number(n[2]), report.Number(1e6*n[3]))
		s.found.keep("resp", c.name, []float64{n[0], n[2]}, "one", "sixteen")
	}
	return t, nil
}

// perSecond matches the row that redis-benchmark prints: the command and its rate.
var perSecond = regexp.MustCompile(`(?m)^"[^"]*","([0-9.]+)"`)

// redisBenchmark returns the commands a second, and the server's processor time for one in
// seconds.
func redisBenchmark(s settings, path, addr string, pid, pipeline int, command []string) (rate, cpu float64, err error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return 0, 0, err
	}
	// About as long as other loads, at the speed that is expected.
	n := max(1000, int(s.load.Seconds()*100_000)*(1+(pipeline-1)/3))
	args := append([]string{"-h", host, "-p", port, "-c", "50", "-P", strconv.Itoa(pipeline), "-n", strconv.Itoa(n), "-r", "100000", "--csv"}, command...)
	before := measure.CPU(pid)
	out, err := exec.Command(path, args...).Output()
	if err != nil {
		return 0, 0, err
	}
	cpu = (measure.CPU(pid) - before) / float64(n)
	m := perSecond.FindSubmatch(out)
	if m == nil {
		return 0, 0, fmt.Errorf("redis-benchmark printed %q", out)
	}
	rate, err = strconv.ParseFloat(string(m[1]), 64)
	return rate, cpu, err
}

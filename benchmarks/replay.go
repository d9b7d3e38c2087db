package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/weirhq/weir/benchmarks/measure"
	"github.com/weirhq/weir/benchmarks/report"
)

// replay measures the whole process of `weir replay`.
func replay(s settings) (*report.Table, error) {
	weir, err := s.tools.build("cmd/weir")
	if err != nil {
		return nil, err
	}
	text := accessLog(s.lines)
	log, err := s.tools.file("access.log", text)
	one, err2 := s.tools.file("one.yaml", "rules:\n  - {name: requests, per: [ip], limit: 300, window: 1m}\n")
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	of := func(rules string) []string { return []string{weir, "replay", "--alone=false", "--rules", rules, log} }
	rows := []struct {
		name    string
		command []string
	}{
		{"five rules, `examples/wordpress.yaml`", of(filepath.Join(s.tools.root, "examples", "wordpress.yaml"))},
		{"floor: the five rules written in the program", []string{program}},
		{"one rule", of(one)},
	}
	var failed error
	var jobs []func() measure.Numbers
	for _, row := range rows {
		jobs = append(jobs, func() measure.Numbers {
			cmd := exec.Command(row.command[0], row.command[1:]...)
			if len(row.command) == 1 {
				cmd.Env = append(os.Environ(), floorLog+"="+log)
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				failed = errors.Join(failed, fmt.Errorf("%w\n%s", err, out))
				return measure.Numbers{0}
			}
			return measure.Numbers{(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()}
		})
	}
	numbers := measure.Rounds(max(s.rounds, shortTurns), jobs)
	if failed != nil {
		return nil, failed
	}
	t := &report.Table{
		Title: "Replay",
		Text: fmt.Sprintf("`weir replay --alone=false` over a plain log in the combined format: %s lines of 1,000 addresses of very different traffic, %s MB, the whole process. "+
			"The floor finds the fields that the rules use, asks the same store, and counts what is denied: it checks no lines, and reports nothing else.",
			report.Number(float64(s.lines)), report.Number(float64(len(text))/1e6)),
		Head: []string{"", "seconds of processor time", "lines a processor second"},
	}
	for i, row := range rows {
		rate := float64(s.lines) / numbers[i][0]
		t.Row(row.name, report.Number(numbers[i][0]), report.Number(rate))
		s.found.keep("replay", strings.SplitN(row.name, ",", 2)[0], []float64{rate}, "rate")
	}
	return t, nil
}

// accessLog returns a log of a busy site, three lines a second.
func accessLog(lines int) string {
	random := rand.New(rand.NewPCG(1, 2))
	busy := rand.NewZipf(random, 1.1, 10, 999)
	var log strings.Builder
	for i := range lines {
		second := i / 3
		request := fmt.Sprintf("GET /2016/02/post-%d/?page=%d", random.IntN(500), random.IntN(9))
		if random.IntN(50) == 0 {
			request = "POST /wp-login.php"
		}
		visitor := busy.Uint64()
		fmt.Fprintf(&log, "10.0.%d.%d - - [%02d/Mar/2026:%02d:%02d:%02d +0000] \"%s HTTP/1.1\" 200 %d "+
			"\"https://blog.example/\" \"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\"\n",
			visitor/250, visitor%250, 1+second/86400, second/3600%24, second/60%60, second%60, request, random.IntN(50_000))
	}
	return log.String()
}

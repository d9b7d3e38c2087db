package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/benchmarks/internal/measure"
	"github.com/weirhq/weir/benchmarks/internal/peer"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// overRedis measures limiters that count in a Redis server on this machine.
func overRedis(s settings) *table {
	server := measure.StartRedis(false)
	s.later(server.Stop)
	keys := measure.NewKeys(10_000)
	g := s.measure("redis", s.rounds, anew(peer.Redis(), peer.Config{Quota: 1000, Window: time.Minute, Redis: server.Addr}, func(_ peer.Peer, l peer.Limiter) measure.Numbers {
		server.Flush()
		l.Allow(keys.At(0)) // connects, and loads scripts
		callers := func(n int) measure.Load { return measure.Callers(l.Allow, keys, n, 2*s.slice) }
		few, some, many := callers(16), callers(64), callers(256)
		return measure.Numbers{few.PerSecond, some.PerSecond, many.PerSecond, some.P99, many.Admitted}
	}))
	t := g.table(s, []column{
		{"16 callers", "", number, at(0)}, {"64", "64", number, at(1)}, {"256", "", number, at(2)},
		{"× reference (64)", "ratio", ratio, by(1)}, {"p99 at 64", "", timing, at(3)}, {"admitted", "", share, at(4)},
	})
	t.notes = append(t.notes, "An error counts as not admitted.")
	t.chart = g.chart(s, "redis.svg", chart{title: "Decisions a second over Redis, 64 callers", longest: true, show: number}, at(1))
	return t
}

// overOne measures rows and the raw costs of a server, with numbers of callers.
//
// In one turn the system runs client and server on one core, and in another one on separate cores. It does not
// change that for some tenths of a second, especially after a turn of a single caller, who always waits for the
// server. Turns are therefore long, and before each of them the callers run for a while that does not count.
func (s settings) overOne(section string, cluster bool, peers []peer.Peer, f func(server *measure.Redis, load func(callers int) measure.Load) measure.Numbers) *grid {
	server := measure.StartRedis(cluster)
	s.later(server.Stop)
	keys := measure.NewKeys(10_000)
	config := plenty
	config.Redis, config.Cluster = server.Addr, cluster
	return s.measure(section, s.few(), s.kept(peers, config, func(p peer.Peer, l peer.Limiter) measure.Numbers {
		l.Allow(keys.At(0)) // connects, and loads scripts
		return f(server, func(callers int) measure.Load {
			callers = max(1, callers/p.Decides())
			measure.Callers(l.Allow, keys, callers, 2*s.slice)
			load := measure.Callers(l.Allow, keys, callers, 6*s.slice)
			load.PerSecond *= float64(p.Decides())
			return load
		})
	}))
}

// batched measures weir and the raw costs of a Redis server: whether callers who wait at the same time share the cost
// of a script.
func batched(s settings) *table {
	g := s.overOne("batched", false, peer.Batched(), func(server *measure.Redis, load func(int) measure.Load) measure.Numbers {
		many, some, one := load(256), load(64), load(1)
		defer server.Apart()()
		return measure.Numbers{one.PerSecond, some.PerSecond, many.PerSecond, load(64).PerSecond, some.P99}
	})
	ownBaseline := func(g *grid, i int) float64 {
		baseline := "raw: baseline, batched"
		if g.rows[i].name == "weir sliding, three rules" {
			baseline += ", three keys each"
		}
		return to(baseline, 1)(g, i)
	}
	return g.table(s, []column{
		{"1 caller", "", number, at(0)}, {"64", "", number, at(1)}, {"256", "", number, at(2)}, {"apart", "", number, at(3)}, {"× INCR (64)", "", ratio, by(1)},
		{"× INCR (apart)", "", ratio, by(3)}, {"× EVALSHA (64)", "", ratio, to("raw: EVALSHA of one INCR, rueidis", 1)}, {"× baseline (256)", "", ratio, to("raw: baseline, a script for 16 keys", 2)},
		{"× its batched baseline (64)", "", ratio, ownBaseline}, {"× with deadlines and answers (64)", "", ratio, to("raw: baseline, batched, with deadlines and answers", 1)}, {"p99 at 64", "", timing, at(4)},
	})
}

// unbatched measures weir and the raw costs of a server that decides each call by itself.
func unbatched(s settings) *table {
	g := s.overOne("unbatched", true, peer.Unbatched(), func(_ *measure.Redis, load func(int) measure.Load) measure.Numbers {
		some := load(64)
		return measure.Numbers{some.PerSecond, some.P99}
	})
	return g.table(s, []column{
		{"64 callers", "", number, at(0)}, {"× INCR", "", ratio, by(0)}, {"× EVALSHA", "", ratio, to("raw: EVALSHA of one INCR, rueidis", 0)},
		{"× baseline", "", ratio, to("raw: baseline, one key with a deadline", 0)}, {"p99", "", timing, at(1)},
	})
}

// replay measures the whole process of `weir replay`.
func replay(s settings) *table {
	text := accessLog(s.lines)
	s.found[cell{"replay", "", "size"}] = float64(len(text)) / 1e6
	log := s.file("access.log", text)
	one := s.file("one.yaml", "rules:\n  - {name: requests, per: [ip], limit: 300, window: 1m}\n")
	process := func(name string, command func() *exec.Cmd) row {
		return row{name: name, measure: func() measure.Numbers {
			cmd := command()
			if out, err := cmd.CombinedOutput(); err != nil {
				measure.Check(fmt.Errorf("%w\n%s", err, out))
			}
			return measure.Numbers{(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()}
		}}
	}
	of := func(rules string) func() *exec.Cmd {
		return func() *exec.Cmd {
			return exec.Command(s.weir(), "replay", "--alone=false", "--rules", rules, log)
		}
	}
	g := s.measure("replay", s.few(), []row{
		process("five rules, `examples/wordpress.yaml`", of("../examples/wordpress.yaml")),
		process("baseline: the five rules written in the program", func() *exec.Cmd { return childCommand("replay", log) }),
		process("one rule", of(one)),
	})
	return g.table(s, []column{
		{"CPU seconds", "", number, at(0)},
		{"lines per CPU second", "rate", number, func(g *grid, i int) float64 { return float64(s.lines) / g.numbers[i][0] }},
	})
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

// replayBaseline does only what a replay of examples/wordpress.yaml needs, in a dedicated process: it finds the fields of each line of a log that the rules use, asks the same store about the rules, which are
// written here, and prints how many lines are denied. It does not check lines, and has no keys, times and examples
// to report.
func replayBaseline(args []string) {
	file := measure.Must(os.Open(args[0]))
	defer file.Close()
	var ops [5]store.Op
	for i, l := range []window.Limit{
		{Quota: 5, Window: window.Sliding(time.Minute)},
		{Quota: 20, Window: window.Sliding(time.Hour)},
		{Quota: 300, Window: window.Sliding(time.Minute)},
		{Quota: 100, Window: window.Sliding(time.Hour), Measure: window.Distinct},
		{Quota: 500_000_000, Window: window.Calendar(window.Day, measure.Must(time.LoadLocation("America/New_York"))), Measure: window.Sum},
	} {
		name := fmt.Sprint("rule-", i)
		ops[i] = store.Op{Space: store.NewSpace("", name, name, 0), Limit: window.MustCompile(l), N: 1}
	}
	var (
		now    window.Instant
		memory = memstore.New(memstore.WithClock(func() window.Instant { return now }))
		call   = []store.Call{{Verb: store.Take}}
		ctx    = context.Background()
		key    []byte
		minute string // of the line before, as text
		start  window.Instant
		denied int
	)
	lines := bufio.NewScanner(bufio.NewReaderSize(file, 256<<10))
	for lines.Scan() {
		ip, rest, _ := strings.Cut(lines.Text(), " ")
		_, rest, _ = strings.Cut(rest, "[")
		if rest[:17] != minute { // 01/Mar/2026:00:00:00 +0000
			minute = rest[:17]
			start = window.At(measure.Must(time.Parse("02/Jan/2006:15:04:05 -0700", minute+":00"+rest[20:26])))
		}
		now = start.Add((time.Duration(rest[18]-'0')*10 + time.Duration(rest[19]-'0')) * time.Second)
		_, rest, _ = strings.Cut(rest[26:], `"`)
		request, rest, _ := strings.Cut(rest, `"`)
		method, target, _ := strings.Cut(request, " ")
		target, _, _ = strings.Cut(target, " ")
		path, _, _ := strings.Cut(target, "?")
		size, _, _ := strings.Cut(rest[len(" 200 "):], " ")

		key = append(key[:0], ip...)
		for i := range ops {
			ops[i].Key = key
		}
		ops[3].Member = append(ops[3].Member[:0], path...)
		ops[4].N, _ = strconv.ParseInt(size, 10, 64)
		call[0].Ops = ops[2:]
		if method == "POST" && path == "/wp-login.php" {
			call[0].Ops = ops[:]
		}
		measure.Check(errors.Join(memory.Do(ctx, call), call[0].Err))
		for i := range call[0].Ops {
			if !call[0].Ops[i].Result.Allowed {
				denied++
				break
			}
		}
	}
	fmt.Println(denied)
	measure.Check(lines.Err())
}

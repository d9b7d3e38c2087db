package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/benchmarks/internal/measure"
	"github.com/weirhq/weir/benchmarks/internal/peer"
	"github.com/weirhq/weir/client"
)

// The rules files of the service: one sliding rule per user.
const (
	serviceRules = "rules:\n  - {name: posts, when: {action: post, user: \"*\"}, per: [user], limit: 1000000, window: 1h}\n"
	envoyRules   = "rules:\n  - {name: calls, when: {domain: edge}, per: [user], limit: 1000000, window: 1h}\n"
	grpcRules    = "rules:\n  - {name: calls, per: [user], limit: 1000000, window: 1h}\n"
)

const (
	connections = 32   // that send requests to a service over HTTP
	grpcCallers = 64   // of calls over gRPC
	grpcConns   = 4    // on which they call
	envoyRate   = 2000 // calls a second of the open loop
)

// users returns the keys of calls to services. They are made when they are needed, because the time and the memory of a child are measured.
var users = sync.OnceValue(func() measure.Keys { return measure.NewKeys(100_000) })

// serve starts the service with the text of a rules file and more flags. It listens on HTTP, gRPC and, in the
// third place, for koala's calls.
func (s settings) serve(rules string, flags ...string) *measure.Process {
	path := s.file("rules.yaml", rules)
	p := measure.Start(s.weir(), nil, func(a, b, c string) []string {
		return append([]string{"serve", "--rules", path, "--listen", a, "--grpc-listen", b, "--koala-listen", c, "--admin", "127.0.0.1:0", "--log-level", "error"}, flags...)
	})
	s.later(p.Stop)
	p.Await(p.Addrs[1])
	return p
}

// serveOver starts the service over a dedicated Redis server.
func (s settings) serveOver(rules string, timeout time.Duration) (*measure.Process, *measure.Redis) {
	server := measure.StartRedis(false)
	s.later(server.Stop)
	return s.serve(rules, "--store", "redis://"+server.Addr, "--store-timeout", timeout.String()), server
}

// costing measures f, and returns the calls a second, their 99th percentile, and the CPU time of each of
// some processes for one call.
func costing(f func() measure.Load, pids ...int) measure.Numbers {
	var before []float64
	for _, pid := range pids {
		before = append(before, measure.CPU(pid))
	}
	load := f()
	n := measure.Numbers{load.PerSecond, load.P99}
	for i, pid := range pids {
		n = append(n, (measure.CPU(pid)-before[i])/load.Calls)
	}
	return n
}

// interfaces measures the CPU time of decisions through each of weir's interfaces. The numbers of one are calls a
// second, their 99th percentile, and the CPU time of weir and of Redis for one decision.
func interfaces(s settings) *table {
	service := s.serve(serviceRules)
	over, server := s.serveOver(serviceRules, time.Second)
	web := func(name string, p *measure.Process, addr, request string, decisions float64, redis ...int) row {
		return row{name: name, class: "ours", measure: func() measure.Numbers {
			n := costing(func() measure.Load { return measure.Wrk(addr, request, connections, s.load) }, append([]int{p.PID()}, redis...)...)
			n[2] /= decisions
			return append(n, measure.None())
		}}
	}
	inside := func(redis ...int) []row {
		config := plenty
		config.Redis = server.Addr
		return s.kept(peer.Library(len(redis) > 0), config, func(_ peer.Peer, l peer.Limiter) measure.Numbers {
			return append(costing(func() measure.Load {
				if len(redis) > 0 {
					return measure.Callers(l.Allow, users(), grpcCallers, s.load)
				}
				speed := measure.Measure(l.Allow, users(), measure.Each(users().Len()), 1, s.load/2)
				return measure.Load{Calls: speed.Calls, PerSecond: 1e9 / speed.Nanoseconds, P99: measure.None()}
			}, append([]int{os.Getpid()}, redis...)...), measure.None())
		})
	}
	http, koala := service.Addrs[0], service.Addrs[2]
	rows := append(inside(),
		web("HTTP, POST /v1/take", service, http, "take", 1),
		web("HTTP, POST /v1/check", service, http, "check", 1),
		web("HTTP, POST /v1/batch of 100", service, http, "batch", 100),
		web("koala, /rule/browse", service, koala, "browse", 1),
		web("koala, /rule/browse, a connection for each call", service, koala, "close", 1))
	rows = append(append(rows, inside(server.PID())...), web("HTTP, POST /v1/take, over Redis", over, over.Addrs[0], "take", 1, server.PID()))
	shown := len(rows)
	for _, mode := range [][]string{{"an empty handler"}, {"a handler with a fixed answer", "fixed"}} {
		p := s.startChild("http", mode[1:]...)
		rows = append(rows, web(mode[0], p, p.Addrs[0], "take", 1))
	}
	g := s.measure("interfaces", s.rounds, rows)
	both := func(g *grid, i int) float64 {
		if n := g.numbers[i]; !math.IsNaN(n[3]) {
			return 1e6 * (n[2] + n[3])
		}
		return 1e6 * g.numbers[i][2]
	}
	first, second := &grid{"interfaces", g.rows[:shown], g.numbers[:shown]}, &grid{section: "service"}
	t := first.table(s, []column{
		{"weir", "", number, scaled(1e6, 2)}, {"Redis", "", number, scaled(1e6, 3)}, {"both", "CPU", number, both}, {"calls a second", "calls", number, at(0)}, {"p99 of a call", "", timing, at(1)},
	})
	t.chart = first.chart(s, "interfaces.svg", chart{title: "CPU seconds for a million decisions", unit: " s", show: number}, both)
	for i, r := range g.rows {
		switch r.name {
		case "HTTP, POST /v1/take", "HTTP, POST /v1/check", "koala, /rule/browse", "an empty handler", "a handler with a fixed answer":
			r.bold = r.name == "an empty handler"
			second.rows, second.numbers = append(second.rows, r), append(second.numbers, g.numbers[i])
		}
	}
	t.more = []*table{second.table(s, []column{
		{"calls a second", "", number, at(0)}, {"× empty", "rate", ratio, by(0)}, {"µs a call", "", number, scaled(1e6, 2)}, {"µs over empty", "", number, microsOver(2)}, {"p99", "", timing, at(1)},
	})}
	return t
}

// scaled shows a multiple of number n of a row.
func scaled(by float64, n int) func(*grid, int) float64 {
	return func(g *grid, i int) float64 { return by * g.numbers[i][n] }
}

// microsOver shows by how many microseconds number n of a row is over that of the row in bold.
func microsOver(n int) func(*grid, int) float64 {
	return func(g *grid, i int) float64 {
		if g.rows[i].bold {
			return measure.None()
		}
		return 1e6 * (g.numbers[i][n] - g.bold()[n])
	}
}

// caller makes a call of a server over gRPC, on one of its connections.
type caller func(ctx context.Context, turn int, user string) (allowed bool, err error)

// measure returns the numbers of callers that wait for their answers: calls a second, the 99th percentile, and the
// CPU time of the server for a call. Then, of an open loop, if there is one: how long calls take.
func (c caller) measure(s settings, pid int, loop bool) measure.Numbers {
	var turn atomic.Uint32
	var failed atomic.Pointer[error]
	allow := func(user string) bool {
		allowed, err := c(context.Background(), int(turn.Add(1)%grpcConns), user)
		if err != nil {
			failed.Store(&err)
		}
		return allowed
	}
	measure.Callers(allow, users(), grpcCallers, s.load/10) // warm
	n := costing(func() measure.Load { return measure.Callers(allow, users(), grpcCallers, s.load) }, pid)
	if loop {
		open := measure.Begin(envoyRate, s.load, func(i int) { allow(users().At(uint32(i % users().Len()))) })
		n = append(n, measure.Share(open, 0.999), float64(open.Max()))
	}
	if err := failed.Load(); err != nil {
		measure.Check(*err)
	}
	return n
}

// dial returns clients of a gRPC server.
func dial[C any](s settings, addr string, client func(grpc.ClientConnInterface) C) (clients []C) {
	for range grpcConns {
		conn := measure.Must(grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials())))
		s.later(func() { _ = conn.Close() }) // nothing is lost
		clients = append(clients, client(conn))
	}
	return clients
}

// envoyCaller returns a caller of Envoy's protocol. Each call has some descriptors.
func (s settings) envoyCaller(addr string, descriptors int) caller {
	clients := dial(s, addr, rls.NewRateLimitServiceClient)
	return func(ctx context.Context, turn int, user string) (bool, error) {
		in := &rls.RateLimitRequest{Domain: "edge"}
		for i := range descriptors {
			value := user
			if i > 0 {
				value = fmt.Sprintf("%s-%d", user, i)
			}
			in.Descriptors = append(in.Descriptors, &common.RateLimitDescriptor{Entries: []*common.RateLimitDescriptor_Entry{{Key: "user", Value: value}}})
		}
		out, err := clients[turn].ShouldRateLimit(ctx, in)
		return out.GetOverallCode() == rls.RateLimitResponse_OK, err
	}
}

// envoy measures calls of Envoy's rate limit protocol and of a gRPC handler that does nothing.
func envoy(s settings) *table {
	empty, memory := s.startChild("grpc"), s.serve(envoyRules)
	over, _ := s.serveOver(envoyRules, time.Second)
	calls := func(name string, p *measure.Process, addr string, descriptors int) row {
		c := s.envoyCaller(addr, descriptors)
		return row{name: name, bold: name == "an empty handler", measure: func() measure.Numbers { return c.measure(s, p.PID(), true) }}
	}
	g := s.measure("envoy", s.few(), []row{
		calls("an empty handler", empty, empty.Addrs[0], 1), calls("a handler that answers ten descriptors without deciding", empty, empty.Addrs[0], 10),
		calls("weir, one descriptor", memory, memory.Addrs[1], 1), calls("weir, ten descriptors", memory, memory.Addrs[1], 10), calls("weir over Redis, one descriptor", over, over.Addrs[1], 1),
	})
	return g.table(s, []column{
		{"calls a second", "", number, at(0)}, {"× empty", "", ratio, by(0)}, {"µs a call", "", number, scaled(1e6, 2)}, {"µs over empty", "", number, microsOver(2)},
		{"p99", "", timing, at(1)}, {"× empty", "", ratio, by(1)}, {"open loop: p99.9", "", timing, at(3)}, {"slowest", "", timing, at(4)},
	})
}

// stoppedRows are the ways in which Redis stops answering, and the time-outs of the store and of Envoy: the
// default of the store with the one of Envoy that docs/guides/envoy.md has, and the ones for Envoy's default.
var stoppedRows = []struct {
	name         string
	signal       os.Signal
	store, envoy time.Duration
}{
	{"paused", syscall.SIGSTOP, 50 * time.Millisecond, 100 * time.Millisecond},
	{"killed", os.Kill, 50 * time.Millisecond, 100 * time.Millisecond},
	{"paused", syscall.SIGSTOP, 10 * time.Millisecond, 20 * time.Millisecond},
	{"killed", os.Kill, 10 * time.Millisecond, 20 * time.Millisecond},
}

// stopped measures Envoy's calls in an open loop while Redis stops answering.
func stopped(s settings) *table {
	t := s.newTable("stopped", "Redis is", "`--store-timeout`", "Envoy's time-out", "before: p99.9", "after: p50", "p99.9", "slowest", "failed")
	for _, r := range stoppedRows {
		var turns []measure.Numbers
		for range s.rounds {
			turns = append(turns, stoppedTurn(s, r.store, r.envoy, r.signal))
		}
		n := measure.Medians(turns)
		for _, turn := range turns { // of these, the worst turn counts
			n[3], n[4] = max(n[3], turn[3]), max(n[4], turn[4])
		}
		t.row(r.name, r.store.String(), r.envoy.String(), timing(n[0]), timing(n[1]), timing(n[2]), timing(n[3]), number(n[4]))
	}
	return t
}

// stoppedTurn measures one way, with the time-outs of the store and of Envoy.
func stoppedTurn(s settings, timeout, deadline time.Duration, signal os.Signal) measure.Numbers {
	service, server := s.serveOver(envoyRules, timeout)
	c := s.envoyCaller(service.Addrs[1], 1)
	c.measure(settings{load: s.load / 10}, service.PID(), false) // warm
	var failed atomic.Int64
	call := func(i int) {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		if _, err := c(ctx, i%grpcConns, users().At(uint32(i%users().Len()))); err != nil {
			failed.Add(1)
		}
	}
	before := measure.Begin(envoyRate, s.load/4, call)
	measure.Check(server.Signal(signal))
	after := measure.Begin(envoyRate, s.load, call)
	service.Stop()
	server.Stop()
	return measure.Numbers{measure.Share(before, 0.999), measure.Share(after, 0.5), measure.Share(after, 0.999), float64(after.Max()), float64(failed.Load())}
}

// grpcTakes measures takes over gRPC and a gRPC handler that does nothing.
func grpcTakes(s settings) *table {
	empty, service := s.startChild("grpc"), s.serve(grpcRules)
	takers := dial(s, empty.Addrs[0], weirv1.NewWeirServiceClient)
	calls := func(name string, p *measure.Process, c caller) row {
		return row{name: name, bold: name == "an empty handler", measure: func() measure.Numbers { return c.measure(s, p.PID(), false) }}
	}
	// through takes through weir's client: a client for each connection, or one with streams.
	through := func(addr string, streams int) caller {
		var clients []*client.Client
		for range grpcConns {
			c := measure.Must(client.New(addr, client.WithStreams(streams)))
			s.later(func() { _ = c.Close() }) // nothing is lost
			if clients = append(clients, c); streams > 0 {
				clients = slices.Repeat(clients, grpcConns)
				break
			}
		}
		return func(ctx context.Context, turn int, user string) (bool, error) {
			d, err := clients[turn].Take(ctx, weir.Request{Attributes: []weir.Attribute{{Name: "user", Value: user}}})
			return d.Allowed, err
		}
	}
	g := s.measure("grpc", s.few(), []row{
		calls("an empty handler", empty, func(ctx context.Context, turn int, user string) (bool, error) {
			out, err := takers[turn].Take(ctx, &weirv1.TakeRequest{Attributes: map[string]string{"user": user}})
			return out.GetDecision().GetAllowed(), err
		}),
		calls("weir, a call for each take", service, through(service.Addrs[1], 0)),
		calls("one stream, to a handler that decides nothing", empty, through(empty.Addrs[0], 1)),
		calls("weir, one stream", service, through(service.Addrs[1], 1)),
		calls("weir, two streams", service, through(service.Addrs[1], 2)),
	})
	return g.table(s, []column{
		{"takes a second", "", number, at(0)}, {"× empty", "", ratio, by(0)}, {"× a call for each", "", ratio, to("weir, a call for each take", 0)}, {"µs a take", "", number, scaled(1e6, 2)}, {"p99", "", timing, at(1)},
	})
}

// perSecond matches the row that redis-benchmark prints: the command and its rate.
var perSecond = regexp.MustCompile(`(?m)^"[^"]*","([0-9.]+)"`)

// resp measures weir's Redis protocol and Redis, with redis-benchmark.
func resp(s settings) *table {
	server, path := measure.StartRedis(false), s.file("rules.yaml", serviceRules)
	s.later(server.Stop)
	service := measure.Start(s.weir(), nil, func(a, b, c string) []string {
		return []string{"serve", "--rules", path, "--resp-listen", a, "--listen", b, "--admin", c, "--log-level", "error"}
	})
	s.later(service.Stop)
	bench := func(name string, p *measure.Process, command ...string) row {
		return row{name: name, measure: func() (all measure.Numbers) {
			for _, pipeline := range []int{1, 16} { // commands that redis-benchmark sends at once
				// About as long as other loads, at the speed that is expected.
				n := max(1000, int(s.load.Seconds()*100_000)*(1+(pipeline-1)/3))
				_, port, _ := strings.Cut(p.Addrs[0], ":")
				args := []string{"-p", port, "-c", "50", "-P", strconv.Itoa(pipeline), "-n", strconv.Itoa(n), "-r", "100000", "--csv"}
				numbers := costing(func() measure.Load {
					out := measure.Must(exec.Command("redis-benchmark", append(args, command...)...).Output())
					m := perSecond.FindSubmatch(out)
					if m == nil {
						measure.Check(fmt.Errorf("redis-benchmark printed %q", out))
					}
					return measure.Load{PerSecond: measure.Must(strconv.ParseFloat(string(m[1]), 64)), Calls: float64(n)}
				}, p.PID())
				all = append(all, numbers[0], numbers[2])
			}
			return all
		}}
	}
	// At least five turns: one row differs from another by less than one turn from the next. PING is the cost of
	// the protocol: weir's parser answers a constant.
	g := s.measure("resp", max(s.rounds, 5), []row{
		bench("Redis, INCR", server.Process, "INCR", "key:__rand_int__"),
		bench("Redis, PING", server.Process, "PING"),
		bench("weir, CL.THROTTLE", service, "CL.THROTTLE", "key:__rand_int__", "15", "30", "60"),
		bench("weir, WEIR.TAKE", service, "WEIR.TAKE", "action", "post", "user", "u__rand_int__"),
		bench("weir, PING: the parser alone", service, "PING"),
	})
	return g.table(s, []column{
		{"one at a time", "", number, at(0)}, {"µs", "", number, scaled(1e6, 1)}, {"16 at once (`-P 16`)", "", number, at(2)}, {"µs", "", number, scaled(1e6, 3)},
	})
}

// childName names the environment variable that makes the program one of its children: a server that decides
// nothing, or a row whose whole process is measured.
const childName = "WEIR_BENCHMARKS_CHILD"

// child runs the program as one of its children, if it is one.
func child() bool {
	run, ok := map[string]func(args []string){
		"http": emptyHTTP, "grpc": emptyGRPC, "cold": coldChild, "replay": replayBaseline,
	}[os.Getenv(childName)]
	if ok {
		run(os.Args[1:])
	}
	return ok
}

// childCommand returns the command of a child.
func childCommand(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(measure.Must(os.Executable()), args...)
	cmd.Env = append(os.Environ(), childName+"="+name)
	return cmd
}

// startChild starts a child that is a server.
func (s settings) startChild(name string, args ...string) *measure.Process {
	p := measure.Start(measure.Must(os.Executable()), []string{childName + "=" + name}, func(a, _, _ string) []string { return append([]string{a}, args...) })
	s.later(p.Stop)
	return p
}

// emptyHTTP answers every request with an empty body. With a second argument it reads the body of the request and
// answers with the same JSON each time, which has the size of a decision: the least that a handler has to do whose
// answer depends on the request.
func emptyHTTP(args []string) {
	answer := []byte(`{"allowed":true,"outcome":"allow","limits":[{"rule":"posts","key":"12345","quota":1000000,"used":1,"remaining":999999,"reset_after":3600}]}` + "\n")
	kind := []string{"application/json"}
	measure.Check(http.ListenAndServe(args[0], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // on loopback only
		if len(args) > 1 {
			_, _ = io.Copy(io.Discard, r.Body) // the caller has gone if this fails
			w.Header()["Content-Type"] = kind
			_, _ = w.Write(answer)
		}
	})))
}

// emptyGRPC answers every call of Envoy's rate limit protocol with OK, and every take of weir.v1 with the same
// decision: the cost of gRPC itself.
func emptyGRPC(args []string) {
	s := grpc.NewServer()
	rls.RegisterRateLimitServiceServer(s, empty{})
	weirv1.RegisterWeirServiceServer(s, empty{})
	measure.Check(s.Serve(measure.Must(net.Listen("tcp", args[0]))))
}

type empty struct {
	rls.UnimplementedRateLimitServiceServer
	weirv1.UnimplementedWeirServiceServer
}

// ShouldRateLimit answers a call with several descriptors with a full status for each.
func (empty) ShouldRateLimit(_ context.Context, in *rls.RateLimitRequest) (*rls.RateLimitResponse, error) {
	out := &rls.RateLimitResponse{OverallCode: rls.RateLimitResponse_OK}
	if len(in.Descriptors) == 1 {
		return out, nil
	}
	for range in.Descriptors {
		out.Statuses = append(out.Statuses, &rls.RateLimitResponse_DescriptorStatus{
			Code:           rls.RateLimitResponse_OK,
			CurrentLimit:   &rls.RateLimitResponse_RateLimit{Name: "calls", RequestsPerUnit: 1_000_000, Unit: rls.RateLimitResponse_RateLimit_HOUR},
			LimitRemaining: 999_999, DurationUntilReset: &durationpb.Duration{Seconds: 3600},
		})
	}
	return out, nil
}

func (empty) Take(context.Context, *weirv1.TakeRequest) (*weirv1.TakeResponse, error) {
	return &weirv1.TakeResponse{Decision: &weirv1.Decision{Allowed: true}}, nil
}

// Decide answers messages until the client sends no more.
func (empty) Decide(stream weirv1.WeirService_DecideServer) error {
	answer := &weirv1.Answer{Kind: &weirv1.Answer_Decision{Decision: &weirv1.Decision{Allowed: true, Outcome: "allow", Limits: []*weirv1.RuleUsage{{
		Rule: "calls", Key: "user-0000000", Allowed: true, Quota: new(int64(1_000_000)), Used: 1, Remaining: new(int64(999_999)), ResetAfter: &durationpb.Duration{Seconds: 3600},
	}}}}}
	for {
		in, err := stream.Recv()
		if err != nil {
			return nil //nolint:nilerr // the client has gone
		}
		out := &weirv1.DecideResponse{Id: in.Id}
		for range in.Requests {
			out.Answers = append(out.Answers, answer)
		}
		if err := stream.Send(out); err != nil {
			return err
		}
	}
}

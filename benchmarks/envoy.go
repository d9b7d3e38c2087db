package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/weirhq/weir/benchmarks/measure"
	"github.com/weirhq/weir/benchmarks/report"
)

// The rows of Envoy's calls.
const (
	emptyCall  = "an empty handler"
	emptyTen   = "a handler that answers ten descriptors without deciding"
	oneDesc    = "weir, one descriptor"
	tenDescs   = "weir, ten descriptors"
	oneOnRedis = "weir over Redis, one descriptor"
)

// envoyRules is the rules file of the service: one sliding rule per user.
const envoyRules = `rules:
  - {name: calls, when: {domain: edge}, per: [user], limit: 1000000, window: 1h}
`

const (
	envoyCallers = 64
	envoyConns   = 4
	envoyRate    = 2000 // calls a second of the open loop
)

// The columns of the numbers of Envoy's calls.
const (
	envoyCalls = iota
	envoyP99
	envoyCPU
	envoyOpen
	envoyOpenMost
)

// envoyDoor is a server of Envoy's protocol that is measured.
type envoyDoor struct {
	name        string
	pid         int
	descriptors int
	conns       []rls.RateLimitServiceClient
	next        atomic.Uint32
	failed      atomic.Pointer[error]
}

// envoy measures calls of Envoy's rate limit protocol beside a gRPC handler that
// does nothing.
func envoy(s settings) (*report.Table, error) {
	t := &report.Table{
		Title: "Envoy's calls, beside a gRPC handler that does nothing",
		Text: fmt.Sprintf("Calls of ShouldRateLimit by %d callers with %d connections, from a client in Go on the same cores, for %s users in turn. The empty handler is one of grpc-go, with generated code, that reads the same calls and answers OK. The handler below it does the same with ten descriptors, and writes ten statuses, always the same: the least that ten descriptors cost. "+
			"Microseconds are processor time of the server for one call. In the open loop %s calls a second begin, whatever became of those before.",
			envoyCallers, envoyConns, report.Number(100_000), report.Number(envoyRate)),
		Head: []string{"", "calls a second", "× empty", "µs a call", "µs over empty", "p99", "× empty", "open loop: p99.9", "slowest"},
	}
	all, stop, err := openEnvoy(s)
	defer stop()
	if err != nil {
		t.Text, t.Head = fmt.Sprintf("Not measured: %v.", err), nil
		return t, nil
	}
	var jobs []func() measure.Numbers
	for _, d := range all {
		jobs = append(jobs, func() measure.Numbers { return d.measure(s) })
	}
	numbers := measure.Rounds(max(s.rounds, shortTurns), jobs)
	empty := numbers[0]
	for i, d := range all {
		if err := d.failed.Load(); err != nil {
			return nil, fmt.Errorf("%s: %w", d.name, *err)
		}
		n := numbers[i]
		name, over := d.name, 1e6*(n[envoyCPU]-empty[envoyCPU])
		if i == 0 {
			name, over = report.Bold(name), measure.None()
		}
		t.Row(name, report.Number(n[envoyCalls]), report.Ratio(n[envoyCalls]/empty[envoyCalls]), report.Number(1e6*n[envoyCPU]), report.Number(over),
			report.Time(n[envoyP99]), report.Ratio(n[envoyP99]/empty[envoyP99]), report.Time(n[envoyOpen]), report.Time(n[envoyOpenMost]))
		s.found.keep("envoy", d.name, []float64{n[envoyCalls] / empty[envoyCalls], over, n[envoyP99] / empty[envoyP99], n[envoyOpen], n[envoyCPU]},
			"rate", "over", "p99", "open", "CPU")
	}
	return t, nil
}

// openEnvoy starts the servers, the empty one first. stop ends them, also after an
// error.
func openEnvoy(s settings) (all []*envoyDoor, stop func(), err error) {
	var ends ends
	empty, err := s.tools.emptyGRPC(&ends)
	if err != nil {
		return nil, ends.all, err
	}
	memory, err := s.tools.serveGRPC(&ends, "envoy.yaml", envoyRules)
	if err != nil {
		return nil, ends.all, err
	}
	first, err := openDoor(&ends, emptyCall, 1, empty)
	one, err2 := openDoor(&ends, oneDesc, 1, memory)
	ten, err3 := openDoor(&ends, tenDescs, 10, memory)
	floor, err4 := openDoor(&ends, emptyTen, 10, empty)
	if err := errors.Join(err, err2, err3, err4); err != nil {
		return nil, ends.all, err
	}
	all = []*envoyDoor{first, floor, one, ten}
	server, err := measure.StartRedis()
	if err != nil {
		return all, ends.all, nil //nolint:nilerr // the row with Redis is left out, as the page says elsewhere
	}
	ends.add(server.Stop)
	shared, err := s.tools.serveGRPC(&ends, "envoy.yaml", envoyRules, "--store", "redis://"+server.Addr, "--store-timeout", "1s")
	if err != nil {
		return nil, ends.all, err
	}
	last, err := openDoor(&ends, oneOnRedis, 1, shared)
	return append(all, last), ends.all, err
}

// openDoor connects to a service.
func openDoor(ends *ends, name string, descriptors int, service *measure.Service) (*envoyDoor, error) {
	d := &envoyDoor{name: name, pid: service.PID(), descriptors: descriptors}
	conns, err := connect(ends, service.Addr, envoyConns)
	for _, conn := range conns {
		d.conns = append(d.conns, rls.NewRateLimitServiceClient(conn))
	}
	return d, err
}

// measure returns the numbers of one turn: of callers that wait for their answers,
// and of an open loop.
func (d *envoyDoor) measure(s settings) measure.Numbers {
	keys := measure.NewKeys(100_000)
	measure.Callers(d.allow, keys, envoyCallers, s.load/10) // warm
	cpu := measure.CPU(d.pid)
	load := measure.Callers(d.allow, keys, envoyCallers, s.load)
	cpu = (measure.CPU(d.pid) - cpu) / load.Calls
	open := measure.Begin(envoyRate, s.load, func(i int) { d.allow(keys.At(uint32(i % keys.Len()))) })
	return measure.Numbers{load.PerSecond, float64(load.P99), cpu, float64(open.At(0.999)), float64(open.Max())}
}

// allow makes a call, and reports whether it was allowed.
func (d *envoyDoor) allow(user string) bool {
	allowed, err := d.call(context.Background(), user)
	if err != nil {
		d.failed.Store(&err)
	}
	return allowed
}

// call makes a call for a user, or for as many users as there are descriptors.
func (d *envoyDoor) call(ctx context.Context, user string) (allowed bool, err error) {
	in := &rls.RateLimitRequest{Domain: "edge"}
	for i := range d.descriptors {
		value := user
		if i > 0 {
			value = fmt.Sprintf("%s-%d", user, i)
		}
		in.Descriptors = append(in.Descriptors, &common.RateLimitDescriptor{Entries: []*common.RateLimitDescriptor_Entry{{Key: "user", Value: value}}})
	}
	out, err := d.conns[d.next.Add(1)%uint32(len(d.conns))].ShouldRateLimit(ctx, in)
	return out.GetOverallCode() == rls.RateLimitResponse_OK, err
}

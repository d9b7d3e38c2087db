package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weirhq/weir/benchmarks/measure"
	"github.com/weirhq/weir/benchmarks/report"
)

// The rows of Envoy's calls.
const (
	emptyCall  = "an empty handler"
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
		Text: fmt.Sprintf("Calls of ShouldRateLimit by %d callers with %d connections, from a client in Go on the same cores, for %s users in turn. The empty handler is one of grpc-go that reads the same calls and answers OK. "+
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
	numbers := measure.Rounds(s.rounds, jobs)
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
	var stops []func()
	stop = func() {
		for _, f := range stops {
			f()
		}
	}
	open := func(name string, descriptors int, service *measure.Service) error {
		d := &envoyDoor{name: name, pid: service.PID(), descriptors: descriptors}
		for range envoyConns {
			conn, err := grpc.NewClient(service.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				return err
			}
			stops = append(stops, func() { _ = conn.Close() })
			d.conns = append(d.conns, rls.NewRateLimitServiceClient(conn))
		}
		all = append(all, d)
		return nil
	}
	path, err := s.tools.build("scripts/emptygrpc")
	if err != nil {
		return nil, stop, err
	}
	empty, err := measure.StartService(path, func(a, _, _ string) []string { return []string{a} })
	if err != nil {
		return nil, stop, err
	}
	stops = append(stops, func() { _ = empty.Stop() })
	memory, err := s.tools.serveEnvoy()
	if err != nil {
		return nil, stop, err
	}
	stops = append(stops, func() { _ = memory.Stop() })
	if err := errors.Join(open(emptyCall, 1, empty), open(oneDesc, 1, memory), open(tenDescs, 10, memory)); err != nil {
		return nil, stop, err
	}
	server, err := measure.StartRedis()
	if err != nil {
		return all, stop, nil //nolint:nilerr // the row with Redis is left out, as the page says elsewhere
	}
	stops = append(stops, server.Stop)
	shared, err := s.tools.serveEnvoy("--store", "redis://"+server.Addr, "--store-timeout", "1s")
	if err != nil {
		return nil, stop, err
	}
	stops = append(stops, func() { _ = shared.Stop() })
	return all, stop, open(oneOnRedis, 1, shared)
}

// serveEnvoy starts weir for Envoy's calls, at the address of the service.
func (t *tools) serveEnvoy(flags ...string) (*measure.Service, error) {
	weir, err := t.build("cmd/weir")
	path, err2 := t.file("envoy.yaml", envoyRules)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	return measure.StartService(weir, func(a, b, c string) []string {
		return append([]string{"serve", "--rules", path, "--grpc-listen", a, "--listen", b, "--admin", c, "--log-level", "error"}, flags...)
	})
}

// measure returns the numbers of one turn: of callers that wait for their answers,
// and of an open loop.
func (d *envoyDoor) measure(s settings) measure.Numbers {
	keys := measure.NewKeys(100_000)
	measure.Callers(d.allow, keys, envoyCallers, s.load/10) // warm
	cpu := measure.CPU(d.pid)
	load := measure.Callers(d.allow, keys, envoyCallers, s.load)
	cpu = (measure.CPU(d.pid) - cpu) / load.Calls
	open := d.openLoop(keys, s.load)
	return measure.Numbers{load.PerSecond, float64(load.P99), cpu, float64(open.At(0.999)), float64(open.Max())}
}

// allow makes a call for a user, or for as many users as there are descriptors.
func (d *envoyDoor) allow(user string) bool {
	in := &rls.RateLimitRequest{Domain: "edge"}
	for i := range d.descriptors {
		value := user
		if i > 0 {
			value = fmt.Sprintf("%s-%d", user, i)
		}
		in.Descriptors = append(in.Descriptors, &common.RateLimitDescriptor{Entries: []*common.RateLimitDescriptor_Entry{{Key: "user", Value: value}}})
	}
	out, err := d.conns[d.next.Add(1)%uint32(len(d.conns))].ShouldRateLimit(context.Background(), in)
	if err != nil {
		d.failed.Store(&err)
		return false
	}
	return out.OverallCode == rls.RateLimitResponse_OK
}

// openLoop begins calls at a fixed rate, and returns how long after its turn each of
// them ended.
func (d *envoyDoor) openLoop(keys measure.Keys, length time.Duration) *measure.Histogram {
	var mu sync.Mutex
	var calls sync.WaitGroup
	all := new(measure.Histogram)
	start := time.Now()
	for i := 0; ; i++ {
		turn := start.Add(time.Duration(i) * time.Second / envoyRate)
		if turn.Sub(start) >= length {
			break
		}
		time.Sleep(time.Until(turn))
		calls.Go(func() {
			d.allow(keys.At(uint32(i % keys.Len())))
			took := time.Since(turn)
			mu.Lock()
			all.Add(took)
			mu.Unlock()
		})
	}
	calls.Wait()
	return all
}

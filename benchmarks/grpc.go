package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/benchmarks/measure"
	"github.com/weirhq/weir/benchmarks/report"
	"github.com/weirhq/weir/client"
)

// The rows of takes over gRPC.
const (
	emptyTake  = "an empty handler"
	floorTake  = "one stream, to a handler that decides nothing"
	unaryTake  = "weir, a call for each take"
	streamTake = "weir, one stream"
	twoStreams = "weir, two streams"
)

const (
	grpcCallers = 64
	grpcConns   = 4
)

// The columns of the numbers of takes over gRPC.
const (
	grpcCalls = iota
	grpcP99
	grpcCPU
)

// grpcDoor is a server of weir.v1 that is measured.
type grpcDoor struct {
	name   string
	pid    int
	take   func(user string) (bool, error)
	failed atomic.Pointer[error]
}

// grpcTakes measures takes over gRPC beside a gRPC handler that does nothing.
func grpcTakes(s settings) (*report.Table, error) {
	t := &report.Table{
		Title: "Takes over gRPC, beside a gRPC handler that does nothing",
		Text: fmt.Sprintf("Takes of `weir.v1` by %d callers that wait for their answers, from a client in Go on the same cores, for %s users in turn: a call for each take, on %d connections, and takes that share "+
			"streams (`client.WithStreams`). The empty handler is one of grpc-go, with generated code, that reads the same calls. The handler on the stream reads messages without generated code, and gives each take of them the same decision: the least that takes on a stream cost. Microseconds are processor time of the server for one take.",
			grpcCallers, report.Number(100_000), grpcConns),
		Head: []string{"", "takes a second", "× empty", "× a call for each", "µs a take", "p99"},
	}
	all, stop, err := openGRPC(s)
	defer stop()
	if err != nil {
		return nil, err
	}
	var jobs []func() measure.Numbers
	for _, d := range all {
		jobs = append(jobs, func() measure.Numbers { return d.measure(s) })
	}
	numbers := measure.Rounds(max(s.rounds, shortTurns), jobs)
	for i, d := range all {
		if err := d.failed.Load(); err != nil {
			return nil, fmt.Errorf("%s: %w", d.name, *err)
		}
		n, name := numbers[i], d.name
		if i == 0 {
			name = report.Bold(name)
		}
		empty, unary := n[grpcCalls]/numbers[0][grpcCalls], n[grpcCalls]/numbers[1][grpcCalls]
		t.Row(name, report.Number(n[grpcCalls]), report.Ratio(empty), report.Ratio(unary), report.Number(1e6*n[grpcCPU]), report.Time(n[grpcP99]))
		s.found.keep("grpc", d.name, []float64{empty, unary}, "empty", "unary")
	}
	return t, nil
}

// openGRPC starts the servers, the empty one first. stop ends them, also after an
// error.
func openGRPC(s settings) (all []*grpcDoor, stop func(), err error) {
	var ends ends
	empty, err := s.tools.emptyGRPC(&ends)
	if err != nil {
		return nil, ends.all, err
	}
	service, err := s.tools.serveGRPC(&ends, "grpc.yaml", grpcRules)
	if err != nil {
		return nil, ends.all, err
	}
	conns, err := connect(&ends, empty.Addr, grpcConns)
	if err != nil {
		return nil, ends.all, err
	}
	var takers []weirv1.WeirServiceClient
	for _, conn := range conns {
		takers = append(takers, weirv1.NewWeirServiceClient(conn))
	}
	var clients []*client.Client
	open := func(addr string, options ...client.Option) *client.Client {
		c, openErr := client.New(addr, options...)
		if openErr != nil {
			err = errors.Join(err, openErr)
			return nil
		}
		ends.add(func() { _ = c.Close() })
		return c
	}
	for range grpcConns {
		clients = append(clients, open(service.Addr))
	}
	floor, one, two := open(empty.Addr, client.WithStreams(1)), open(service.Addr, client.WithStreams(1)), open(service.Addr, client.WithStreams(2))
	var turn atomic.Uint32
	all = []*grpcDoor{
		{name: emptyTake, pid: empty.PID(), take: func(user string) (bool, error) {
			out, err := takers[turn.Add(1)%grpcConns].Take(context.Background(), &weirv1.TakeRequest{Attributes: map[string]string{"user": user}})
			return out.GetDecision().GetAllowed(), err
		}},
		{name: unaryTake, pid: service.PID(), take: func(user string) (bool, error) { return takeOf(clients[turn.Add(1)%grpcConns], user) }},
		{name: floorTake, pid: empty.PID(), take: func(user string) (bool, error) { return takeOf(floor, user) }},
		{name: streamTake, pid: service.PID(), take: func(user string) (bool, error) { return takeOf(one, user) }},
		{name: twoStreams, pid: service.PID(), take: func(user string) (bool, error) { return takeOf(two, user) }},
	}
	return all, ends.all, err
}

func takeOf(c interface {
	Take(ctx context.Context, r weir.Request) (weir.Decision, error)
}, user string) (bool, error) {
	d, err := c.Take(context.Background(), weir.Request{Attributes: []weir.Attribute{{Name: "user", Value: user}}})
	return d.Allowed, err
}

// grpcRules is the rules file of the service: one sliding rule per user.
const grpcRules = `rules:
  - {name: calls, per: [user], limit: 1000000, window: 1h}
`

// measure returns the numbers of one turn.
func (d *grpcDoor) measure(s settings) measure.Numbers {
	keys := measure.NewKeys(100_000)
	measure.Callers(d.allow, keys, grpcCallers, s.load/10) // warm
	cpu := measure.CPU(d.pid)
	load := measure.Callers(d.allow, keys, grpcCallers, s.load)
	cpu = (measure.CPU(d.pid) - cpu) / load.Calls
	return measure.Numbers{load.PerSecond, float64(load.P99), cpu}
}

func (d *grpcDoor) allow(user string) bool {
	allowed, err := d.take(user)
	if err != nil {
		d.failed.Store(&err)
	}
	return allowed
}

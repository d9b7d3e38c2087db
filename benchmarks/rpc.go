package main

import (
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weirhq/weir/benchmarks/measure"
)

// What the sections about gRPC share: programs, and connections to them.

// ends collects what has to be ended. Its zero value is empty.
type ends []func()

func (e *ends) add(f func()) { *e = append(*e, f) }

// all ends everything that was added, the newest first.
func (e *ends) all() {
	for i := len(*e) - 1; i >= 0; i-- {
		(*e)[i]()
	}
	*e = nil
}

// emptyGRPC starts a gRPC server that does nothing.
func (t *tools) emptyGRPC(ends *ends) (*measure.Service, error) {
	path, err := t.build("benchmarks/emptygrpc")
	if err != nil {
		return nil, err
	}
	return startFor(ends, path, func(a, _, _ string) []string { return []string{a} })
}

// serveGRPC starts weir with a rules file, which has a name and a text, and more flags.
// The address of the service is the one for gRPC.
func (t *tools) serveGRPC(ends *ends, name, rules string, flags ...string) (*measure.Service, error) {
	weir, err := t.build("cmd/weir")
	path, err2 := t.file(name, rules)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	return startFor(ends, weir, func(a, b, c string) []string {
		return append([]string{"serve", "--rules", path, "--grpc-listen", a, "--listen", b, "--admin", c, "--log-level", "error"}, flags...)
	})
}

// startFor starts a program that ends ends.
func startFor(ends *ends, path string, arguments func(a, b, c string) []string) (*measure.Service, error) {
	s, err := measure.StartService(path, arguments)
	if err == nil {
		ends.add(func() { _ = s.Stop() })
	}
	return s, err
}

// connect opens n connections to a gRPC server.
func connect(ends *ends, addr string, n int) (conns []*grpc.ClientConn, err error) {
	for range n {
		conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, err
		}
		ends.add(func() { _ = conn.Close() })
		conns = append(conns, conn)
	}
	return conns, nil
}

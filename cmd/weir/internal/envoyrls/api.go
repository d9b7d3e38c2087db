package envoyrls

import (
	"context"
	"runtime"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/headers"
)

// Service and File are the name of the protocol's service and of the file that
// defines it. Health is the name under which clients ask for its health.
const (
	Service = "envoy.service.ratelimit.v3.RateLimitService"
	File    = "envoy/service/ratelimit/v3/rls.proto"
	Health  = "ratelimit"
)

// Config configures an [API].
type Config struct {
	// Headers writes the header fields about limits in answers, which the proxy adds to
	// its own. The dialect [headers.None] adds none.
	Headers headers.Format

	// Reference, if it is not nil, makes the API answer as envoyproxy/ratelimit
	// does, by the files of that service.
	Reference *Reference
}

// API answers calls of ShouldRateLimit. Make one with [New]. It is safe for
// concurrent use.
type API struct {
	namespaces *namespace.Set
	config     Config
	overrides  overrides
	parsing    chan struct{} // a semaphore for reading large bodies in JSON
}

// New returns the API of the namespaces in namespaces.
func New(namespaces *namespace.Set, c Config) *API {
	return &API{namespaces: namespaces, config: c, parsing: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
}

// Methods returns the methods of the service.
func (a *API) Methods() []grpcserver.Method {
	return []grpcserver.Method{{Name: "ShouldRateLimit", Need: access.Decide, Serve: a.serve}}
}

// serve answers one call over gRPC.
func (a *API) serve(c *grpcserver.Call) error {
	ns, err := c.Namespace(a.namespaces)
	if err != nil {
		return err
	}
	x := &exchange{namespace: ns, grpc: true, Reservation: c.Reservation()}
	defer x.Free()
	var message rls.RateLimitRequest
	in := grpcserver.Received{Message: &message, Admit: x.admitCall, Texts: texts}
	if err := c.RecvMsg(&in); err != nil {
		return err
	}
	if in.Err != nil {
		return in.Err
	}
	x.in.set(&message)
	if err := c.Caller.May(x.in.need()); err != nil {
		return err
	}
	if err := c.Begin(); err != nil {
		return err
	}
	err = a.answer(c.Context(), x)
	c.End()
	if err != nil {
		return err
	}
	return c.SendMsg(&x.out)
}

// answer decides x.in and fills in the answer.
func (a *API) answer(ctx context.Context, x *exchange) error {
	r := a.config.Reference
	if r == nil || r.Answered == nil {
		return a.decideAny(ctx, x)
	}
	began := time.Now()
	err := a.decideAny(ctx, x)
	r.Answered(Answered{x.grpc, time.Since(began), x.degraded, x.shadowed, err})
	return err
}

// decideAny decides x.in by the rules or by the files.
func (a *API) decideAny(ctx context.Context, x *exchange) error {
	if err := check(&x.in); err != nil {
		return err
	}
	if err := x.reserveDescriptors(); err != nil {
		return err
	}
	if a.config.Reference != nil {
		return a.decideByFiles(ctx, x)
	}
	return a.decide(ctx, x)
}

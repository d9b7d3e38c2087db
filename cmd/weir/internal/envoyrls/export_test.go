package envoyrls

import (
	"context"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir/cmd/weir/internal/namespace"
)

// Excess returns what a message has too many of.
func Excess(b []byte) error { _, err := excess(b); return err }

// ExcessJSON returns what a body has too much of, and how many objects it has.
func ExcessJSON(text []byte) (int, error) { return excessJSON(text) }

// Answer answers one call in ns.
func (a *API) Answer(ctx context.Context, ns *namespace.Namespace, in *rls.RateLimitRequest) (*rls.RateLimitResponse, error) {
	x := &exchange{namespace: ns}
	x.in.set(in)
	err := a.answer(ctx, x)
	return &x.out, err
}

// Call answers a call in a message, as over gRPC.
func Call(ctx context.Context, a *API, ns *namespace.Namespace, message []byte) error {
	x := &exchange{namespace: ns}
	if err := x.admitCall(message); err != nil {
		return err
	}
	var in rls.RateLimitRequest
	if err := proto.Unmarshal(message, &in); err != nil {
		return err
	}
	x.in.set(&in)
	if err := a.answer(ctx, x); err != nil {
		return err
	}
	_, err := proto.Marshal(&x.out)
	return err
}

// Turns returns the places of the large bodies in JSON that are parsed at the same time.
func (a *API) Turns() chan struct{} { return a.parsing }

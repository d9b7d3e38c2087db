package envoyrls

import (
	"context"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// Exchange is an exchange with its call and its answer.
type Exchange struct{ *exchange }

// NewExchange returns an empty exchange.
func NewExchange() Exchange { return Exchange{newExchange()} }

// In returns the call, and Out the answer.
func (x Exchange) In() *rls.RateLimitRequest   { return &x.in }
func (x Exchange) Out() *rls.RateLimitResponse { return &x.out }

// written is the last answer.
var written []byte

// Call answers a call in a message, as over gRPC.
func Call(ctx context.Context, a *API, engine Engine, message []byte) error {
	x := a.exchanges.Get().(*exchange)
	defer a.free(x)
	x.engine = engine
	if err := x.ReadMessage(message); err != nil {
		return err
	}
	if err := a.answer(ctx, x); err != nil {
		return err
	}
	var err error
	written, err = x.AppendMessage(written[:0])
	return err
}

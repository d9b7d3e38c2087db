package envoyrls

import (
	"context"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Exchange is an exchange with its call and its answer.
type Exchange struct{ *exchange }

// NewExchange returns an empty exchange.
func NewExchange() Exchange { return Exchange{newExchange()} }

// Read reads a message.
func (x Exchange) Read(b []byte) error {
	if err := x.ReadMessage(b); err != nil {
		return err
	}
	return x.wrong
}

// Excess returns what a message has too much of.
func Excess(b []byte) error { return excess(b) }

// ExcessJSON returns what a body has too much of, and how many objects it has.
func ExcessJSON(text []byte) (int, error) { return excessJSON(text) }

// In returns the call.
func (x Exchange) In() *rls.RateLimitRequest {
	in := &rls.RateLimitRequest{Domain: x.in.domain, HitsAddend: x.in.hits}
	for i := range x.in.descriptors {
		from := &x.in.descriptors[i]
		d := &common.RateLimitDescriptor{Limit: from.limit, IsNegativeHits: from.negative}
		if from.ownHits {
			d.HitsAddend = wrapperspb.UInt64(from.hits)
		}
		for _, e := range from.entries {
			d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: e.Name, Value: e.Value})
		}
		in.Descriptors = append(in.Descriptors, d)
	}
	return in
}

// Message returns the answer.
func (x Exchange) Message() *rls.RateLimitResponse { return x.message() }

// SetOut sets the answer. Times until a reset are whole seconds.
func (x Exchange) SetOut(out *rls.RateLimitResponse) {
	x.begin(len(out.Statuses))
	x.code = out.OverallCode
	for i, from := range out.Statuses {
		s := &x.answers[i].status
		s.code, s.remaining = from.Code, from.LimitRemaining
		if l := from.CurrentLimit; l != nil {
			s.limited, s.name, s.quota, s.unit, s.times = true, l.Name, l.RequestsPerUnit, l.Unit, l.UnitMultiplier.GetValue()
		}
		if from.DurationUntilReset != nil {
			s.reset = from.DurationUntilReset.Seconds
		}
	}
	x.rest.RawBody, x.rest.DynamicMetadata = out.RawBody, out.DynamicMetadata
}

// written is the last answer.
var written []byte

// Call answers a call in a message, as over gRPC.
func Call(ctx context.Context, a *API, engine Engine, message []byte) error {
	x := a.exchanges.Get().(*exchange)
	defer a.free(x)
	x.engine = engine
	if err := (Exchange{x}).Read(message); err != nil {
		return err
	}
	if err := a.answer(ctx, x); err != nil {
		return err
	}
	var err error
	written, err = x.AppendMessage(written[:0])
	return err
}

// Turns returns the places of the large bodies in JSON that are parsed at the same time.
func (a *API) Turns() chan struct{} { return a.parsing }

package client

import (
	"context"
	"unicode/utf8"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/store"
)

// Take decides whether the action may happen, and counts it if so: see
// [weir.Engine.Take].
func (c *Client) Take(ctx context.Context, r weir.Request) (weir.Decision, error) {
	return c.decide(ctx, store.Take, &r)
}

// Check decides whether the action may happen, and counts nothing.
func (c *Client) Check(ctx context.Context, r weir.Request) (weir.Decision, error) {
	return c.decide(ctx, store.Check, &r)
}

// Record counts the action without asking the limits: see [weir.Engine.Record].
func (c *Client) Record(ctx context.Context, r weir.Request) (weir.Decision, error) {
	return c.decide(ctx, store.Record, &r)
}

// Refund gives the hits of an action back: see [weir.Engine.Refund].
func (c *Client) Refund(ctx context.Context, r weir.Request) (weir.Decision, error) {
	return c.decide(ctx, store.Refund, &r)
}

// Settle ends the holds of the take that receipt names, at their real cost: see
// [weir.Engine.Settle].
func (c *Client) Settle(ctx context.Context, receipt weir.Receipt, r weir.Request) (weir.Decision, error) {
	r.Receipt = receipt
	return c.decide(ctx, store.Settle, &r)
}

// Cancel gives back what the take that receipt names has counted: see
// [weir.Engine.Cancel].
func (c *Client) Cancel(ctx context.Context, receipt weir.Receipt, r weir.Request) (weir.Decision, error) {
	r.Receipt = receipt
	return c.decide(ctx, store.Cancel, &r)
}

// Renew moves the end of the holds of the take that receipt names: see
// [weir.Engine.Renew].
func (c *Client) Renew(ctx context.Context, receipt weir.Receipt, r weir.Request) (weir.Decision, error) {
	r.Receipt = receipt
	return c.decide(ctx, store.Renew, &r)
}

func (c *Client) decide(ctx context.Context, verb store.Verb, r *weir.Request) (weir.Decision, error) {
	if c == nil || c.conn == nil {
		return weir.Decision{}, notMade()
	}
	room := c.decisions.Get().(*weir.Decision)
	err := c.Do(ctx, verb, r, room)
	d := *room
	*room = weir.Decision{} // its slices are those of the caller now
	c.decisions.Put(room)
	return d, err
}

// Do runs verb for r and writes the answer into d. It overwrites d and reuses the
// slices of d, so copy what has to outlive the next call. After an error d holds no
// answer. The Rules of d are nil.
func (c *Client) Do(ctx context.Context, verb store.Verb, r *weir.Request, d *weir.Decision) error {
	empty(d)
	if err := sendable(verb, r); err != nil {
		return err
	}
	if err := c.begin(ctx, verb.String()); err != nil {
		return err
	}
	if c.retries > 0 && verb.CanRepeat() {
		return c.retry(ctx, verb, r, d)
	}
	return c.once(ctx, verb, r, d)
}

// once sends a request once.
func (c *Client) once(ctx context.Context, verb store.Verb, r *weir.Request, d *weir.Decision) error {
	if len(c.streams) == 0 {
		return c.one(ctx, verb, r, d)
	}
	return c.streams[c.turn.Add(1)%uint32(len(c.streams))].do(ctx, verb, r, d) //nolint:gosec // few streams
}

// sendable returns the fault of a request, with the text of an engine, or nil. A request with a fault
// is not sent.
func sendable(verb store.Verb, r *weir.Request) error {
	switch {
	case r.Rules != nil:
		return fault.Newf("rules", "cannot be sent to a service: want them in its rules file")
	case int(verb) >= len(methods):
		return fault.Newf("verb", "%d: want Check, Take, Record, Refund, Settle, Cancel or Renew", verb)
	case verb.NeedsReceipt() && r.Receipt.IsZero():
		return fault.Newf("receipt", "is missing: a %s needs the receipt of a take", verb)
	case !verb.NeedsReceipt() && !r.Receipt.IsZero():
		return fault.Newf("receipt", "with a %s: want a settle, a cancel or a renew", verb)
	case r.Hits < 0:
		return fault.Newf("hits", "%d: want at least 1, or 0 for 1", r.Hits)
	case r.Feedback != "" && verb != store.Refund:
		return fault.Newf("feedback", "%q in a %s: want a refund", r.Feedback, verb)
	case !utf8.ValidString(r.IdempotencyKey):
		return fault.Newf("idempotency_key", "text is not valid UTF-8")
	case !utf8.ValidString(r.Feedback):
		return fault.Newf("feedback", "text is not valid UTF-8")
	}
	return textual(r.Attributes)
}

// textual returns the fault of an attribute that is not UTF-8 or too long. A service could not read the whole message
// with text that is not UTF-8, including the requests of others. Many long texts at a time would be refused for lack
// of memory, which looks like an outage.
func textual(attributes []weir.Attribute) error {
	for i := range attributes {
		switch a := &attributes[i]; {
		case !utf8.ValidString(a.Name):
			return fault.Newf("attributes", "the name %.64q is not valid UTF-8", a.Name)
		case !utf8.ValidString(a.Value):
			return fault.Newf("attributes."+a.Name, "text is not valid UTF-8")
		case len(a.Value) > maxValue:
			return fault.Newf("attributes."+a.Name, "has more than %d bytes", maxValue)
		}
	}
	return nil
}

// askable returns the fault of a call about a rule and a key, or nil. A call with a fault is not made.
func askable(name string, attributes []weir.Attribute) error {
	if !utf8.ValidString(name) {
		return fault.Newf("rule", "text is not valid UTF-8")
	}
	return textual(attributes)
}

// begin returns the error of a call that cannot begin, because c is closed or ctx is
// done.
func (c *Client) begin(ctx context.Context, what string) error {
	switch {
	case c == nil || c.conn == nil:
		return notMade()
	case c.alive.Err() != nil:
		return closed(what)
	case ctx.Err() != nil:
		return contextError(what, ctx.Err(), true)
	}
	return nil
}

func notMade() error { return fault.Newf("client", "nil or zero: make one with client.New") }

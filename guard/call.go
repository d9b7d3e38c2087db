package guard

import (
	"net/http"
	"slices"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/headers"
	"github.com/weirhq/weir/rule"
)

// Call is one call that [Middleware.Take] has decided. It is not safe for concurrent
// use.
type Call struct {
	// Allowed reports whether the call may happen. It was counted then.
	Allowed bool

	// Limits are the limits that decided.
	Limits headers.Limits

	guard    *guard
	request  weir.Request  // to a decider
	decision weir.Decision // of a decider
	held     *held         // what the call holds, or nil
	detached bool          // whether the function of Detach ends it

	list []weir.Attribute // memory for the attributes of middleware
}

// Decision returns the decision of the engine or the client. For a limiter it is nil. It
// is valid until [Middleware.End].
func (c *Call) Decision() *weir.Decision {
	if c.guard == nil || c.guard.decider == nil {
		return nil
	}
	return &c.decision
}

// Rule returns the name of the rule or the limit that denied the call, or an empty
// string.
func (c *Call) Rule() string {
	switch d := c.Decision(); {
	case c.Allowed || c.guard == nil:
		return ""
	case d != nil:
		return d.Rule
	}
	return c.guard.name
}

// status returns the HTTP status of a denial; see [Call.Answer].
func (c *Call) status() int {
	if d := c.Decision(); d != nil {
		if o, ok := outcome(d); ok && (d.Outcome != rule.Deny || !c.outage()) {
			return o.Status
		}
	}
	if c.outage() {
		return http.StatusServiceUnavailable
	}
	return http.StatusTooManyRequests
}

// outage reports whether an outage policy denied, so that there are no numbers.
func (c *Call) outage() bool {
	return !c.Allowed && c.Limits.Degraded != "" && len(c.Limits.Policies) == 0
}

// body returns the body of the outcome that the rules define, which is JSON, or nil. It
// is nil for the decision of a client.
func (c *Call) body() []byte {
	if d := c.Decision(); d != nil {
		if o, ok := outcome(d); ok {
			return o.Body
		}
	}
	return nil
}

// outcome returns the outcome of d as the rules define it. It reports false if d has no
// rules, because it came from a client.
func outcome(d *weir.Decision) (o rule.Outcome, ok bool) {
	if d.Rules == nil {
		return o, false
	}
	return d.Rules.Outcome(d.Outcome)
}

// Problem returns the body of a denial whose outcome has none.
func (c *Call) Problem() *headers.Problem {
	if d := c.Decision(); d != nil {
		return headers.Denial(d, c.status())
	}
	return headers.DenialBy(c.guard.name, c.outage())
}

// Answer returns the HTTP status of a denial, and the media type and the text of its body.
// The status is that of the outcome, if the rules define one, and otherwise 429, or 503 if
// an outage policy denied because no store could be asked. The rules of a client are only in
// its service, so they define nothing here.
func (c *Call) Answer() (status int, mediaType string, body []byte) {
	if b := c.body(); len(b) > 0 {
		return c.status(), "application/json", b
	}
	return c.status(), "application/problem+json", append(c.Problem().Append(nil), '\n')
}

// SetAttributes replaces attributes of the call before it ends, such as the number of
// tokens that it really cost. Holds are settled at the real cost then. Calls that hold
// nothing ignore it.
func (c *Call) SetAttributes(attributes ...weir.Attribute) {
	if c.held != nil {
		c.held.set(attributes)
	}
}

// end ends the call: it releases what the call has in flight, and settles other holds
// at the amount held, or at the cost that [Call.SetAttributes] has set. Calling it twice is safe.
// A store that cannot answer then ends the holds by itself after their length.
func (c *Call) end() {
	if c.held != nil && !c.detached {
		c.held.end()
	}
}

// Detach returns a function that ends the holds of c, for calls that last longer than c is valid.
// [Middleware.End] then does not end the holds. Calling it twice is safe.
func (c *Call) Detach() (end func()) {
	if c.held == nil {
		return func() {}
	}
	c.detached = true
	return c.held.end
}

// replaced returns attributes, with others replacing those of the same names.
func replaced(attributes, others []weir.Attribute) []weir.Attribute {
	all := slices.Clone(attributes)
	for _, o := range others {
		if i := slices.IndexFunc(all, func(a weir.Attribute) bool { return a.Name == o.Name }); i >= 0 {
			all[i].Value = o.Value
		} else {
			all = append(all, o)
		}
	}
	return all
}

// forget drops what c refers to and keeps its memory, so that c can wait in a pool. c
// has ended.
func (c *Call) forget() {
	c.Allowed, c.guard, c.request = false, nil, weir.Request{}
	c.Limits.Policies = c.Limits.Policies[:0]
	clear(c.list)
}

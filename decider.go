package weir

import "context"

// Decider decides requests. An [Engine] decides them in this process. The Client of
// package client asks a service. A program that uses a Decider can use either of them;
// only the constructor differs. Both are safe for concurrent use.
//
// The methods do what the methods of [Engine] with the same names do. A Client differs
// from an Engine in two points. A call can also fail because the service does not
// answer; it may then have counted, unless the error says that it has not. Decisions
// of a Client have nil [Decision.Rules], and requests to a Client cannot have
// [Request.Rules].
type Decider interface {
	Take(ctx context.Context, r Request) (Decision, error)
	Check(ctx context.Context, r Request) (Decision, error)
	Record(ctx context.Context, r Request) (Decision, error)
	Refund(ctx context.Context, r Request) (Decision, error)
	Settle(ctx context.Context, receipt Receipt, r Request) (Decision, error)
	Cancel(ctx context.Context, receipt Receipt, r Request) (Decision, error)
	Renew(ctx context.Context, receipt Receipt, r Request) (Decision, error)

	Do(ctx context.Context, verb Verb, r *Request, d *Decision) error
	DoAll(ctx context.Context, items []Item)

	Explain(ctx context.Context, r Request) (Explanation, error)
	Usage(ctx context.Context, rule string, attributes []Attribute) (KeyUsage, error)
	Forget(ctx context.Context, rule string, attributes []Attribute) error

	Close() error
}

var _ Decider = (*Engine)(nil)

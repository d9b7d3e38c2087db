package weir

import "context"

// Decider decides requests. [Engine] is one that decides in this process. The client
// of package client is one that asks a service. A program that is written for a
// Decider moves from one to the other by its constructor.
//
// The methods do what the methods of [Engine] with the same names do. They differ in
// this: over a network a call can also fail because the service does not answer.
// Whether it has counted then is not known, unless the error says so. Decisions that
// came over the network have nil [Decision.Rules], and such requests cannot have
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

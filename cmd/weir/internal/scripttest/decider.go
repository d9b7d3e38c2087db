package scripttest

import (
	"context"

	"github.com/weirhq/weir"
)

// Decider decides requests: a [weir.Engine], or the Client of package client.
type Decider interface {
	Take(ctx context.Context, r weir.Request) (weir.Decision, error)
	Check(ctx context.Context, r weir.Request) (weir.Decision, error)
	Record(ctx context.Context, r weir.Request) (weir.Decision, error)
	Refund(ctx context.Context, r weir.Request) (weir.Decision, error)
	Settle(ctx context.Context, receipt weir.Receipt, r weir.Request) (weir.Decision, error)
	Cancel(ctx context.Context, receipt weir.Receipt, r weir.Request) (weir.Decision, error)
	Renew(ctx context.Context, receipt weir.Receipt, r weir.Request) (weir.Decision, error)

	Do(ctx context.Context, verb weir.Verb, r *weir.Request, d *weir.Decision) error
	DoAll(ctx context.Context, items []weir.Item)

	Explain(ctx context.Context, r weir.Request) (weir.Decision, []weir.RuleExplanation, error)
	Usage(ctx context.Context, rule string, attributes []weir.Attribute) (weir.KeyUsage, error)
	Forget(ctx context.Context, rule string, attributes []weir.Attribute) error

	Close() error
}

var _ Decider = (*weir.Engine)(nil)

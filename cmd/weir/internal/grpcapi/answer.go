package grpcapi

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// The messages that the functions below return refer to the decision.

func decisionOf(d *weir.Decision) *weirv1.Decision {
	m := new(weirv1.Decision)
	setDecision(m, d)
	return m
}

func setDecision(m *weirv1.Decision, d *weir.Decision) {
	*m = weirv1.Decision{
		Allowed: d.Allowed, Outcome: d.Outcome, Rule: d.Rule, RetryAfter: durationOf(d.RetryAfter), RetryRule: d.RetryRule,
		Verdicts: d.Verdicts, Triggered: d.Triggered, Unmatched: d.Unmatched, Replayed: d.Replayed, Degraded: d.Degraded, DegradedReason: string(d.DegradedReason),
		Hold: durationOf(d.Hold), Receipt: d.Receipt.String(), Limits: make([]*weirv1.RuleUsage, len(d.Usages)),
	}
	for i := range d.Usages {
		m.Limits[i] = usageOf(&d.Usages[i])
	}
}

func usageOf(u *weir.Usage) *weirv1.RuleUsage {
	m := &weirv1.RuleUsage{
		Rule: u.Rule, Kind: kindOf(u.Kind), Key: u.Key, Shadow: u.Shadow, Allowed: u.Allowed, Hits: u.Hits, Used: u.Used,
		Held: u.Held, Banned: u.Banned, Struck: u.Struck, Before: u.Before, Override: u.Overridden,
		RetryAfter: durationOf(u.RetryAfter), ResetAfter: durationOf(u.ResetAfter),
	}
	if u.Quota != window.Unlimited {
		m.Quota = &u.Quota
	}
	if u.Remaining != window.Unlimited {
		m.Remaining = &u.Remaining
	}
	if u.BannedUntil != 0 {
		m.BannedUntil = timestamppb.New(u.BannedUntil.Time())
	}
	return m
}

func cellsOf(cells []window.Cell) []*weirv1.Cell {
	list := make([]*weirv1.Cell, len(cells))
	for i, c := range cells {
		list[i] = &weirv1.Cell{Start: timestamppb.New(c.Start.Time()), Length: durationOf(c.Length), Hits: c.Hits}
	}
	return list
}

func kindOf(k rule.Kind) weirv1.RuleKind { return weirv1.RuleKind(k) + weirv1.RuleKind_RULE_KIND_LIMIT }

// durationOf returns d, of which [window.Never] is -1 seconds and 0 is nil.
func durationOf(d time.Duration) *durationpb.Duration {
	switch d {
	case 0:
		return nil
	case window.Never:
		return &durationpb.Duration{Seconds: -1}
	}
	return durationpb.New(d)
}

// problemOf returns the problem of err, for a batch or a stream with other answers.
func problemOf(err error) *weirv1.Problem {
	f := grpcserver.FailureOf(err)
	return &weirv1.Problem{Code: int32(f.Code), Detail: f.Detail, Field: f.Field, Reason: f.Reason, RetryAfter: durationOf(f.RetryAfter)} //nolint:gosec // codes are small
}

// answered is the memory of an answer. That of all answers of a message is allocated together.
type answered struct {
	answer   weirv1.Answer
	kind     weirv1.Answer_Decision
	decision weirv1.Decision
}

// set returns a as the answer to a request of several.
func (a *answered) set(it *weir.Item) *weirv1.Answer {
	if it.Err != nil {
		a.answer.Kind = &weirv1.Answer_Problem{Problem: problemOf(it.Err)}
		return &a.answer
	}
	setDecision(&a.decision, &it.Decision)
	a.kind.Decision, a.answer.Kind = &a.decision, &a.kind
	return &a.answer
}

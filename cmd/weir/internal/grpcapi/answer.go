package grpcapi

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// The functions below set all fields of a reused message. The fields refer to the decision.

func setDecision(m *weirv1.Decision, d *weir.Decision) {
	m.Allowed, m.Outcome, m.Rule, m.RetryRule = d.Allowed, d.Outcome, d.Rule, d.RetryRule
	m.Verdicts, m.Triggered, m.Unmatched = d.Verdicts, d.Triggered, d.Unmatched
	m.Degraded, m.DegradedReason = d.Degraded, string(d.DegradedReason)
	setDuration(&m.RetryAfter, d.RetryAfter)
	setDuration(&m.Hold, d.Hold)
	if m.Receipt = ""; !d.Receipt.IsZero() {
		m.Receipt = d.Receipt.String()
	}
	m.Limits = slices.Grow(m.Limits[:0], len(d.Usages))[:len(d.Usages)] // elements after its length were used before
	for i := range d.Usages {
		if m.Limits[i] == nil {
			m.Limits[i] = new(weirv1.RuleUsage)
		}
		setUsage(m.Limits[i], &d.Usages[i])
	}
}

func setUsage(m *weirv1.RuleUsage, u *weir.Usage) {
	m.Rule, m.Kind, m.Key, m.Shadow, m.Allowed, m.Hits, m.Used = u.Rule, kindOf(u.Kind), u.Key, u.Shadow, u.Allowed, u.Hits, u.Used
	m.Held, m.Banned, m.Struck, m.Before = u.Held, u.Banned, u.Struck, u.Before
	m.Quota, m.Remaining, m.BannedUntil = nil, nil, nil
	if u.Quota != window.Unlimited {
		m.Quota = &u.Quota
	}
	if u.Remaining != window.Unlimited {
		m.Remaining = &u.Remaining
	}
	if u.BannedUntil != 0 {
		m.BannedUntil = timestamppb.New(u.BannedUntil.Time())
	}
	setDuration(&m.RetryAfter, u.RetryAfter)
	setDuration(&m.ResetAfter, u.ResetAfter)
}

// setDuration sets m to d, of which [window.Never] is -1 seconds and 0 is nil.
func setDuration(m **durationpb.Duration, d time.Duration) {
	if d == 0 {
		*m = nil
		return
	}
	if *m == nil {
		*m = new(durationpb.Duration)
	}
	if (*m).Seconds, (*m).Nanos = int64(d/time.Second), int32(d%time.Second); d == window.Never { //nolint:gosec // less than a second
		(*m).Seconds, (*m).Nanos = -1, 0
	}
}

func decisionOf(d *weir.Decision) *weirv1.Decision {
	m := new(weirv1.Decision)
	setDecision(m, d)
	return m
}

func usageOf(u *weir.Usage) *weirv1.RuleUsage {
	m := new(weirv1.RuleUsage)
	setUsage(m, u)
	return m
}

func kindOf(k rule.Kind) weirv1.RuleKind { return weirv1.RuleKind(k) + weirv1.RuleKind_RULE_KIND_LIMIT }

func durationOf(d time.Duration) (m *durationpb.Duration) {
	setDuration(&m, d)
	return m
}

// problemOf returns the problem of err, for a batch or a stream with other answers.
func problemOf(err error) *weirv1.Problem {
	f := grpcserver.FailureOf(err)
	return &weirv1.Problem{Code: int32(f.Code), Detail: f.Detail, Field: f.Field, Reason: f.Reason, RetryAfter: durationOf(f.RetryAfter)} //nolint:gosec // codes are small
}

// reply is a [weirv1.Answer] whose memory is reused.
type reply struct {
	weirv1.Answer
	kind     weirv1.Answer_Decision
	decision weirv1.Decision
}

func (r *reply) setDecision(d *weir.Decision) {
	setDecision(&r.decision, d)
	r.kind.Decision = &r.decision
	r.Kind = &r.kind
}

func (r *reply) setProblem(err error) { r.Kind = &weirv1.Answer_Problem{Problem: problemOf(err)} }

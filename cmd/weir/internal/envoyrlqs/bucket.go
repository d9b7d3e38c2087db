package envoyrlqs

import (
	"container/list"
	"math"
	"time"

	rlqs "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	envoytype "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/run"
)

const (
	// travel is the assumed maximum time that an assignment and the next report take together.
	travel = 500 * time.Millisecond

	// firstLife and maxLife are the time to live of assignments while nothing is known of the interval of
	// reports, and at most.
	firstLife = 10 * time.Second
	maxLife   = 5 * time.Minute

	// abandonAfter is how long a bucket without requests is kept.
	abandonAfter = time.Minute

	// maxAssignments is the maximum number of assignments that are not settled.
	maxAssignments = 16

	// firstPart is the part of what remains that a bucket gets before its demand is known, as a divisor.
	firstPart = 4

	// parts is how often in an interval of reports more is asked for, at most.
	parts = 8

	// refill is the fill interval of token buckets. Nothing is refilled within maxLife, because Envoy counts whole tokens.
	refill = 24 * time.Hour
)

// bucket is a bucket of one Envoy.
type bucket struct {
	key        string
	id         *rlqs.BucketId
	attributes []weir.Attribute
	place      *list.Element // in idle of its session
	untracked  bool          // it was dropped: its usage counts, and it gets no assignment

	last   time.Time     // of a report; zero: there was none before
	busy   time.Time     // of a report with requests
	every  time.Duration // between reports, about; 0: not known
	rate   float64       // requests in a second, as expected until the next report
	was    float64       // and as they were in the last interval
	due    time.Time     // when more should be asked for, because less was granted than was wanted; zero: not before the next report
	number int32         // of assignments

	assigned []assignment // that are not settled; the last one is in force
}

// assignment is an assignment that was sent.
type assignment struct {
	id             [12]byte // of the reservation; zero: there is none
	granted, spent int64
	seen           int64 // hits that were reported since it was sent, of this or of an earlier one
	sent           time.Time
	until          time.Time // Envoy stops using it, if it is not replaced before
	ends           time.Time // the reservation, or earlier
	kind           kind
}

type kind uint8

const (
	tokens kind = iota
	allowAll
	denyAll
)

// size returns about how many bytes of memory b takes.
func (b *bucket) size() int64 {
	return bucketBytes + 4*int64(len(b.key)) + 128*int64(len(b.attributes))
}

// ask counts a usage, and returns what to ask the engine for.
func (b *bucket) ask(u *rlqs.RateLimitQuotaUsageReports_BucketQuotaUsage, now time.Time) (a run.Assignment) {
	allowed, denied := int64(u.NumRequestsAllowed), int64(u.NumRequestsDenied) //nolint:gosec // checked
	a.Used, a.Denied = allowed, denied
	a.Over = b.spend(allowed, now)
	if b.untracked {
		return a
	}
	b.follow(allowed+denied, now)
	for i := range b.assigned {
		g := &b.assigned[i]
		over := i+1 < len(b.assigned) && !now.Before(b.assigned[i+1].sent.Add(travel))
		if !over && g.spent < g.granted {
			break
		}
		if g.id != [12]byte{} && now.Before(g.ends) {
			a.Settles = append(a.Settles, run.Settle{ID: g.id, Spent: g.spent})
		}
		g.id, g.granted = [12]byte{}, g.spent
	}
	for len(b.assigned) > 1 && b.assigned[0].spent == b.assigned[0].granted {
		b.assigned = b.assigned[1:]
	}
	if len(b.assigned) >= maxAssignments || now.Sub(b.busy) > abandonAfter {
		return a
	}
	need := min(math.Ceil(b.rate*(b.every+travel/2).Seconds()), math.MaxUint32/2) // until the next report is answered
	want := max(int64(need+3*math.Sqrt(need)), 1)                                 // three standard deviations of independent requests
	left, lasts := b.left(now)
	if lasts && left >= int64(need) && left <= 2*want+1 {
		return a
	}
	a.Want, a.Least, a.Part, a.Length = want, 1, 1, b.life()+2*travel
	if b.every == 0 {
		a.Want, a.Part = math.MaxUint32, firstPart
	} else if lasts && left < want {
		a.Least = left + 1 // fewer are not better than what there is
	}
	return a
}

// more returns what to ask the engine for before the next report, as b.due is now.
func (b *bucket) more(now time.Time) (a run.Assignment) {
	b.due = time.Time{}
	ahead := b.last.Add(b.every + travel/2).Sub(now)
	if want := math.Floor(min(b.rate*ahead.Seconds(), math.MaxUint32/2)); want >= 1 && len(b.assigned) < maxAssignments {
		a.Want, a.Least, a.Part, a.Length = int64(want), 1, 1, b.life()+2*travel
	}
	return a
}

// again sets when to ask for more, after a was answered: when Envoy has probably spent what was granted and there may be more, unless
// the next report comes first. What others give back can be had before a.Retry.
func (b *bucket) again(a *run.Assignment, now time.Time) {
	b.due = time.Time{}
	if b.every == 0 || a.Want == 0 || a.Err != nil || a.All || a.Granted >= a.Want || a.Retry > b.every {
		return
	}
	part := max(b.every/parts, travel/8)
	spent := time.Duration(float64(a.Granted) / max(b.rate, 1) * float64(time.Second))
	if wait := max(part, spent); wait < b.every-now.Sub(b.last)-part/2 {
		b.due = now.Add(wait)
	}
}

// spend counts hits in the assignments, the oldest first, and returns those that belong to none.
func (b *bucket) spend(hits int64, now time.Time) (over int64) {
	if n := len(b.assigned); n > 0 {
		b.assigned[n-1].seen += hits
	}
	for i := range b.assigned {
		if g := &b.assigned[i]; now.Before(g.ends) {
			n := min(hits, g.granted-g.spent)
			g.spent, hits = g.spent+n, hits-n
		}
	}
	return hits
}

// follow updates the estimates of the demand and of the interval of reports.
func (b *bucket) follow(requests int64, now time.Time) {
	if requests > 0 || b.busy.IsZero() {
		b.busy = now
	}
	if !b.last.IsZero() {
		took := max(now.Sub(b.last), 100*time.Millisecond)
		rate := float64(requests) / took.Seconds()
		if b.every == 0 {
			b.was = rate
		}
		b.rate, b.was = max(rate, 2*rate-b.was), rate // what has grown grew at some instant in between
		b.every = min(max(took, b.every-b.every/8), maxLife)
	}
	b.last = now
}

// life returns how long an assignment should last.
func (b *bucket) life() time.Duration {
	if b.every == 0 {
		return firstLife
	}
	return min(max(3*b.every, 2*time.Second), maxLife).Round(time.Second)
}

// left returns how many hits are at least left of the assignment in force, and whether it lasts until the next report is answered.
func (b *bucket) left(now time.Time) (hits int64, lasts bool) {
	if len(b.assigned) == 0 {
		return 0, false
	}
	g := &b.assigned[len(b.assigned)-1]
	return max(g.granted-g.seen, 0), g.kind == tokens && now.Add(b.every+travel).Before(g.until)
}

// assign returns what to send after a was answered, or nil for nothing.
func (b *bucket) assign(a *run.Assignment, now time.Time) *rlqs.RateLimitQuotaResponse_BucketAction {
	b.again(a, now)
	action := &rlqs.RateLimitQuotaResponse_BucketAction{BucketId: b.id}
	if now.Sub(b.busy) > abandonAfter {
		setAbandon(action)
		return action
	}
	g := assignment{sent: now}
	life := b.life()
	switch {
	case a.All:
		g.kind = allowAll
	case a.Want > 0 && a.Err == nil && a.Granted > 0:
		life = (a.Lasts - travel).Truncate(time.Second) // Envoy reads whole seconds
		g.id, g.granted, g.ends = a.ID, a.Granted, now.Add(a.Lasts)
		if life <= 0 {
			b.assigned = append(b.assigned, g) // nothing of it is sent, and it is settled with the next ones
			g = assignment{sent: now}
			g.kind, life = denyAll, time.Second
		}
	case a.Want == 0:
		return nil
	default:
		if _, lasts := b.left(now); lasts {
			return nil // what is left may be spent, and no more
		}
		g.kind = denyAll
	}
	if n := len(b.assigned); g.kind != tokens && n > 0 && b.assigned[n-1].kind == g.kind {
		g.sent = b.assigned[n-1].sent // the same one goes on
		b.assigned = b.assigned[:n-1]
	}
	g.until = now.Add(life)
	b.assigned = append(b.assigned, g)
	setStrategy(action, b.strategy(&g), life)
	return action
}

// refuse returns the answer to a usage that is not decidable. It needs no bucket: while there are requests, each report gets it.
func refuse(u *rlqs.RateLimitQuotaUsageReports_BucketQuotaUsage) *rlqs.RateLimitQuotaResponse_BucketAction {
	action := &rlqs.RateLimitQuotaResponse_BucketAction{BucketId: u.BucketId}
	if u.NumRequestsAllowed|u.NumRequestsDenied == 0 {
		setAbandon(action)
	} else {
		setStrategy(action, new(bucket).strategy(&assignment{kind: denyAll}), maxLife)
	}
	return action
}

// setAbandon makes Envoy forget the bucket.
func setAbandon(a *rlqs.RateLimitQuotaResponse_BucketAction) {
	a.BucketAction = &rlqs.RateLimitQuotaResponse_BucketAction_AbandonAction_{AbandonAction: new(rlqs.RateLimitQuotaResponse_BucketAction_AbandonAction)}
}

// setStrategy assigns s for a length of time.
func setStrategy(a *rlqs.RateLimitQuotaResponse_BucketAction, s *envoytype.RateLimitStrategy, life time.Duration) {
	a.BucketAction = &rlqs.RateLimitQuotaResponse_BucketAction_QuotaAssignmentAction_{
		QuotaAssignmentAction: &rlqs.RateLimitQuotaResponse_BucketAction_QuotaAssignmentAction{
			AssignmentTimeToLive: durationpb.New(life), RateLimitStrategy: s,
		},
	}
}

// strategy returns the strategy of g.
func (b *bucket) strategy(g *assignment) *envoytype.RateLimitStrategy {
	blanket := envoytype.RateLimitStrategy_ALLOW_ALL
	switch g.kind {
	case tokens:
		b.number = b.number%1_000_000 + 1 // Envoy tells token buckets apart by their nanoseconds
		return &envoytype.RateLimitStrategy{Strategy: &envoytype.RateLimitStrategy_TokenBucket{TokenBucket: &envoytype.TokenBucket{
			MaxTokens:     uint32(min(g.granted, math.MaxUint32)), //nolint:gosec // bounded
			TokensPerFill: wrapperspb.UInt32(1),
			FillInterval:  durationpb.New(refill + time.Duration(b.number)),
		}}}
	case denyAll:
		blanket = envoytype.RateLimitStrategy_DENY_ALL
	}
	return &envoytype.RateLimitStrategy{Strategy: &envoytype.RateLimitStrategy_BlanketRule_{BlanketRule: blanket}}
}

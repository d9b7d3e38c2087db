package envoyrlqs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	rlqs "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
)

// reporter reports for one Envoy.
type reporter struct {
	*session
	t      *testing.T
	engine *weir.Engine
}

// report reports so many requests of each user, and returns the users that got assignments, and those whose buckets Envoy should
// abandon.
func (r *reporter) report(requests uint64, users ...string) (assigned, abandoned []string) {
	r.t.Helper()
	in := new(rlqs.RateLimitQuotaUsageReports)
	for _, user := range users {
		in.BucketQuotaUsages = append(in.BucketQuotaUsages, &rlqs.RateLimitQuotaUsageReports_BucketQuotaUsage{
			BucketId: &rlqs.BucketId{Bucket: map[string]string{"user": user}}, NumRequestsAllowed: requests,
		})
	}
	out, err := r.session.report(r.t.Context(), r.engine, in, time.Now())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, a := range out.BucketAction {
		if user := a.BucketId.Bucket["user"]; a.GetAbandonAction() != nil {
			abandoned = append(abandoned, user)
		} else {
			assigned = append(assigned, user)
		}
	}
	return assigned, abandoned
}

// strangers returns names that a client of Envoy has made up, the first of which has a number.
func strangers(first, n int, more string) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint("stranger", first+i, more))
	}
	return names
}

func newEngine(t *testing.T) *weir.Engine {
	return scripttest.Engine(t, scripttest.Rules(t, "rules: [{name: api, per: [user], limit: 100, window: 1m}]"))
}

// Names that a client makes up keep no other out of a stream, and users with requests stay in it.
func TestFullSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &reporter{newPool(0).open(""), t, newEngine(t)}
		want := func(what string, got []string, want ...string) {
			t.Helper()
			if !slices.Equal(got, want) {
				t.Errorf("%s: got %.100q, want %.100q", what, got, want)
			}
		}
		used := func(user string, want int64) {
			t.Helper()
			if u, err := r.engine.Usage(t.Context(), "api", weir.Attributes("user", user)); err != nil || u.Used != want {
				t.Errorf("%s: got %d hits, %v, want %d", user, u.Used, err, want)
			}
		}
		r.report(0, "ann", "bob")
		for i := range 3 {
			time.Sleep(time.Second)
			_, abandoned := r.report(1, strangers(i*maxBuckets/2, maxBuckets/2, "")...)
			if slices.Contains(abandoned, "ann") {
				t.Error("a user with requests has to go")
			}
			r.report(1, "ann")
		}
		oldest := strangers(maxBuckets/2+1, 3, "") // those before them made way for ann and others
		assigned, abandoned := r.report(1, "new")
		want("a new user's assignment", assigned, "new")
		want("for whom one goes", abandoned, oldest[0])
		assigned, abandoned = r.report(0, "bob")
		want("a bucket without requests", assigned)
		want("which goes first", abandoned, "bob")
		used("bob", 25) // what was assigned counts

		// What is reported of a bucket that has to go was assigned, and counts once.
		time.Sleep(time.Second)
		all := strangers(2*maxBuckets, maxBuckets, "")
		r.report(1, all...)
		used(all[0], 25)
		_, abandoned = r.report(1, append(all, "new")...)
		want("the first of too many", abandoned, all[0])
		used(all[0], 25)
		if len(r.buckets) != maxBuckets || r.idle.Len() != maxBuckets {
			t.Errorf("got %d buckets, want %d", len(r.buckets), maxBuckets)
		}

		// A minute without requests ends a bucket, once, also if a message has it twice.
		time.Sleep(2 * time.Minute)
		if _, abandoned = r.report(0, append(all[1:], append(all[1:], "new")...)...); len(abandoned) != maxBuckets || r.bytes != 0 {
			t.Errorf("got %d abandoned, and %d bytes that are left, want %d and none", len(abandoned), r.bytes, maxBuckets)
		}
	})
}

// Streams share the memory of buckets: those of one Envoy keep out no other Envoy, and large ids take no more than small ones.
func TestFullPool(t *testing.T) {
	t.Parallel()
	p, engine := newPool(1<<20), newEngine(t)
	var all [4]*reporter
	for i := range all {
		all[i] = &reporter{p.open("a"), t, engine}
		for n := range 4 {
			all[i].report(1, strangers(1000*i+100*n, 100, strings.Repeat("x", 1000*n))...)
		}
		if assigned, _ := all[i].report(1, fmt.Sprint("user", i)); len(assigned) != 1 {
			t.Errorf("Envoy %d: a new user got no assignment", i)
		}
	}
	for i, r := range all {
		if r.report(1, "ann"); r.bytes > p.limit || len(r.buckets) < 10 {
			t.Errorf("Envoy %d has %d buckets, in %d of %d bytes", i, len(r.buckets), r.bytes, p.limit)
		}
	}
	if got := p.bytes; got > p.limit || got < p.limit*9/10 {
		t.Errorf("got %d bytes in use, want nearly %d", got, p.limit)
	}
	for _, r := range all {
		r.close()
	}
	if p.bytes != 0 || len(p.shares) != 0 {
		t.Errorf("got %d bytes of %d shares after all have ended", p.bytes, len(p.shares))
	}
}

// A tenant takes no bucket from others who have less of the pool, however many streams it opens: its own have to go, also those of
// streams that report no more.
func TestTenantsShareThePool(t *testing.T) {
	t.Parallel()
	p, engine := newPool(1<<20), newEngine(t) // about 450 buckets
	var greedy [40]*reporter
	for i := range greedy {
		p.open("greedy") // without buckets
		greedy[i] = &reporter{p.open("greedy"), t, engine}
		greedy[i].report(1, strangers(1000*i, 60, "")...)
	}
	other := &reporter{p.open("other"), t, engine}
	users := strangers(100_000, 150, "")
	for round := range 3 {
		if assigned, abandoned := other.report(1, users...); round == 0 && len(assigned) != len(users) || len(abandoned) > 0 {
			t.Errorf("round %d: got %d assignments, and %d abandoned, want %d, and none", round, len(assigned), len(abandoned), len(users))
		}
		for _, r := range greedy {
			select {
			case <-r.crowded:
				r.shrink(new(rlqs.RateLimitQuotaResponse))
			default:
			}
		}
		if p.bytes > p.limit || p.bytes < p.limit*9/10 {
			t.Errorf("round %d: got %d bytes in use, want nearly %d", round, p.bytes, p.limit)
		}
		for i, r := range greedy {
			if r.report(1, strangers(1000*i, 60, "")...); len(r.buckets) < 5 {
				t.Errorf("round %d: stream %d has %d buckets, want its part of half the pool", round, i, len(r.buckets))
			}
		}
	}
}

package peer

import (
	"time"

	"github.com/juju/ratelimit"
)

// jujuRatelimit is a bucket that fills in ticks.
func jujuRatelimit() []Peer {
	return []Peer{{
		Name: "juju/ratelimit in a sync.Map", Module: "github.com/juju/ratelimit", Keys: true, Clock: true,
		New: func(c Config) (Limiter, error) {
			var clock ratelimit.Clock // nil: the machine's
			if c.Now != nil {
				clock = jujuClock(c.Now)
			}
			// By hand what NewBucketWithRate searches for with every bucket.
			quantum := max(1, c.Quota/int64(c.Window/time.Microsecond))
			bucket := func() *ratelimit.Bucket {
				return ratelimit.NewBucketWithQuantumAndClock(c.Window/time.Duration(c.Quota/quantum), c.Quota, quantum, clock)
			}
			return each(bucket, func(b *ratelimit.Bucket) bool { return b.TakeAvailable(1) == 1 }), nil
		},
	}}
}

// jujuClock is a clock that is only ever read.
type jujuClock func() time.Time

func (c jujuClock) Now() time.Time    { return c() }
func (jujuClock) Sleep(time.Duration) {}

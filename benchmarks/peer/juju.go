package peer

import (
	"time"

	"github.com/juju/ratelimit"
)

// jujuRatelimit returns a bucket that fills in ticks.
func jujuRatelimit() []Peer {
	return []Peer{{
		Name: "juju/ratelimit in a sync.Map", Module: "github.com/juju/ratelimit", Keys: true, Clock: true,
		New: func(c Config) (Limiter, error) {
			var clock ratelimit.Clock // nil is the machine's clock
			if c.Now != nil {
				clock = jujuClock(c.Now)
			}
			// NewBucketWithRate would search for these numbers with every bucket.
			quantum := max(1, c.Quota/int64(c.Window/time.Microsecond))
			bucket := func() *ratelimit.Bucket {
				return ratelimit.NewBucketWithQuantumAndClock(c.Window/time.Duration(c.Quota/quantum), c.Quota, quantum, clock)
			}
			return each(bucket, func(b *ratelimit.Bucket) bool { return b.TakeAvailable(1) == 1 }), nil
		},
	}}
}

// jujuClock is a clock that only supports Now.
type jujuClock func() time.Time

func (c jujuClock) Now() time.Time    { return c() }
func (jujuClock) Sleep(time.Duration) {}

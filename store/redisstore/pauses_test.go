package redisstore_test

import (
	"context"
	"time"

	"github.com/weirhq/weir/internal/redistest"
)

// pause is a time for which the machine did not run a loop.
type pause struct{ from, to time.Time }

type pauses []pause

// watch watches for pauses until ctx is done.
func (p *pauses) watch(ctx context.Context) {
	const tick = time.Millisecond
	for last := time.Now(); ctx.Err() == nil; {
		time.Sleep(tick)
		now := time.Now()
		if now.Sub(last) > 2*tick {
			*p = append(*p, pause{last.Add(tick), now})
		}
		last = now
	}
}

// during returns how much of a time was pauses.
func (p pauses) during(from, to time.Time) (all time.Duration) {
	for _, one := range p {
		if one.from.Before(to) && one.to.After(from) {
			begin, end := one.from, one.to
			if begin.Before(from) {
				begin = from
			}
			if end.After(to) {
				end = to
			}
			all += end.Sub(begin)
		}
	}
	return all
}

func (p pauses) longest() (most time.Duration) {
	for _, one := range p {
		most = max(most, one.to.Sub(one.from))
	}
	return most
}

// waits are the times in which the threads of a process were ready to run and had
// no core.
type waits map[string]pauses

// watch watches a process until ctx is done.
func (w waits) watch(ctx context.Context, pid int) {
	for last := redistest.Waited(pid); ctx.Err() == nil; {
		time.Sleep(time.Millisecond)
		now, waited := time.Now(), redistest.Waited(pid)
		for thread, sum := range waited {
			if d := sum - last[thread]; d > 2*time.Millisecond {
				w[thread] = append(w[thread], pause{now.Add(-d), now})
			}
		}
		last = waited
	}
}

// during returns for how much of a time a thread waited, at most.
func (w waits) during(from, to time.Time) (most time.Duration) {
	for _, one := range w {
		most = max(most, one.during(from, to))
	}
	return most
}

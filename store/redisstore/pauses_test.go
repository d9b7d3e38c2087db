package redisstore_test

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync"
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
		time.Sleep(4 * time.Millisecond) // reading costs a tenth of that
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

// machine is what the machine did not run of this process and of its children.
type machine struct {
	loop    pauses
	stolen  pauses // cores that the host of a virtual machine ran something else on
	threads waits
	servers []waits
}

// watch watches until ctx is done.
func (m *machine) watch(ctx context.Context) {
	var watching sync.WaitGroup
	m.threads = waits{}
	watching.Go(func() { m.loop.watch(ctx) })
	watching.Go(func() { m.stolen.watchHost(ctx) })
	watching.Go(func() { m.threads.watch(ctx, os.Getpid()) })
	for _, pid := range redistest.Children() {
		server := waits{}
		m.servers = append(m.servers, server)
		watching.Go(func() { server.watch(ctx, pid) })
	}
	watching.Wait()
}

// during returns for how much of a time the machine ran something else, at most: a
// call waits for this process and for a server.
func (m *machine) during(from, to time.Time) time.Duration {
	var servers time.Duration
	for _, one := range m.servers {
		servers = max(servers, one.during(from, to))
	}
	return max(m.loop.during(from, to), m.threads.during(from, to)) + servers + m.stolen.during(from, to)
}

// watchHost watches what a host says that it took away, until ctx is done.
func (p *pauses) watchHost(ctx context.Context) {
	for last := stolen(); ctx.Err() == nil; {
		time.Sleep(4 * time.Millisecond)
		now, sum := time.Now(), stolen()
		if sum > last {
			*p = append(*p, pause{now.Add(last - sum - 10*time.Millisecond), now})
		}
		last = sum
	}
}

// stolen returns how much time of all cores the host of a virtual machine has taken
// away, to a hundredth of a second. It is 0 where the system does not tell.
func stolen() time.Duration {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b[:min(len(b), 200)]))
	if len(fields) < 9 {
		return 0
	}
	ticks, _ := strconv.Atoi(fields[8])
	return time.Duration(ticks) * 10 * time.Millisecond
}

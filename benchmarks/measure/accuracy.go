package measure

import (
	"time"

	"github.com/weirhq/weir/benchmarks/peer"
)

// Judge plays a trace to a limiter and compares its answers with an exact log. A
// peer with a settable clock gets the time of the trace. Another peer gets the
// trace faster, by scale, with a window that is shorter by the same factor.
func Judge(p peer.Peer, t Trace, quota int, window time.Duration, scale int) (*Oracle, error) {
	if p.Clock {
		return judgeVirtual(p, t, quota, window)
	}
	return judgeReal(p, t, quota, window, scale)
}

func judgeVirtual(p peer.Peer, t Trace, quota int, window time.Duration) (*Oracle, error) {
	// A whole number of windows after the epoch, so that boundaries are where the
	// trace expects them.
	base := time.Unix(0, 0).Add(time.Duration(1<<20) * window)
	now := base
	l, err := p.New(peer.Config{Quota: int64(quota), Window: window, Now: func() time.Time { return now }})
	if err != nil {
		return nil, err
	}
	defer l.Stop()
	o := NewOracle(quota, window)
	for _, at := range t.At {
		now = base.Add(at)
		o.See(at, l.Allow(peer.HotKey))
	}
	return o, nil
}

// judgeReal waits for each arrival, and reads its time just before the call. If
// the machine is late, several arrivals come together.
func judgeReal(p peer.Peer, t Trace, quota int, window time.Duration, scale int) (*Oracle, error) {
	window /= time.Duration(scale)
	l, err := p.New(peer.Config{Quota: int64(quota), Window: window})
	if err != nil {
		return nil, err
	}
	defer l.Stop()
	o := NewOracle(quota, window)
	start := time.Now().Truncate(window).Add(2 * window)
	for _, at := range t.At {
		if wait := time.Until(start.Add(at / time.Duration(scale))); wait > 0 {
			time.Sleep(wait)
		}
		now := time.Since(start)
		o.See(now, l.Allow(peer.HotKey))
	}
	return o, nil
}

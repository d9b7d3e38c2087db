package events

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/kept"
)

const (
	leaseEvery = 2 * time.Second  // the interval between two renewals
	leaseSure  = 6 * time.Second  // how long after a renewal its holder sends
	leaseOver  = 10 * time.Second // how long others wait for a renewal
	leaseField = "sender"
)

// leader holds a lease of the instances on a store: the one whose name is in the register. It renews the lease
// by changing its value. Others take it when the value stays the same for leaseOver by their own clock, so that
// clocks need not agree.
type leader struct {
	instance string
	follower kept.Follower
	now      string       // the value; used by run only
	sure     atomic.Int64 // until when this instance may send, in nanoseconds since begun
	begun    time.Time
}

func newLeader(s kept.Store, instance string) *leader {
	l := &leader{instance: instance, begun: time.Now()}
	l.follower = kept.Follower{Store: s, Name: historyName + "-lease", Apply: func(p kept.Page) {
		if p.Again {
			l.now = ""
		}
		for i := range p.Fields {
			l.now = p.Values[i]
		}
	}}
	return l
}

// leads reports whether this instance may send. A nil leader always does.
func (l *leader) leads() bool { return l == nil || int64(time.Since(l.begun)) < l.sure.Load() }

// run takes and renews the lease until ctx is done, and then gives it up.
func (l *leader) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	last, since := "", time.Now()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			l.release(context.WithoutCancel(ctx))
			return
		case <-timer.C:
		}
		timer.Reset(leaseEvery)
		asked := time.Since(l.begun)
		mine := false
		err := l.follower.Change(ctx, "", func() (fields, values []string, err error) {
			if l.now != last {
				last, since = l.now, time.Now()
			}
			owner, _, _ := strings.Cut(l.now, " ")
			if mine = owner == "" || owner == l.instance || time.Since(since) > leaseOver; !mine {
				return nil, nil, nil
			}
			return []string{leaseField}, []string{l.instance + " " + strconv.Itoa(n)}, nil
		})
		if err == nil && mine && strings.HasPrefix(l.now, l.instance+" ") {
			last, since = l.now, time.Now()
			l.sure.Store(int64(asked + leaseSure))
		} else if err == nil {
			l.sure.Store(0)
		}
	}
}

// release gives the lease up.
func (l *leader) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	l.sure.Store(0)
	_ = l.follower.Change(ctx, "", func() (fields, values []string, err error) { // it ends by itself otherwise
		if !strings.HasPrefix(l.now, l.instance+" ") {
			return nil, nil, nil
		}
		return []string{leaseField}, []string{""}, nil
	})
}

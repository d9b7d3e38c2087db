package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/leasestore"
	"github.com/weirhq/weir/store/pgstore"
	"github.com/weirhq/weir/store/redisstore"
	"github.com/weirhq/weir/window"
)

// nodeVar is the variable that makes a process a node.
const nodeVar = "WEIR_DRILL_NODE"

// node is what a node process does.
type node struct {
	Store   string // URL
	Limit   int64
	Window  time.Duration
	Lease   int64 // of [window.Limit]
	Nodes   int
	Key     string
	Rate    []step
	Burst   int           // as many calls at once, as often as the rate says
	Start   int64         // when the load begins, by mono; 0: it is read from the standard input
	For     time.Duration // how long it lasts
	Workers int
	PPM     float64 // by which the clock of the node runs fast
	Journal string
	Room    int
	Denials string // the journal of denials, if there is one
	Second  int64  // the quota of a second limit of each call, in an hour, which is not leased; 0: there is none

	LateSettles float64 // the part of the calls that give leases back that wait for up to LateBy
	LateBy      time.Duration
}

// step is the rate, in calls a second, from an instant after the start on.
type step struct {
	At   time.Duration
	Rate float64
}

// due returns the calls that are due by t after the start.
func due(rate []step, t time.Duration) (n float64) {
	for i, s := range rate {
		if s.At >= t {
			break
		}
		end := t
		if i+1 < len(rate) {
			end = min(end, rate[i+1].At)
		}
		n += s.Rate * (end - s.At).Seconds()
	}
	return n
}

// tap journals what the shared store decides, and counts its calls.
type tap struct {
	store.Store
	*journal
	node *node
}

func (t tap) Do(ctx context.Context, calls []store.Call) error {
	t.calls.Add(int64(len(calls)))
	if calls[0].Verb == store.Settle && rand.Float64() < t.node.LateSettles {
		time.Sleep(time.Duration(rand.Int64N(int64(t.node.LateBy))))
	}
	from := mono()
	err := t.Store.Do(ctx, calls)
	to := mono()
	for i := range calls {
		if c := &calls[i]; err == nil && c.Err == nil && c.Verb == store.Take && allowed(c.Ops) {
			for _, op := range c.Ops {
				if op.Space == first && !op.UpTo { // as many as fit: what was admitted on credit before
					t.admit(from, to, op.N)
				}
			}
		}
	}
	return err
}

// allowed reports whether all of ops are.
func allowed(ops []store.Op) bool {
	return !slices.ContainsFunc(ops, func(op store.Op) bool { return !op.Result.Allowed })
}

func open(url string) (store.Store, error) {
	if strings.HasPrefix(url, "postgres") {
		return pgstore.Open(context.Background(), url)
	}
	return redisstore.Open(context.Background(), url)
}

var (
	first  = store.NewSpace("", "drill", "drill", 0)
	second = store.NewSpace("", "second", "second", 0)
)

// limits returns the ops of a call.
func (n *node) limits() []store.Op {
	limit := window.Limit{Quota: n.Limit, Window: window.Sliding(n.Window), Lease: n.Lease}
	ops := []store.Op{{Space: first, Limit: window.MustCompile(limit), Key: []byte(n.Key), N: 1}}
	if n.Second > 0 {
		limit = window.Limit{Quota: n.Second, Window: window.Fixed(time.Hour)}
		ops = append(ops, store.Op{Space: second, Limit: window.MustCompile(limit), Key: []byte(n.Key), N: 1})
	}
	return ops
}

// runNode runs a node, and ends the process.
func runNode(text string) error {
	var n node
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		return err
	}
	j, err := openJournal(n.Journal, n.Room)
	if err != nil {
		return err
	}
	denials := &journal{}
	if n.Denials != "" {
		if denials, err = openJournal(n.Denials, n.Room); err != nil {
			return err
		}
	}
	shared, err := open(n.Store)
	if err != nil {
		return err
	}
	leases := leasestore.New(tap{shared, j, &n}, func() int { return n.Nodes })
	zero, rate := mono(), 1+n.PPM/1e6
	leases.(hook.LeaseAuditor).Audit(
		func() int64 { return int64(float64(mono()-zero) * rate) },
		func(at, hits int64) {
			real := zero + int64(float64(at)/rate)
			j.admit(real, real, hits)
		})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fmt.Println("ready")
	if n.Start == 0 {
		if _, err := fmt.Scan(&n.Start); err != nil {
			return err
		}
	}
	ops := n.limits()
	var all sync.WaitGroup
	for w := range n.Workers {
		all.Go(func() {
			load(ctx, &n, w, func() {
				from := mono()
				calls := []store.Call{{Verb: store.Take, Ops: slices.Clone(ops)}}
				j.offered.Add(1)
				switch err := leases.Do(ctx, calls); {
				case err != nil || calls[0].Err != nil:
					j.failed.Add(1)
				case allowed(calls[0].Ops):
					j.admitted.Add(1)
				default:
					j.denied.Add(1)
					if n.Denials != "" {
						denials.admit(from, mono(), 1)
					}
				}
			})
		})
	}
	all.Wait()
	err = leases.Close()
	l := leases.(hook.Leaser).Leases()
	j.granted.Store(l.Granted)
	j.spent.Store(l.Spent)
	j.dropped.Store(l.Dropped)
	j.lost.Store(l.Lost)
	return err
}

// load makes the calls of one worker of a node.
func load(ctx context.Context, n *node, worker int, call func()) {
	tick := time.NewTicker(2 * time.Millisecond * time.Duration(1+n.Workers/16))
	defer tick.Stop()
	made := 0.0
	if late := mono() - n.Start; late > 0 {
		made = due(n.Rate, time.Duration(late)) / float64(n.Workers)
	}
	made -= float64(worker) / float64(n.Workers)
	for ctx.Err() == nil {
		t := time.Duration(mono() - n.Start)
		if t >= n.For {
			return
		}
		if t > 0 {
			want := due(n.Rate, t) / float64(n.Workers)
			for i := 0; made+1 <= want && ctx.Err() == nil; i++ {
				if i%64 == 63 && time.Duration(mono()-n.Start) >= n.For {
					return
				}
				for range max(n.Burst, 1) {
					call()
				}
				made++
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

func isNode() (string, bool) { return os.LookupEnv(nodeVar) }

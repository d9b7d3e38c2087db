package wire

import (
	"context"
	"math"
	"net"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/window"
)

// Breaker is a breaker.
type Breaker struct{ b breaker }

func (b *Breaker) Open() bool                           { return b.b.open() }
func (b *Breaker) Silent(began, now time.Duration) bool { return b.b.silent(began, now) }
func (b *Breaker) Answered()                            { b.b.answered() }
func (b *Breaker) Openings() uint64                     { return b.b.openings() }

// ServerClock is a serverClock.
type ServerClock struct{ c serverClock }

func (c *ServerClock) Learn(server window.Instant, now time.Duration) { c.c.learn(server, now) }
func (c *ServerClock) At(now time.Duration) window.Instant            { return c.c.at(now) }

// Tally is a tally.
type Tally struct{ t tally }

func (t *Tally) Add(r store.Reason)             { t.t.add(r) }
func (t *Tally) Counts() map[store.Reason]int64 { return t.t.counts() }
func (t *Tally) Sum() int64                     { return t.t.sum() }

// ReasonSaid is reasonSaid.
var ReasonSaid = reasonSaid

// The parser of replies.
var (
	ReplySize = replySize
	ReplyText = replyText
)

// Quickest is a quickest.
type Quickest struct{ q quickest }

func (q *Quickest) Learn(trip, now time.Duration) { q.q.learn(trip, now) }
func (q *Quickest) Get() time.Duration            { return q.q.get() }

// unused is a client that is only closed.
type unused struct{ rueidis.Client }

// Close implements [rueidis.Client].
func (unused) Close() {}

// Keeper is the keeper of a node that has a connection.
type Keeper struct{ k *keeper }

// NewKeeper returns a keeper that calls changed.
func NewKeeper(changed func(Change)) *Keeper {
	n := newNode("node:1", &Config{Changed: changed}, nil)
	n.links[0].Store(&link{Client: unused{}})
	n.keeper = &keeper{node: n, news: make(chan struct{}, 1), ctx: context.Background()}
	return &Keeper{n.keeper}
}

func (k *Keeper) Trip()        { k.k.node.breaker.trip() }
func (k *Keeper) Answered()    { k.k.node.breaker.answered() }
func (k *Keeper) Report()      { k.k.report(nil) }
func (k *Keeper) Connect()     { k.k.node.links[0].Store(&link{Client: unused{}}) }
func (k *Keeper) Use(d Direct) { k.k.node.directs[0].Store(d.d) }
func (k *Keeper) Collect()     { k.k.collect() }
func (k *Keeper) Lose() {
	k.k.node.links[0].Load().lost.Store(true)
	k.k.linkLost()
}

// Watches are watches.
type Watches struct{ w watches }

func (w *Watches) Begin(now time.Duration) bool { return w.w.begin(now) }
func (w *Watches) End()                         { w.w.end() }

// LastTurn returns lastTurn of a train whose steps have landed or not.
func LastTurn(landed ...bool) int { return (&train{landed: landed}).lastTurn() }

// Direct is a direct.
type Direct struct{ d *direct }

// NewNode returns a node with these directs and no other connection. It has no time-out.
// It knows the server's clock.
func NewNode(directs ...Direct) *Node {
	n := newNode("node:1", &Config{}, script.NewCodec("weir"))
	n.links[0].Store(&link{Client: unused{}})
	for i, d := range directs {
		n.directs[i].Store(d.d)
	}
	n.clock.learn(1e15, 0)
	return n
}

// Run has the node decide a step.
func (n *Node) Run(ctx context.Context, s script.Step) error {
	_, err := n.run(ctx, 0, s, false)
	return err
}

// Far returns in how many watches the direct keeps no processor.
func (d Direct) Far() int { return d.d.far }

// NewDirect returns a direct on conn.
func NewDirect(conn net.Conn) Direct {
	d := &direct{conn: conn, patience: time.Minute, look: nothing, free: make(chan struct{}, 1), watches: new(watches)}
	d.watches.others.Store(math.MaxInt64) // no carrier waits in the poller in place of a watch
	d.raw = rawConn(conn)
	d.free <- struct{}{}
	return Direct{d}
}

func (d Direct) Watch()     { d.d.watch() }
func (d Direct) Lost() bool { return d.d.lost.Load() }
func (d Direct) Take() bool { return d.d.take() }

// Eval runs a program by its hash. It needs Take.
func (d Direct) Eval(ctx context.Context, sha string) (reply string, sent bool, err error) {
	return d.d.eval(ctx, &script.Program{SHA: sha}, nil, nil)
}

// EvalAll runs programs by their hashes, and returns the replies that arrive. It needs
// Take.
func (d Direct) EvalAll(ctx context.Context, shas ...string) (replies []string, sent bool, err error) {
	runs := make([]run, len(shas))
	for i, sha := range shas {
		runs[i].program = &script.Program{SHA: sha}
	}
	sent, err = d.d.send(ctx, runs)
	sent = d.d.receive(ctx, runs, sent, err)
	for i := range runs {
		if err = runs[i].err; err != nil {
			break
		}
		replies = append(replies, runs[i].text)
	}
	return replies, sent, err
}

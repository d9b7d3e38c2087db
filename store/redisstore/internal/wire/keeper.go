package wire

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// retryAtMost is the longest pause between two attempts to connect.
	retryAtMost = 500 * time.Millisecond

	// probeEvery is how often a node is asked for its time, so that a loss is
	// noticed without calls. It has probeFor to answer, or the time-out if that is
	// longer, but idleFor at most when no calls wait for it.
	probeEvery = time.Second
	probeFor   = 500 * time.Millisecond
	idleFor    = 900 * time.Millisecond
)

// keeper makes the connections of a node, outside the time of any caller, and
// makes them again when they are lost. While the breaker is open it asks the node
// until it answers. It has one goroutine.
type keeper struct {
	node    *Node
	dialer  *dialer
	find    func(context.Context) (addr string, err error)
	follows bool // find can return another address later

	ctx     context.Context // done when the node is closed
	cancel  context.CancelFunc
	tasks   sync.WaitGroup
	news    chan struct{} // has one when a link was lost or the breaker has opened
	moved   chan struct{} // has one when find may return another address now
	tried   chan struct{} // closed when the first attempt has ended
	trouble atomic.Pointer[error]
	cutOffs atomic.Int64
	empties atomic.Uint64 // how often the last link was lost

	// Of the goroutine alone.
	known  bool          // the first attempt has ended
	at     string        // the address of the links
	since  time.Duration // when the node was cut off; 0: it is not
	missed int64         // the outages by then
	opens  uint64        // how often the breaker had opened by the last report
	lost   uint64        // the empties by then
}

// keep starts a keeper for n. find returns the address to connect to.
func (n *Node) keep(d *dialer, find func(context.Context) (string, error), follows bool) {
	k := &keeper{
		node: n, dialer: d, find: find, follows: follows,
		news: make(chan struct{}, 1), moved: make(chan struct{}, 1), tried: make(chan struct{}),
	}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	n.keeper = k
	k.tasks.Go(k.run)
}

// look wakes the keeper.
func (k *keeper) look() {
	select {
	case k.news <- struct{}{}:
	default:
	}
}

// moves wakes the keeper when find may return another address.
func (k *keeper) moves() {
	select {
	case k.moved <- struct{}{}:
	default:
	}
}

// linkLost wakes the keeper after the loss of a link.
func (k *keeper) linkLost() {
	if k.node.client() == nil {
		k.empties.Add(1)
	}
	k.look()
}

// whyNot returns the error of a call to a node without a connection.
func (k *keeper) whyNot() error {
	if err := k.trouble.Load(); err != nil {
		return fmt.Errorf("no connection: %w", *err)
	}
	select {
	case <-k.tried:
		return errGone
	default:
		return ErrCutOff
	}
}

// refused returns the error of the last attempt to connect, if the server will
// refuse again.
func (k *keeper) refused() error {
	if err := k.trouble.Load(); err != nil {
		return refusal(*err)
	}
	return nil
}

// await waits until the first attempt to connect has ended, or ctx is done.
func (k *keeper) await(ctx context.Context) {
	select {
	case <-k.tried:
	case <-ctx.Done():
	}
}

func (k *keeper) run() {
	probe := time.NewTicker(probeEvery)
	defer probe.Stop()
	pause := breakFor
	for k.ctx.Err() == nil {
		err := k.connect()
		if k.ctx.Err() != nil {
			return
		}
		k.report(err)
		if !k.known {
			k.known = true
			close(k.tried)
		}
		switch {
		case err != nil && k.node.client() == nil:
			k.sleep(pause)
			pause = min(2*pause, retryAtMost)
			continue
		case k.node.breaker.open():
			k.revive()
			continue
		}
		pause = breakFor
		k.wait(probe.C, err != nil)
	}
}

// wait waits for something to do. When a link is missing it waits for breakFor at
// most.
func (k *keeper) wait(probe <-chan time.Time, missing bool) {
	var soon <-chan time.Time
	if missing {
		soon = time.After(breakFor)
	}
	select {
	case <-k.ctx.Done():
	case <-k.news:
	case <-k.moved:
		k.follow()
	case <-soon:
	case <-probe:
		k.probe()
	}
}

// sleep ends early when find may return another address, and reports that.
func (k *keeper) sleep(d time.Duration) (moved bool) {
	select {
	case <-k.ctx.Done():
	case <-k.moved:
		return true
	case <-time.After(d):
	}
	return false
}

// connect makes the links that are missing, one after the other. It returns an
// error when one of them cannot be made.
func (k *keeper) connect() error {
	missing, bare := k.collect()
	if len(missing) == 0 && !bare {
		return nil
	}
	if k.known {
		k.report(nil) // before the attempt, which may take long
	}
	ctx, cancel := context.WithTimeout(k.ctx, connectTimeout)
	defer cancel()
	addr, err := k.find(ctx)
	if err != nil {
		return k.failed(err)
	}
	k.at = addr
	for at, i := range missing {
		// The first one loads the programs. The server refuses the others for the
		// same reason.
		if err := k.make(addr, i, at == 0); err != nil {
			return k.failed(err)
		}
	}
	return k.failed(k.makeDirects(addr))
}

// failed keeps err for the calls that meet no connection.
func (k *keeper) failed(err error) error {
	if err == nil {
		k.trouble.Store(nil)
	} else {
		k.trouble.Store(&err)
	}
	return err
}

// collect removes the connections that are lost. It returns the numbers of the
// links that are missing, and reports whether a direct is. When a link was lost the
// directs mostly were, too, and have not noticed it.
func (k *keeper) collect() (missing []int, bare bool) {
	gone := false
	for i := range k.node.links {
		l := k.node.links[i].Load()
		if l != nil && l.lost.Load() {
			k.drop(i)
			l, gone = nil, true
		}
		if l == nil {
			missing = append(missing, i)
		}
	}
	for i := range k.node.directs {
		if d := k.node.directs[i].Load(); d != nil && d.lost.Load() {
			k.dropDirect(i)
		} else if d != nil && gone {
			k.retireDirect(i)
		}
		bare = bare || k.node.directs[i].Load() == nil
	}
	return missing, bare
}

// drop takes link i away from the calls, and closes it.
func (k *keeper) drop(i int) {
	if l := k.node.links[i].Swap(nil); l != nil {
		k.tasks.Go(l.Close) // it may wait for a second
	}
}

// dropDirect does the same with a direct.
func (k *keeper) dropDirect(i int) {
	if d := k.node.directs[i].Swap(nil); d != nil {
		k.tasks.Go(d.close)
	}
}

// retireDirect takes direct i away from the calls, and closes it when the call that uses
// it has ended: the direct may be newer than the link that was lost.
func (k *keeper) retireDirect(i int) {
	if d := k.node.directs[i].Swap(nil); d != nil {
		k.tasks.Go(func() { d.retire(k.ctx) })
	}
}

// dropAll takes all connections away from the calls, and closes them.
func (k *keeper) dropAll() {
	for i := range k.node.links {
		k.drop(i)
	}
	for i := range k.node.directs {
		k.dropDirect(i)
	}
}

// makeDirects makes the directs that are missing. The links have loaded the
// programs, and checked the server.
func (k *keeper) makeDirects(addr string) error {
	ctx, cancel := context.WithTimeout(k.ctx, connectTimeout)
	defer cancel()
	for i := range k.node.directs {
		if k.node.directs[i].Load() != nil {
			continue
		}
		d, err := k.node.config.direct(ctx, addr, k.dialer, k.look)
		if err != nil {
			return err
		}
		k.node.directs[i].Store(d)
	}
	return nil
}

// make connects link i to addr and gets it ready for calls.
func (k *keeper) make(addr string, i int, loads bool) error {
	l, err := k.node.config.link(addr, k.dialer, k.linkLost)
	if err != nil {
		return err
	}
	err = k.node.warm(k.ctx, l.Client)
	if err == nil && loads {
		err = k.node.load(k.ctx, l.Client)
	}
	if err != nil {
		l.Close()
		return err
	}
	k.node.links[i].Store(l)
	if k.known {
		k.report(nil) // calls go to the node from now on
	}
	return nil
}

// probe asks the node for its time, which nobody waits for. A node that does not
// answer is cut off. A node that follows another one may have a new address.
func (k *keeper) probe() {
	if k.follows {
		k.follow()
	}
	l := k.node.client()
	if l == nil {
		return
	}
	ctx, cancel := context.WithTimeout(k.ctx, max(probeFor, k.node.config.Timeout))
	defer cancel()
	idle := time.AfterFunc(idleFor, func() {
		if k.node.InFlight() == 0 {
			cancel()
		}
	})
	defer idle.Stop()
	if err := k.node.askTime(ctx, l.Client); !answers(err) {
		if ctx.Err() != nil && k.ctx.Err() == nil {
			k.node.breaker.trip()
			k.report(err) // before an answer closes it
		}
		return
	}
	for i := range k.node.directs {
		if d := k.node.directs[i].Load(); d != nil && d.take() {
			d.try(ctx)
		}
	}
}

// follow drops the links when find returns another address.
func (k *keeper) follow() {
	ctx, cancel := context.WithTimeout(k.ctx, connectTimeout)
	defer cancel()
	if addr, err := k.find(ctx); err == nil && addr != k.at {
		k.dropAll()
	}
}

// revive asks the node until it answers within the time-out. When there is no
// answer for long, it drops the links: the other end of them may be gone.
func (k *keeper) revive() {
	n := k.node
	patience := max(time.Second, 2*n.config.Timeout)
	for late := 0; n.breaker.open() && k.ctx.Err() == nil; late++ {
		l := n.client()
		if l == nil {
			return
		}
		began := elapsed()
		ctx, cancel := context.WithTimeout(k.ctx, patience)
		err := n.askTime(ctx, l.Client)
		over := ctx.Err() != nil
		cancel()
		switch {
		case answers(err) && elapsed()-began <= n.config.Timeout:
			n.breaker.answered()
			return
		case answers(err) && late == 0:
			continue // it stood still, and may have answered just now
		case over:
			k.dropAll()
			return
		}
		if k.sleep(breakFor) {
			k.follow()
			return
		}
	}
}

// goes closes a node that has left its cluster.
func (n *Node) goes() {
	n.close()
	if n.keeper.since != 0 {
		n.keeper.end(Change{Addr: n.addr, Gone: true})
	}
}

// close ends the keeper, all connections but those of a caller's client, and the
// calls that travel together.
func (n *Node) close() {
	if k := n.keeper; k != nil {
		k.cancel()
		k.tasks.Wait()
	}
	if n.keeper != nil {
		for i := range n.links {
			if l := n.links[i].Swap(nil); l != nil {
				l.Close()
			}
		}
	}
	for i := range n.directs {
		if d := n.directs[i].Swap(nil); d != nil {
			d.close()
		}
	}
	n.company.close()
	n.confirms.close()
}

// maxStale is how often a step that came too late is sent again, while its caller
// has time: the second time the deadline is right, unless the clock of the server
// has changed again.
const maxStale = 3

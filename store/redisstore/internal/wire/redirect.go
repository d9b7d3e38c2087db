package wire

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/window"
)

// maxRedirects is how often a call is sent on: to where a slot has moved, and
// from there on while it is still moving.
const maxRedirects = 5

// follow calls ask with the node that serves slot, and again with each node that
// the one before sends the call on to. A node that sends a call on has not
// counted it.
func (c *cluster) follow(ctx context.Context, slot int, ask func(n *Node, asking bool) (window.Instant, error)) (window.Instant, error) {
	n, asking := c.slots[slot].Load(), false
	if n == nil {
		c.ask()
		return 0, errNoNode
	}
	for sent := 0; ; sent++ {
		at, err := ask(n, asking)
		next := c.next(ctx, slot, n, err)
		if next.node == nil || sent == maxRedirects || next.later && !pause(ctx, sent) {
			return at, err
		}
		n, asking = next.node, next.asking
	}
}

// RunAll implements [Servers]: each node decides its calls, all nodes at the same
// time. Calls that a node sends on are sent again.
func (c *cluster) RunAll(ctx context.Context, calls []Call) {
	pending := make([]*Call, len(calls))
	to := make([]*Node, len(calls))
	for i := range calls {
		pending[i], to[i] = &calls[i], c.slots[calls[i].Slot].Load()
	}
	for sent := 0; ; sent++ {
		c.runOnNodes(ctx, pending, to)
		again, wait := 0, false
		for i, call := range pending {
			next := c.next(ctx, call.Slot, to[i], call.Err)
			if next.node == nil {
				continue
			}
			call.asking = next.asking
			pending[again], to[again] = call, next.node
			again++
			wait = wait || next.later
		}
		pending, to = pending[:again], to[:again]
		if again == 0 || sent == maxRedirects || wait && !pause(ctx, sent) {
			return
		}
	}
}

// runOnNodes has each call decided by its node.
func (c *cluster) runOnNodes(ctx context.Context, calls []*Call, to []*Node) {
	var nodes []*Node
	var parts [][]*Call
	for i, call := range calls {
		at := slices.Index(nodes, to[i])
		switch {
		case to[i] == nil:
			call.Err = errNoNode
			continue
		case at < 0:
			at = len(nodes)
			nodes, parts = append(nodes, to[i]), append(parts, nil)
		}
		parts[at] = append(parts[at], call)
	}
	var others sync.WaitGroup
	for i, n := range nodes {
		if i > 0 {
			others.Go(func() { n.runAll(ctx, parts[i]) })
		}
	}
	if len(nodes) > 0 {
		nodes[0].runAll(ctx, parts[0])
	}
	others.Wait()
}

// onward is where a node sends a call on to.
type onward struct {
	node   *Node // nil: nowhere
	asking bool  // the slot is on its way there
	later  bool  // after a pause
}

// next returns where n sends a call for slot on to, which ended with err there.
func (c *cluster) next(ctx context.Context, slot int, n *Node, err error) onward {
	if err == nil || errors.Is(err, store.ErrRepeated) {
		return onward{}
	}
	c.ask()
	text, answered := said(err)
	if n == nil || !answered {
		return onward{}
	}
	switch verb, addr := redirect(text, n.addr); verb {
	case "MOVED":
		return onward{node: c.moved(ctx, slot, addr)}
	case "ASK":
		return onward{node: c.asking(ctx, addr), asking: true}
	case "TRYAGAIN": // some keys of the call have moved, others not yet
		return onward{node: n, later: true}
	}
	return onward{}
}

// pause waits before a call is sent again for the time after so many. It returns false when
// ctx is done.
func pause(ctx context.Context, sent int) bool {
	select {
	case <-time.After(time.Millisecond << sent):
		return true
	case <-ctx.Done():
		return false
	}
}

// moved returns the node at addr, which serves slot now. A node that is new gets
// the slot's other calls when it has connections; this one waits for them.
func (c *cluster) moved(ctx context.Context, slot int, addr string) *Node {
	c.ask()
	n := c.node(addr)
	n.manager.await(ctx)
	if n.ready() {
		c.slots[slot].Store(n)
	}
	return n
}

// asking returns the node at addr, which a slot is on its way to.
func (c *cluster) asking(ctx context.Context, addr string) *Node {
	n := c.node(addr)
	n.asked.Store(int64(elapsed()))
	n.manager.await(ctx)
	return n
}

// redirected reports whether a node has answered that a call belongs to another
// node, or must come again. That is no outage.
func redirected(err error) bool {
	text, _ := said(err)
	switch firstWord(text) {
	case "MOVED", "ASK", "TRYAGAIN":
		return true
	}
	return false
}

// said returns the text of the error that a server has answered, and reports
// whether err is one: of the client's library, or of a step in a batch.
func said(err error) (text string, ok bool) {
	if err == nil {
		return "", false
	}
	var own *script.ServerError
	if errors.As(err, &own) {
		return own.Text, true
	}
	var library *rueidis.RedisError
	if errors.As(err, &library) {
		return library.Error(), true
	}
	return "", false
}

func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

// redirect returns the first word of a node's answer, and the address in it. An
// address without a host means the node's own.
func redirect(text, own string) (verb, addr string) {
	verb = firstWord(text)
	if verb != "MOVED" && verb != "ASK" {
		return verb, ""
	}
	words := strings.Fields(text)
	if len(words) < 3 {
		return "", ""
	}
	colon := strings.LastIndexByte(words[2], ':')
	if colon < 0 {
		return "", ""
	}
	return verb, join(words[2][:colon], words[2][colon+1:], own)
}

// join returns host and port as an address. An empty host is that of own.
func join(host, port, own string) string {
	host = strings.Trim(host, "[]")
	if host == "" || host == "?" {
		host, _, _ = net.SplitHostPort(own)
	}
	return net.JoinHostPort(host, port)
}

package wire

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/redis/rueidis"

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
		text, answered := said(err)
		if !answered || sent == maxRedirects {
			if err != nil {
				c.ask()
			}
			return at, err
		}
		switch verb, addr := redirect(text, n.addr); verb {
		case "MOVED":
			n, asking = c.moved(ctx, slot, addr), false
		case "ASK":
			n, asking = c.asking(ctx, addr), true
		case "TRYAGAIN":
			// Some keys of the call have moved, others not yet.
			select {
			case <-time.After(time.Millisecond << sent):
			case <-ctx.Done():
				return at, err
			}
		default:
			c.ask()
			return at, err
		}
	}
}

// moved returns the node at addr, which serves slot now. A node that is new gets
// the slot's other calls when it has connections; this one waits for them.
func (c *cluster) moved(ctx context.Context, slot int, addr string) *Node {
	c.ask()
	n := c.node(addr)
	n.keeper.await(ctx)
	if n.ready() {
		c.slots[slot].Store(n)
	}
	return n
}

// asking returns the node at addr, which a slot is on its way to.
func (c *cluster) asking(ctx context.Context, addr string) *Node {
	n := c.node(addr)
	n.asked.Store(int64(elapsed()))
	n.keeper.await(ctx)
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
// whether err is one: of the client's library, or of a direct or a step in a run.
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

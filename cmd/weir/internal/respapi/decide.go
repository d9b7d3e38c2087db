package respapi

import (
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/sizes"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/receipt"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// batch is the commands that are decided together.
type batch struct {
	pending   []pending
	items     []weir.Item
	throttles []throttleCall
}

// pending is a command whose reply is not written yet.
type pending struct {
	command int
	at      int // in items or in throttles
}

// The memory of a request, in bytes, while it is decided with others. Up to smallBatch of it, of the
// commands that were read, and of replies that are not written are not counted for a connection.
const (
	itemBytes     = 1 << 10 // for each command
	usageBytes    = 512     // for each rule that matches one
	smallBatch    = 16 << 10
	maxSpareItems = 24 // commands whose memory a connection keeps for its next batch
)

// verbs maps commands to verbs.
var verbs = [...]store.Verb{
	cmdTake: store.Take, cmdCheck: store.Check, cmdRecord: store.Record, cmdRefund: store.Refund,
	cmdSettle: store.Settle, cmdCancel: store.Cancel, cmdRenew: store.Renew,
}

// add adds a command that the engine decides to the batch:
//
//	WEIR.TAKE|CHECK|RECORD  [HITS n] attribute value …
//	WEIR.REFUND             [HITS n | FEEDBACK event] attribute value …
//	WEIR.SETTLE             receipt [HITS n] attribute value …
//	WEIR.CANCEL|RENEW       receipt [HITS n] attribute value …
func (c *conn) add(command int, args []string) error {
	verb := verbs[command]
	r := weir.Request{Hits: 1}
	if verb.NeedsReceipt() {
		r.Hits = 0
		var err error
		if r.Receipt, err = receipt.Parse(args[0]); err != nil {
			return err
		}
		args = args[1:]
	}
	switch option := args[0]; {
	case len(args) < 2:
	case strings.EqualFold(option, "HITS"):
		n, err := strconv.ParseInt(args[1], 10, 64)
		switch {
		case err != nil || n < 0 || n > window.MaxHits:
			return fault.Newf("hits", "%.32q: want a whole number from 0 to %d", args[1], window.MaxHits)
		case n == 0 && verb.NeedsReceipt():
			return fault.Newf("hits", "0: use WEIR.CANCEL to give back what was held")
		case n == 0:
			verb, n = store.Check, 1
		}
		r.Hits = n
		args = args[2:]
	case verb == store.Refund && strings.EqualFold(option, "FEEDBACK"):
		if r.Feedback = args[1]; r.Feedback == "" || len(args[1]) > sizes.Text {
			return fault.Newf("feedback", "want the name of an event, of at most %d bytes", sizes.Text)
		}
		args = args[2:]
	default:
		for i := 2; i < len(args); i += 2 {
			if args[i] == "HITS" || args[i] == "FEEDBACK" && verb == store.Refund {
				return fault.Newf("", "%s after attributes: want it before them; if it is the name of an attribute, begin with HITS n", args[i])
			}
		}
	}
	from := len(c.attributes)
	if err := c.pairs(args); err != nil {
		clear(c.attributes[from:]) // otherwise they would keep the text
		c.attributes = c.attributes[:from]
		return err
	}
	r.Attributes = c.attributes[from:len(c.attributes):len(c.attributes)]
	b := &c.batch
	b.pending = append(b.pending, pending{command, len(b.items)})
	if len(b.items) < cap(b.items) {
		b.items = b.items[:len(b.items)+1]
		item := &b.items[len(b.items)-1]
		item.Verb, item.Request, item.Err = verb, r, nil
	} else {
		b.items = append(b.items, weir.Item{Verb: verb, Request: r})
	}
	return nil
}

// pairs appends the attributes in args, which alternate names and values.
func (c *conn) pairs(args []string) error {
	from := len(c.attributes)
	if len(args)%2 != 0 {
		return fault.Newf("attributes", "%.64q has no value: want names and values in turn", args[len(args)-1])
	}
	for i := 0; i < len(args); i += 2 {
		name, value := args[i], args[i+1]
		if f := answer.AttributeFault(c.attributes[from:], name, value); f != nil {
			return f.In("attributes")
		}
		c.attributes = append(c.attributes, weir.Attribute{Name: name, Value: value})
	}
	return nil
}

// settle decides the batch and writes its replies.
func (c *conn) settle() {
	b := &c.batch
	if len(b.pending) == 0 {
		return
	}
	err := c.decideBatch(false)
	for _, p := range b.pending {
		if err != nil {
			c.failed(p.command, err)
		} else {
			c.replyTo(p)
		}
	}
	c.drop()
	c.works.Shrink(int64(cap(c.out.b)))
}

// replyTo replies to a command of the batch that was decided.
func (c *conn) replyTo(p pending) {
	if statesLimit(p.command) {
		c.replyThrottle(p.command, &c.batch.throttles[p.at])
	} else {
		c.reply(p.command, &c.batch.items[p.at])
	}
}

// drop empties the batch. It keeps little memory.
func (c *conn) drop() {
	b := &c.batch
	clear(c.attributes)
	clear(b.throttles)
	b.items = answer.Spare(b.items, maxSpareItems)
	b.pending, b.throttles, c.attributes = b.pending[:0], b.throttles[:0], c.attributes[:0]
	if max(cap(b.pending), cap(b.throttles), cap(c.attributes)/4) > maxSpareItems {
		*b, c.attributes = batch{}, nil
	}
}

// decideBatch decides the batch. An error is the reply to all of its commands. With
// together the error of one command is that of all, and then nothing is counted. The
// commands of a batch are few, or their memory is reserved until the replies are written.
func (c *conn) decideBatch(together bool) error {
	b, resources := &c.batch, c.server.c.Resources
	if err := resources.Begin(); err != nil {
		return err
	}
	defer resources.End()
	reserve := func(n int64) error {
		if n <= smallBatch {
			return nil
		}
		return c.works.Reserve(n)
	}
	if err := reserve(int64(len(b.pending)) * itemBytes); err != nil {
		return err
	}
	_, err := c.namespace.Run(c.server.life, b.items, run.Options{Admit: func(s run.Size) error {
		if together {
			for i := range b.items {
				if err := b.items[i].Err; err != nil {
					return err
				}
			}
		}
		return reserve(int64(s.Usages)*usageBytes + s.Text)
	}})
	if len(b.items) == 1 && b.items[0].Err != nil && !together {
		err = nil // it is in the item
	}
	if err == nil {
		runThrottles(c.server.life, b.throttles, c.server.c.Shared)
	}
	return err
}

// reply replies to a command that the engine has decided.
func (c *conn) reply(command int, item *weir.Item) {
	if item.Err != nil {
		c.failed(command, item.Err)
		return
	}
	d := &item.Decision
	if item.Verb.NeedsReceipt() {
		found := int64(0)
		for i := range d.Usages {
			if d.Usages[i].Held {
				found++
			}
		}
		c.out.integer(found)
		return
	}
	if !c.out.three {
		c.out.array(5)
		c.out.boolean(d.Allowed)
		c.out.bulk(d.Outcome)
		c.out.bulk(d.Rule)
		c.out.seconds(d.RetryAfter)
		c.out.bulk(d.Receipt.String())
		return
	}
	c.out.fields(7)
	c.out.bulk("allowed").boolean(d.Allowed)
	c.out.bulk("outcome").bulk(d.Outcome)
	c.out.bulk("rule").bulk(d.Rule)
	c.out.bulk("retry_after").seconds(d.RetryAfter)
	c.out.bulk("receipt").bulk(d.Receipt.String())
	c.out.bulk("unmatched").boolean(d.Unmatched)
	c.out.bulk("degraded").bulk(string(d.DegradedReason))
}

// usage answers WEIR.USAGE rule [attribute value …].
func (c *conn) usage(args []string) error {
	from := len(c.attributes)
	defer func() {
		clear(c.attributes[from:])
		c.attributes = c.attributes[:from]
	}()
	if err := c.pairs(args[1:]); err != nil {
		return err
	}
	if err := c.server.c.Resources.Begin(); err != nil {
		return err
	}
	defer c.server.c.Resources.End()
	u, err := c.namespace.Engine().Usage(c.server.life, args[0], c.attributes[from:])
	if err != nil {
		return err
	}
	fields := 6
	limit := u.Kind == rule.KindLimit
	if limit {
		fields += 2
	}
	if u.BannedUntil > 0 {
		fields++
	}
	c.out.fields(fields)
	c.out.bulk("kind").bulk(u.Kind.String())
	c.out.bulk("key").bulk(u.Key)
	c.out.bulk("used").integer(u.Used)
	if limit {
		c.out.bulk("quota").integer(u.Quota)
		c.out.bulk("remaining").integer(u.Remaining)
	}
	c.out.bulk("reset_after").seconds(u.ResetAfter)
	c.out.bulk("holds").integer(int64(u.Holds))
	c.out.bulk("strikes").integer(u.Strikes)
	if u.BannedUntil > 0 {
		c.out.bulk("banned_until").integer(int64(u.BannedUntil) / int64(time.Second/time.Microsecond))
	}
	return nil
}

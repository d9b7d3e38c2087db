package respapi

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weirhq/weir/cmd/weir/internal/access"
)

// transaction is the commands between MULTI and EXEC. Clients send these around a
// pipeline. The commands are decided by EXEC as one batch, in order, or none of them.
type transaction struct {
	open   bool
	failed bool // a command was refused: EXEC will be refused, too
	queue  []queued
	bytes  int
	memory access.Reservation // for bytes above smallBatch
}

// queued is a command that waits for EXEC.
type queued struct {
	command int
	args    []string
}

// Resource limits of a transaction. It has as many commands as a batch.
const (
	maxTransaction = 1 << 20 // bytes
	queuedBytes    = 64      // of a command, without its arguments
	argumentBytes  = 16      // of an argument, without its text
)

// enqueue adds a command to the transaction.
func (c *conn) enqueue(command int, args []string) error {
	t := &c.transaction
	if command > cmdEcho { // about the connection: it may change the caller or the namespace of the others
		return fmt.Errorf("%s inside MULTI is not allowed", specs[command].name)
	}
	if t.failed {
		c.out.simple("QUEUED") // as Redis answers; EXEC returns the error
		return nil
	}
	if len(t.queue) == maxBatch {
		return fmt.Errorf("a transaction has at most %d commands", maxBatch)
	}
	text := strings.Join(args, "") // not the text of the batch, which is larger
	bytes := queuedBytes + len(text) + argumentBytes*len(args)
	if t.bytes += bytes; t.bytes > maxTransaction {
		return fmt.Errorf("a transaction has at most %d bytes", maxTransaction)
	}
	if t.bytes > smallBatch {
		if err := t.memory.Reserve(int64(bytes + argumentBytes*len(args))); err != nil { // EXEC makes attributes of them
			return err
		}
	}
	own := make([]string, len(args))
	for i, a := range args {
		own[i], text = text[:len(a)], text[len(a):]
	}
	t.queue = append(t.queue, queued{command, own})
	c.out.simple("QUEUED")
	return nil
}

// multi answers MULTI.
func (c *conn) multi() {
	c.transaction = transaction{open: true, memory: access.Reservation{Resources: c.server.c.Resources, Caller: c.caller}}
	c.out.simple("OK")
}

// refuse marks the transaction, if there is one, so that EXEC is refused. It frees the queued
// commands.
func (t *transaction) refuse() {
	t.memory.Free()
	t.failed, t.queue, t.bytes = true, nil, 0
}

// discard ends the transaction. Nothing of it is counted.
func (c *conn) discard() error {
	if !c.transaction.open {
		return errors.New("DISCARD without MULTI")
	}
	c.endTransaction()
	c.out.simple("OK")
	return nil
}

// endTransaction drops the transaction, if there is one.
func (c *conn) endTransaction() {
	c.transaction.memory.Free()
	c.transaction = transaction{}
}

// exec answers EXEC. If one command has an error, nothing is counted.
func (c *conn) exec() error {
	t := &c.transaction
	if !t.open {
		return errors.New("EXEC without MULTI")
	}
	defer c.endTransaction()
	defer c.drop()
	if t.failed {
		c.server.commands[cmdExec].failed.Add(1)
		c.out.fail("EXECABORT Transaction discarded because of previous errors.") // the text of Redis
		return nil
	}
	at, err := c.prepare()
	if err == nil {
		if err = c.decideBatch(true); err != nil {
			at = c.wrong()
		}
	}
	if err != nil {
		text := "EXECABORT Transaction discarded: "
		if at >= 0 {
			text += fmt.Sprintf("command %d: ", at+1)
		}
		c.server.commands[cmdExec].failed.Add(1)
		c.out.fail(text + errorText(err))
		return nil
	}
	c.out.array(len(t.queue))
	for _, p := range c.batch.pending {
		if p.command < cmdUsage || statesLimit(p.command) {
			c.replyTo(p)
		} else if err := c.now(p.command, t.queue[p.at].args); err != nil {
			c.failed(p.command, err)
		}
	}
	if len(c.out.b) > maxReplies && !c.flush() { // while its memory is reserved
		c.ended = true
	}
	return nil
}

// prepare makes the transaction the batch. With an error it returns the number of the
// command that has it.
func (c *conn) prepare() (at int, err error) {
	queue, reply := c.transaction.queue, len(c.out.b)
	for i, q := range queue { // before the others: these use the same memory
		if q.command == cmdUsage || q.command == cmdPing {
			err := c.now(q.command, q.args)
			c.out.b = c.out.b[:reply]
			if err != nil {
				return i, err
			}
		}
	}
	attributes := 0
	for _, q := range queue {
		attributes += len(q.args) / 2
	}
	c.attributes = slices.Grow(c.attributes, attributes) // once, for what is reserved
	for i, q := range queue {
		err := c.admit(specs[q.command].need) // a token may have been revoked
		switch {
		case err != nil:
		case q.command < cmdUsage:
			err = c.add(q.command, q.args)
		case statesLimit(q.command):
			err = c.throttle(q.command, q.args)
		default:
			c.batch.pending = append(c.batch.pending, pending{q.command, i})
		}
		if err != nil {
			return i, err
		}
	}
	return -1, nil
}

// wrong returns the number of the first command of the batch that has an error, or -1.
func (c *conn) wrong() int {
	for i, p := range c.batch.pending {
		if p.command < cmdUsage && c.batch.items[p.at].Err != nil {
			return i
		}
	}
	return -1
}

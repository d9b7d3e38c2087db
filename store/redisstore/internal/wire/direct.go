package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weirhq/weir/store/redisstore/internal/script"
)

// direct is a connection for one goroutine at a time. The goroutine that asks
// writes commands and reads the replies: it waits for no other goroutine, which on
// a [link] takes as long as the rest of a short call. A caller who gives up leaves
// the replies to a goroutine of the direct, and closes nothing. It is safe for
// concurrent use.
type direct struct {
	conn     net.Conn
	patience time.Duration // how long a reply that no caller waits for may take
	free     chan struct{} // has one while the direct is not in use
	lost     atomic.Bool
	look     func()          // called when it is lost
	raw      syscall.RawConn // nil where carriers do not watch conn
	watches  *watches

	// Of the one who uses it.
	out    []byte    // the commands
	wrote  int       // bytes of them
	in     []byte    // what was read of the replies to them
	ends   []int     // of the replies in in that are whole
	owed   int       // replies that have not arrived whole
	broken bool      // what was read is no reply, or no more can be written
	far    int       // watches in which it keeps no processor
	until  time.Time // the deadline of conn
}

// direct connects to the server at addr, and gets the connection ready for calls.
// It calls lost when the connection ends.
func (c *Config) direct(ctx context.Context, addr string, d *dialer, lost func()) (*direct, error) {
	conn, err := d.dial(ctx, addr, c.TLS)
	if err != nil {
		return nil, err
	}
	// A store that is closed does not wait for the server's greeting.
	defer context.AfterFunc(d.ctx, func() { _ = conn.Close() })()
	dc := &direct{
		conn: conn, patience: deadAfter + 2*c.Timeout, look: lost,
		free: make(chan struct{}, 1), in: make([]byte, 0, 4<<10),
		raw: rawConn(conn), watches: &d.watches,
	}
	if err := dc.greet(ctx, c); err != nil {
		_ = conn.Close()
		return nil, err
	}
	dc.free <- struct{}{}
	return dc, nil
}

// greet logs in, and chooses the connection's name and its database.
func (d *direct) greet(ctx context.Context, c *Config) error {
	hello := []string{"HELLO", "2"}
	if c.Password != "" {
		hello = append(hello, "AUTH", "default", c.Password)
		if c.Username != "" {
			hello[3] = c.Username
		}
	}
	if c.ClientName != "" {
		hello = append(hello, "SETNAME", c.ClientName)
	}
	greetings := [][]string{hello}
	if c.DB != 0 {
		greetings = append(greetings, []string{"SELECT", strconv.Itoa(c.DB)})
	}
	for _, words := range greetings {
		d.out = appendCommand(d.out[:0], words...)
		if _, err := d.exchange(ctx, 1); err != nil {
			return err
		}
		if _, err := d.reply(0); err != nil {
			return err
		}
	}
	return nil
}

// take reports whether the caller can use d now. It calls release, or leaves that
// to drain.
func (d *direct) take() bool {
	if d.lost.Load() {
		return false
	}
	select {
	case <-d.free:
		return true
	default:
		return false
	}
}

func (d *direct) release() { d.free <- struct{}{} }

// eval runs a program. It reports whether the server may have got the command. It
// needs take, and ends with release.
func (d *direct) eval(ctx context.Context, p *script.Program, keys, args []string) (reply string, sent bool, err error) {
	d.out = appendEvalsha(d.out[:0], p, keys, args)
	sent, err = d.exchange(ctx, 1)
	if err == nil {
		reply, err = d.reply(0)
	}
	d.leave(ctx)
	return reply, sent, err
}

// try asks the server for its time, so that a loss is noticed without calls. It
// needs take, and ends with release.
func (d *direct) try(ctx context.Context) {
	d.out = appendCommand(d.out[:0], "TIME")
	_, _ = d.exchange(ctx, 1)
	d.leave(ctx)
}

// leave ends the use of d, and calls release or leaves that to drain. A caller whose
// time was over before the first byte was written closes nothing.
func (d *direct) leave(ctx context.Context) {
	over := ctx.Err() != nil
	switch {
	case d.owed == 0:
		d.release()
	case d.wrote == 0 && !d.broken && (over || d.past()):
		d.release()
	case d.wrote == len(d.out) && over && !d.broken && !d.lost.Load():
		go d.drain()
	default:
		d.end()
		d.release()
	}
}

// past reports whether the deadline of conn is over. The context that it is from may
// end a little later.
func (d *direct) past() bool { return d.until.After(time.Time{}) && !time.Now().Before(d.until) }

// exchange sends the commands in out, and waits for so many replies to them until ctx
// is done. It reports whether the server may have got a whole command. When it returns
// an error, some of the replies may have arrived: see reply.
func (d *direct) exchange(ctx context.Context, replies int) (sent bool, err error) {
	if sent, err = d.post(ctx, replies); err != nil {
		return sent, err
	}
	return true, d.await(ctx)
}

// post sends the commands in out, to which the server owes so many replies. It reports
// whether the server may have got a whole command.
func (d *direct) post(ctx context.Context, replies int) (sent bool, err error) {
	d.in, d.ends, d.owed, d.wrote, d.broken = d.in[:0], d.ends[:0], replies, 0, false
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if stop := d.heed(ctx); stop != nil {
		defer stop()
	}
	d.wrote, err = d.conn.Write(d.out)
	if err != nil {
		_, d.broken = d.conn.(*tls.Conn)       // TLS does not go on after that
		return d.wrote > 0 && replies > 1, err // a single command that was not written whole is none
	}
	return true, nil
}

// await reads the replies that the server owes, until ctx is done.
func (d *direct) await(ctx context.Context) error {
	if err := d.divide(); err != nil || d.owed == 0 {
		return err
	}
	if stop := d.heed(ctx); stop != nil {
		defer stop()
	}
	for d.owed > 0 {
		if err := d.read(ctx); err != nil {
			return err
		}
		if err := d.divide(); err != nil {
			return err
		}
	}
	return nil
}

// divide finds the replies that have arrived whole.
func (d *direct) divide() error {
	for d.owed > 0 {
		from := 0
		if n := len(d.ends); n > 0 {
			from = d.ends[n-1]
		}
		size, err := replySize(d.in[from:])
		if err != nil {
			d.broken = true
			return err
		}
		if size == 0 {
			return nil
		}
		d.ends = append(d.ends, from+size)
		d.owed--
	}
	return nil
}

// reply returns the text of a reply that has arrived, below len(ends), or its error.
func (d *direct) reply(i int) (string, error) {
	from := 0
	if i > 0 {
		from = d.ends[i-1]
	}
	return replyText(d.in[from:d.ends[i]])
}

// heed has reads and writes end with ctx. The caller calls the function that it
// returns, unless that is nil, before it leaves d.
func (d *direct) heed(ctx context.Context) func() {
	end, _ := ctx.Deadline()
	if !end.Equal(d.until) {
		d.until = end
		_ = d.conn.SetDeadline(end) // the next write or read tells
	}
	switch c := ctx.(type) {
	case *decision:
		return nil
	case *both:
		ctx = c.caller // the rest of it is in the deadline
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = d.conn.SetDeadline(time.Unix(1, 0))
		close(done)
	})
	return func() {
		if !stop() {
			<-done
			d.until = time.Time{}.Add(1) // no deadline that a context has
		}
	}
}

// read reads some bytes to in. A deadline that passes before ctx is done is put
// off: answers may be there that this program had no time to read, see [Timer].
func (d *direct) read(ctx context.Context) error {
	if len(d.in) == cap(d.in) {
		d.in = append(d.in, 0)[:len(d.in)]
	}
	for {
		n, err := d.conn.Read(d.in[len(d.in):cap(d.in)])
		d.in = d.in[:len(d.in)+n]
		switch {
		case n > 0:
			return nil
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		d.until = time.Now().Add(time.Millisecond)
		_ = d.conn.SetDeadline(d.until)
	}
}

// drain reads the replies that a caller has not waited for, so that the direct can
// be used again.
func (d *direct) drain() {
	defer d.release()
	ctx, cancel := context.WithTimeout(context.Background(), d.patience)
	defer cancel()
	d.until, _ = ctx.Deadline()
	_ = d.conn.SetDeadline(d.until)
	for {
		err := d.divide()
		if err == nil && d.owed > 0 {
			err = d.read(ctx)
		}
		if err != nil {
			d.end()
			return
		}
		if d.owed == 0 {
			return
		}
	}
}

// end closes the connection. Who uses it gets an error.
func (d *direct) end() {
	d.hangUp()
	if !d.lost.Swap(true) {
		d.look()
	}
}

// close closes the connection, and waits for the one who uses it.
func (d *direct) close() {
	d.lost.Store(true)
	d.hangUp()
	<-d.free
}

// hangUp closes the connection without a farewell of TLS. That would wait for a server that
// does not read, up to five seconds.
func (d *direct) hangUp() {
	if secure, ok := d.conn.(*tls.Conn); ok {
		_ = secure.NetConn().Close()
		return
	}
	_ = d.conn.Close()
}

// retire closes the connection when the one who uses it has left, or ctx is done.
func (d *direct) retire(ctx context.Context) {
	select {
	case <-d.free:
	case <-ctx.Done():
		d.close()
		return
	}
	d.lost.Store(true)
	d.hangUp()
}

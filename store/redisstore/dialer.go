package redisstore

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// connectTimeout is how long making a connection may take: far longer than a
// call waits, because a busy server is slow at this.
const connectTimeout = time.Second

// dialer connects to servers on behalf of calls that cannot wait until it is
// done. A call that gives up leaves its connection to the one after it.
type dialer struct {
	ctx   context.Context // done when the dialer is closed
	close context.CancelFunc
	dials sync.WaitGroup

	mu     sync.Mutex
	places map[string]*place // guarded by mu; by address
}

// place is one address.
type place struct {
	dialing int         // guarded by dialer.mu
	dialed  chan dialed // has room for one whose caller has gone
}

type dialed struct {
	conn net.Conn
	err  error
}

// maxDials is how many connections to one address are made at the same time.
const maxDials = 4

func newDialer() *dialer {
	d := &dialer{places: map[string]*place{}}
	d.ctx, d.close = context.WithCancel(context.Background())
	return d
}

// dial returns a connection that this call or one before it has asked for.
func (d *dialer) dial(ctx context.Context, addr string, config *tls.Config) (net.Conn, error) {
	p := d.place(addr)
	select {
	case r := <-p.dialed:
		if r.err == nil {
			return r.conn, nil
		} // what was wrong then may be right by now
	default:
	}
	d.start(p, addr, config)
	select {
	case r := <-p.dialed:
		return r.conn, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-d.ctx.Done():
		return nil, net.ErrClosed
	}
}

func (d *dialer) place(addr string) *place {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.places[addr]
	if p == nil {
		p = &place{dialed: make(chan dialed, 1)}
		d.places[addr] = p
	}
	return p
}

func (d *dialer) start(p *place, addr string, config *tls.Config) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.dialing == maxDials || d.ctx.Err() != nil {
		return
	}
	p.dialing++
	d.dials.Go(func() {
		conn, err := connect(d.ctx, addr, config)
		d.mu.Lock()
		p.dialing--
		d.mu.Unlock()
		p.leave(conn, err)
	})
}

// leave hands a connection to the caller that waits or comes next; where one
// is waiting for that already, this one is not needed.
func (p *place) leave(conn net.Conn, err error) {
	select {
	case p.dialed <- dialed{conn, err}:
	default:
		if conn != nil {
			conn.Close()
		}
	}
}

func connect(ctx context.Context, addr string, config *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	network := "tcp"
	if addr[0] == '/' {
		network = "unix"
	}
	plain := &net.Dialer{KeepAlive: time.Second}
	if config == nil {
		return plain.DialContext(ctx, network, addr)
	}
	// It takes the server's name from the address where config has none.
	return (&tls.Dialer{NetDialer: plain, Config: config}).DialContext(ctx, network, addr)
}

// stop ends all dials and closes what nobody has asked for.
func (d *dialer) stop() {
	d.close()
	d.dials.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.places {
		select {
		case r := <-p.dialed:
			if r.conn != nil {
				r.conn.Close()
			}
		default:
		}
	}
}

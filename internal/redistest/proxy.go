package redistest

import (
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy forwards bytes between a client and a server, and breaks connections on demand. Its methods are safe for concurrent use.
type Proxy struct {
	listener net.Listener
	done     chan struct{} // closed when the proxy ends
	pumps    sync.WaitGroup

	mu      sync.Mutex
	target  string            // guarded by mu
	conns   map[net.Conn]bool // guarded by mu; both ends of all that passes
	delay   time.Duration     // guarded by mu
	cut     bool              // guarded by mu
	torn    float64           // guarded by mu
	before  func(string)      // guarded by mu; called before a chunk is forwarded, or nil
	flowing chan struct{}     // guarded by mu; closed while bytes pass
}

// Through starts a proxy in front of n.
func Through(t testing.TB, n *Node) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", loopback(0))
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{
		target: n.Addr(), listener: l, done: make(chan struct{}),
		conns: map[net.Conn]bool{}, flowing: make(chan struct{}),
	}
	close(p.flowing)
	p.pumps.Go(p.accept)
	t.Cleanup(func() {
		close(p.done)
		l.Close()
		p.Reset()
		p.pumps.Wait()
	})
	return p
}

// Addr returns the address that clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// To makes new connections lead to n.
func (p *Proxy) To(n *Node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = n.Addr()
}

// Delay makes every byte arrive d later, in both directions.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Tear breaks connections in the middle of a transfer: for this share of all chunks, only a part of random
// length arrives, and the connection is closed.
func (p *Proxy) Tear(share float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.torn = share
}

// Before makes the proxy call f before it forwards each chunk, in either direction, with the address
// of the sender. Several connections may call it at the same time.
func (p *Proxy) Before(f func(from string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before = f
}

// Reset closes all connections; new ones pass.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset instead of an orderly close
		}
		c.Close()
	}
	clear(p.conns)
}

// Cut closes all connections, and new ones as soon as they are made, until Heal.
func (p *Proxy) Cut() {
	p.mu.Lock()
	p.cut = true
	p.mu.Unlock()
	p.Reset()
}

// Hold holds all bytes back until Heal, while connections stay open and new ones are accepted, as in a
// network that loses every packet. The bytes arrive after Heal.
func (p *Proxy) Hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.flowing:
		p.flowing = make(chan struct{})
	default:
	}
}

// Heal ends a Delay, a Cut, a Tear and a Hold.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay, p.cut, p.torn = 0, false, 0
	select {
	case <-p.flowing:
	default:
		close(p.flowing)
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		target := p.target
		p.mu.Unlock()
		server, err := net.DialTimeout("tcp", target, patience)
		if err != nil {
			client.Close()
			continue
		}
		if !p.add(client, server) {
			continue
		}
		p.pumps.Go(func() { p.pump(client, server) })
		p.pumps.Go(func() { p.pump(server, client) })
	}
}

// add registers the two ends of a connection, or closes them.
func (p *Proxy) add(ends ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range ends {
		if p.cut {
			c.Close()
		} else {
			p.conns[c] = true
		}
	}
	return !p.cut
}

// chunk is the bytes of one read, with the time at which they arrive at the other end.
type chunk struct {
	bytes []byte
	due   time.Time
}

// pump forwards bytes from one end to the other until either closes.
func (p *Proxy) pump(from, to net.Conn) {
	chunks := make(chan chunk, 1024)
	p.pumps.Go(func() {
		defer to.Close()
		for c := range chunks {
			if !p.wait(c.due) {
				break
			}
			p.mu.Lock()
			before := p.before
			p.mu.Unlock()
			if before != nil {
				before(from.RemoteAddr().String())
			}
			if _, err := to.Write(c.bytes); err != nil {
				break
			}
		}
		from.Close()
		for range chunks { // until the reader has ended
		}
	})
	defer close(chunks)
	for {
		b := make([]byte, 16<<10)
		n, err := from.Read(b)
		if n > 0 {
			p.mu.Lock()
			due, torn := time.Now().Add(p.delay), rand.Float64() < p.torn
			p.mu.Unlock()
			if torn {
				chunks <- chunk{b[:rand.IntN(n)], due}
				return
			}
			chunks <- chunk{b[:n], due}
		}
		if err != nil {
			return
		}
	}
}

// wait waits for due, and while bytes are held. It returns false when the proxy is
// closed.
func (p *Proxy) wait(due time.Time) bool {
	p.mu.Lock()
	flowing := p.flowing
	p.mu.Unlock()
	select {
	case <-flowing:
	case <-p.done:
		return false
	}
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.done:
		return false
	}
}

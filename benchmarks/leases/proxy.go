package main

import (
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// proxy is a network between nodes and a store.
type proxy struct {
	listener net.Listener

	mu     sync.Mutex
	target string
	delay  time.Duration // of each byte, in each direction
	lose   float64       // the part of the replies before which the connection breaks
	late   float64       // the part of the transfers that takes longer
	longer time.Duration // by up to
	down   bool
	conns  map[net.Conn]bool
}

func newProxy(target string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, target: target, conns: map[net.Conn]bool{}}
	go p.accept()
	return p, nil
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// cut breaks all connections, and refuses new ones until the target is set.
func (p *proxy) cut() {
	p.set(func() {
		p.down = true
		for c := range p.conns {
			c.Close()
		}
		clear(p.conns)
	})
}

func (p *proxy) to(target string) { p.set(func() { p.target, p.down = target, false }) }

func (p *proxy) close() {
	p.listener.Close()
	p.cut()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		target, down := p.target, p.down
		p.mu.Unlock()
		server, err := net.DialTimeout("tcp", target, time.Second)
		if err != nil || down {
			client.Close()
			if err == nil {
				server.Close()
			}
			continue
		}
		p.set(func() {
			p.conns[client], p.conns[server] = true, true
			if p.down {
				client.Close()
				server.Close()
			}
		})
		go p.pump(client, server, false)
		go p.pump(server, client, true)
	}
}

// pump forwards bytes until one end closes.
func (p *proxy) pump(from, to net.Conn, replies bool) {
	type chunk struct {
		bytes []byte
		due   time.Time
	}
	chunks := make(chan chunk, 4096)
	go func() {
		defer to.Close()
		for c := range chunks {
			if d := time.Until(c.due); d > 0 {
				<-time.After(d)
			}
			if _, err := to.Write(c.bytes); err != nil {
				break
			}
		}
		from.Close()
		for range chunks { // until the reader has ended
		}
	}()
	defer close(chunks)
	for {
		b := make([]byte, 16<<10)
		n, err := from.Read(b)
		if err != nil {
			p.set(func() { delete(p.conns, from) })
			return
		}
		p.mu.Lock()
		delay, lost := p.delay, replies && rand.Float64() < p.lose
		if rand.Float64() < p.late {
			delay += time.Duration(rand.Int64N(int64(p.longer)))
		}
		p.mu.Unlock()
		if lost {
			return
		}
		chunks <- chunk{b[:n], time.Now().Add(delay)}
	}
}

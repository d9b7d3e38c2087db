package grpcserver

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
)

// guest is a connection, as the calls on it see it. It implements
// [credentials.AuthInfo], because this is what gRPC hands from a connection to
// its calls.
type guest struct {
	credentials.CommonAuthInfo
	address string // of the client, with a port
	tls     *tls.ConnectionState
	work    func(by int32) // may be nil

	// For the inbox, which is never nil.
	inbox    *inbox
	conn     net.Conn
	pending  atomic.Int64 // bytes of messages that are not complete
	progress atomic.Int64 // when one was completed, or the first bytes of one came; in Unix nanoseconds
	opened   atomic.Int64 // calls whose head has come
	begun    atomic.Int64 // calls that were begun
	calls    atomic.Int64 // under way
	expected atomic.Int64 // calls that wait for their only message
	gone     atomic.Bool

	given, kept atomic.Int64 // calls that the client gave up at once, and those that were answered

	streams streams
	sending atomic.Int64 // messages that calls are sending
	written atomic.Int64 // frames with parts of answers
	seen    int64        // written, at the last patrol; guarded by inbox.mu
	stuck   time.Time    // since when nothing was written that the client should take, or zero; guarded by inbox.mu
}

// AuthType implements [credentials.AuthInfo].
func (g *guest) AuthType() string {
	if g.tls != nil {
		return "tls"
	}
	return "insecure"
}

// doorway makes a guest of each connection, with TLS or without.
type doorway struct {
	credentials.TransportCredentials // for TLS; nil: none
	working                          func(net.Conn) func(by int32)
	inbox                            *inbox
}

// newCredentials returns the credentials of a server.
func newCredentials(c Config, in *inbox) credentials.TransportCredentials {
	d := &doorway{working: c.Working, inbox: in}
	if c.Certs != nil {
		d.TransportCredentials = credentials.NewTLS(c.Certs.Config("h2"))
	}
	return d
}

// ServerHandshake implements [credentials.TransportCredentials].
func (d *doorway) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	g := &guest{address: raw.RemoteAddr().String(), inbox: d.inbox, conn: raw}
	conn := raw
	a, ok := raw.(*arrival)
	if ok {
		conn = a.Conn
	}
	g.SecurityLevel = credentials.NoSecurity
	if d.working != nil {
		g.work = d.working(conn)
	}
	if d.TransportCredentials == nil {
		return enter(raw, a, g), g, nil
	}
	inside, info, err := d.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	if t, ok := info.(credentials.TLSInfo); ok {
		g.tls, g.SecurityLevel = &t.State, t.SecurityLevel
	}
	return enter(inside, a, g), g, nil
}

// enter returns conn, which came as a, with its data counted. Without a it is nobody's to
// close, and is not counted.
func enter(conn net.Conn, a *arrival, g *guest) net.Conn {
	if a == nil {
		return conn
	}
	g.inbox.enter(g)
	a.guest.Store(g)
	return &incoming{Conn: conn, guest: g, in: frames{skip: preface}}
}

// ClientHandshake implements [credentials.TransportCredentials]. These credentials
// are a server's.
func (d *doorway) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("grpcserver: credentials of a server")
}

// Info implements [credentials.TransportCredentials].
func (d *doorway) Info() credentials.ProtocolInfo {
	if d.TransportCredentials == nil {
		return credentials.ProtocolInfo{SecurityProtocol: "insecure"}
	}
	return d.TransportCredentials.Info()
}

// Clone implements [credentials.TransportCredentials].
func (d *doorway) Clone() credentials.TransportCredentials {
	c := *d
	if d.TransportCredentials != nil {
		c.TransportCredentials = d.TransportCredentials.Clone()
	}
	return &c
}

// OverrideServerName implements [credentials.TransportCredentials]. It does
// nothing.
func (d *doorway) OverrideServerName(string) error { return nil }

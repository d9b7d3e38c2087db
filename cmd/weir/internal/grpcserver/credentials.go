package grpcserver

import (
	"crypto/tls"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// transportCredentials hands each [connection] to its calls, with TLS or without.
type transportCredentials struct {
	credentials.TransportCredentials
	working func(net.Conn) func(by int32) // may be nil
}

// newCredentials returns the credentials of a server.
func newCredentials(c Config) credentials.TransportCredentials {
	t := transportCredentials{insecure.NewCredentials(), c.Working}
	if c.Certs != nil {
		t.TransportCredentials = credentials.NewTLS(c.Certs.Config("h2"))
	}
	return t
}

// ServerHandshake implements [credentials.TransportCredentials].
func (t transportCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := t.TransportCredentials.ServerHandshake(raw)
	c, ok := raw.(*connection)
	if err != nil || !ok {
		return conn, info, err
	}
	c.SecurityLevel = credentials.NoSecurity
	if t.working != nil {
		c.work = t.working(c.Conn)
	}
	if i, ok := info.(credentials.TLSInfo); ok {
		c.tlsInfo, c.SecurityLevel = &i, i.SecurityLevel
	}
	return conn, c, nil
}

// Clone implements [credentials.TransportCredentials].
func (t transportCredentials) Clone() credentials.TransportCredentials {
	return transportCredentials{t.TransportCredentials.Clone(), t.working}
}

// tlsState returns the state of TLS of c, or nil.
func (c *connection) tlsState() *tls.ConnectionState {
	if c.tlsInfo == nil {
		return nil
	}
	return &c.tlsInfo.State
}

package access

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/files"
)

// Certificates loads what listeners need for TLS, and loads it again on request.
// Make one with [OpenCertificates]. It is safe for concurrent use.
type Certificates struct {
	cert, key, clients string // paths
	current            atomic.Pointer[tls.Config]
	until              atomic.Int64 // Unix seconds
	tried              attempt
	fault              error // of that attempt
}

// maxPEM is the largest file of certificates or keys, in bytes.
const maxPEM = 8 << 20

// OpenCertificates reads the certificate chain at cert, its private key at key
// and, unless clients is empty, the authorities at clients. Every client must
// then show a certificate that one of these authorities has signed. All files are
// PEM.
func OpenCertificates(cert, key, clients string) (*Certificates, error) {
	c := &Certificates{cert: cert, key: key, clients: clients}
	_, err := c.Reload()
	return c, err
}

// Paths returns the files that c reads.
func (c *Certificates) Paths() []string {
	paths := []string{c.cert, c.key}
	if c.clients != "" {
		paths = append(paths, c.clients)
	}
	return paths
}

// Until returns when the certificate expires.
func (c *Certificates) Until() time.Time { return time.Unix(c.until.Load(), 0) }

// Reload reads the files again, and reports whether they differ from what was
// read last. If one has a fault, what is in force stays, and the fault is returned as
// long as the files have it. New connections use what was read last. Reload must not be
// called concurrently.
func (c *Certificates) Reload() (changed bool, err error) {
	defer func() { c.fault = err }()
	var contents [][]byte
	for _, path := range c.Paths() {
		b, readErr := files.Read(path, maxPEM)
		contents, err = append(contents, b), errors.Join(err, readErr)
	}
	if c.tried.same(err, contents...) {
		return false, c.fault
	}
	if err != nil {
		return true, err
	}
	pair, err := tls.X509KeyPair(contents[0], contents[1])
	if err != nil {
		return true, fmt.Errorf("%s, %s: %w; want a chain of certificates and the private key of the first one, in PEM", c.cert, c.key, err)
	}
	next := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	if c.clients != "" {
		next.ClientCAs = x509.NewCertPool()
		if !next.ClientCAs.AppendCertsFromPEM(contents[2]) {
			return true, fmt.Errorf("%s: holds no certificate in PEM", c.clients)
		}
		next.ClientAuth = tls.RequireAndVerifyClientCert
	}
	c.current.Store(next)
	c.until.Store(pair.Leaf.NotAfter.Unix())
	return true, nil
}

// Config returns the configuration of a listener that offers protocols, such as
// h2 and http/1.1. It uses what was read last for each connection. Sessions are
// not resumed, so that a client's certificate is verified on every connection. A connection
// with a method Verified has that called when its client's part of the handshake has arrived.
func (c *Certificates) Config(protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: protocols,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			now := c.current.Load().Clone()
			now.NextProtos = protocols
			now.SessionTicketsDisabled = c.clients != ""
			if of, ok := hello.Conn.(interface{ Verified(protocol string) }); ok {
				now.VerifyConnection = func(s tls.ConnectionState) error { of.Verified(s.NegotiatedProtocol); return nil }
			}
			return now, nil
		},
		// http.Server wants to know that there is a certificate.
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &c.current.Load().Certificates[0], nil
		},
	}
}

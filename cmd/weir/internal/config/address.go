package config

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Address is the address and the protocol of a listener.
type Address struct {
	// Scheme is "http"; "https", for TLS; "h2c", for HTTP/2 without TLS and
	// HTTP/1.1; or "unix", for HTTP on a Unix socket.
	Scheme string

	// Host is host:port, or the path of a Unix socket.
	Host string
}

// ParseAddress reads an address: host:port, http://host:port, https://host:port,
// h2c://host:port or unix:PATH. An empty host means all interfaces.
func ParseAddress(text string) (Address, error) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		path = strings.TrimPrefix(path, "//")
		if path == "" {
			return Address{}, fmt.Errorf("%q: want unix: and the path of a socket", text)
		}
		return Address{"unix", path}, nil
	}
	a := Address{"http", text}
	if scheme, host, ok := strings.Cut(text, "://"); ok {
		a = Address{scheme, strings.TrimSuffix(host, "/")}
	}
	if a.Scheme != "http" && a.Scheme != "https" && a.Scheme != "h2c" {
		return a, fmt.Errorf("%q: want host:port, https://host:port, h2c://host:port or unix:PATH", text)
	}
	_, port, err := net.SplitHostPort(a.Host)
	if err != nil {
		return a, fmt.Errorf("%q: not host:port, such as 127.0.0.1:8080", text)
	}
	n, err := strconv.Atoi(port)
	switch {
	case err != nil:
		return a, fmt.Errorf("%q: port is not a number", text)
	case n < 0 || n > 65535:
		return a, fmt.Errorf("%q: port out of range 0 to 65535", text)
	}
	return a, nil
}

// ParseRESPAddress reads the address of a listener that speaks the protocol of Redis:
// host:port, redis://host:port, rediss://host:port for TLS, or unix:PATH. The scheme of
// an address with TLS is https, as that of the other listeners.
func ParseRESPAddress(text string) (Address, error) {
	plain := text
	if host, ok := strings.CutPrefix(text, "redis://"); ok {
		plain = host
	} else if host, ok := strings.CutPrefix(text, "rediss://"); ok {
		plain = "https://" + host
	} else if strings.Contains(text, "://") && !strings.HasPrefix(text, "unix:") {
		return Address{}, fmt.Errorf("%q: want host:port, rediss://host:port or unix:PATH", text)
	}
	return ParseAddress(plain)
}

// TLS reports whether the listener speaks TLS.
func (a Address) TLS() bool { return a.Scheme == "https" }

// Local reports whether only programs on the same machine can reach the address:
// it is a loopback address, localhost, or a Unix socket. A name other than
// localhost is not looked up, and is not local.
func (a Address) Local() bool {
	if a.Scheme == "unix" {
		return true
	}
	host, _, err := net.SplitHostPort(a.Host)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

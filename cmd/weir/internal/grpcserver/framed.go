package grpcserver

import (
	"net"
	"time"
)

// framed is a connection, above its TLS, whose frames of HTTP/2 are followed: grpc-go has no time-out for the headers of a
// call, and keeps them until they are complete.
type framed struct {
	net.Conn
	conn *connection

	left    int     // bytes of the preface, or of the payload of a frame, that have not arrived
	header  [9]byte // of the last frame
	have    int     // bytes of the next one's that have arrived
	headers bool    // those of a call are incomplete
}

// What is needed of HTTP/2 (RFC 9113). Only continuations may follow headers until one has the flag, which
// no other frame of a client has.
const (
	preface      = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	headersFrame = 1
	endHeaders   = 4
)

// Read implements [net.Conn].
func (f *framed) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	for p = p[:n]; len(p) > 0; {
		if f.left > 0 {
			k := min(f.left, len(p))
			f.left, p = f.left-k, p[k:]
		} else {
			k := copy(f.header[f.have:], p)
			if f.have, p = f.have+k, p[k:]; f.have < len(f.header) {
				break
			}
			f.have, f.left = 0, int(f.header[0])<<16|int(f.header[1])<<8|int(f.header[2])
			f.headers = f.headers || f.header[3] == headersFrame
		}
		if f.headers && f.left == 0 && f.header[4]&endHeaders != 0 {
			f.headers = false
			f.conn.headers.Store(0)
		}
	}
	if f.headers && f.conn.headers.Load() == 0 {
		f.conn.headers.Store(time.Now().UnixNano())
	}
	return n, err
}

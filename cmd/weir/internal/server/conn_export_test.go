package server

import "net"

// NewLazyConn exposes newLazyConn.
func NewLazyConn(c net.Conn) net.Conn { return newLazyConn(c) }

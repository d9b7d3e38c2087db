package server

import (
	"net"
	"net/http"
)

// ServeLimited serves h on l, with at most most connections, until the server is closed.
// shed is called for each connection that is closed.
func ServeLimited(l net.Listener, most int, shed func(), h http.Handler) *http.Server {
	s := &http.Server{Handler: &listener{handler: h}, ConnContext: withLimitedConn, Protocols: new(http.Protocols)}
	s.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = s.Serve(newConnLimiter(l, most, true, shed)) }()
	return s
}

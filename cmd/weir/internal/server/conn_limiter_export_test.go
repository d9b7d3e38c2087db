package server

import (
	"net"
	"net/http"
	"time"
)

// MostWaits is how many requests of HTTP/2 may wait for their clients in ServeLimited.
const MostWaits = 10

// MostIncoming is how many bytes that are not a request yet the connections of ServeLimited may have.
const MostIncoming = 100 << 10

// ServeLimited serves h on l, with at most most connections, until the server is closed. New
// connections are spared for grace. shed is called for each connection that is closed.
func ServeLimited(l net.Listener, most int, grace time.Duration, shed func(), h http.Handler) *http.Server {
	s := &http.Server{Handler: &listener{handler: h}, ConnContext: withLimitedConn, Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	limiter := newConnLimiter(l, most, true, shed)
	limiter.grace, limiter.mostWaits = grace, MostWaits
	limiter.incoming.most = MostIncoming
	go func() { _ = s.Serve(limiter) }()
	return s
}

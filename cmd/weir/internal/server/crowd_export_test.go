package server

import (
	"net"
	"net/http"
)

// ServeCrowd serves h on l, with at most most connections, until the server is closed.
// shed is called for each connection that is closed.
func ServeCrowd(l net.Listener, most int, shed func(), h http.Handler) *http.Server {
	s := &http.Server{Handler: hosted(h), ConnContext: withGuest, Protocols: new(http.Protocols)}
	s.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = s.Serve(newCrowd(l, most, true, shed)) }()
	return s
}

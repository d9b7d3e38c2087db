// Package shortcut answers short calls over HTTP/1.1 without the server of net/http,
// which takes several times as long for them as the decision itself. A plain call is a
// POST whose head and body fit into 4 KiB and whose head has nothing that changes how
// HTTP is spoken. The package reads it into an [http.Request], calls an [http.Handler]
// and writes the answer, with the same bytes as net/http.
//
// A [Server] serves a connection as long as all of its calls are plain. At the first
// bytes of another call it passes the connection on, with these bytes and for good, so
// that net/http decides all that is not plain: other methods, chunked bodies, upgrades,
// faults. What is plain is narrower than what net/http accepts, and a fuzz test holds
// the two to the same requests.
package shortcut

package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/koalaapi"
)

// listener is an HTTP server on one address.
type listener struct {
	*http.Server
	at      config.Address
	certs   *access.Certificates // nil without TLS
	socket  net.Listener
	handler http.Handler
	ended   chan struct{} // closed when no connection will be added to open
	open    atomic.Int64  // connections
	leaving atomic.Bool   // each answer closes its connection
}

// linger is how long, at the end, connections that are kept alive have to learn
// from their next answer that they are closed.
const linger = 250 * time.Millisecond

// maxStreams is the maximum number of concurrent requests of one connection with HTTP/2.
const maxStreams = 100

// maxFrame is the largest frame of HTTP/2, in bytes, which takes memory before its bytes arrive: the least that there can be.
const maxFrame = 16 << 10

// listen opens an address, so that one in use is reported before anything is served.
// certs is for addresses with TLS. most is how many connections it may have, incomplete how many bytes these may
// have sent that are not a request yet, and shed is called for each that is refused.
func listen(to config.Listener, certs *access.Certificates, most int, incomplete int64, shed func(), h http.Handler, log *slog.Logger) (*listener, error) {
	socket, err := open(to)
	if err != nil {
		return nil, err
	}
	at := to.Address
	limiter := newConnLimiter(socket, most, refusalOf(to), shed)
	limiter.incoming.most = incomplete
	l := &listener{at: at, certs: certs, socket: limiter, handler: h, ended: make(chan struct{})}
	l.Server = &http.Server{
		ConnContext:       withLimitedConn,
		Handler:           l,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       8 * time.Second, // below WriteTimeout, so that there is time for the answer
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          errorLog(log),
		ConnState:         l.countConns,
		Protocols:         new(http.Protocols),
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams, MaxReadFrameSize: maxFrame},
	}
	l.Protocols.SetHTTP1(true)
	switch at.Scheme {
	case "https":
		l.Protocols.SetHTTP2(true)
		l.TLSConfig = certs.Config("h2", "http/1.1")
	case "h2c":
		l.Protocols.SetUnencryptedHTTP2(true)
	}
	return l, nil
}

// refusalOf returns the answer of l to a connection that is refused.
func refusalOf(l config.Listener) string {
	switch {
	case l.Address.TLS():
		return "" // there was no handshake
	case l.Name == "koala":
		return koalaapi.Refusal()
	}
	return refusal503
}

// ServeHTTP implements [http.Handler]. It marks the connection as busy while a request is
// decided: see [turn].
func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if l.leaving.Load() {
		w.Header().Set("Connection", "close")
	}
	g, _ := r.Context().Value(access.ConnKey{}).(*limitedConn)
	if g == nil {
		l.handler.ServeHTTP(w, r)
		return
	}
	g.settle()
	if r.TLS == nil && g.secure != nil { // net/http does not see it below koala's connections
		state := g.secure.ConnectionState()
		r.TLS = &state
	}
	switch {
	case r.ProtoMajor == 1:
		g.turn.serve(g, l.handler, w, r)
		g.turn = turn{}
	case g.sentAway.Load():
	case r.Context().Err() != nil: // the client gave it up while it waited
		g.givenUp()
	default:
		new(turn).serve(g, l.handler, w, r)
		if r.Context().Err() != nil {
			g.givenUp()
		} else {
			g.kept.Add(1)
		}
	}
}

// open opens the socket of a listener.
func open(l config.Listener) (net.Listener, error) {
	socket, err := bind(l.Address)
	if err != nil {
		return nil, refused(l, err)
	}
	return socket, nil
}

// refused returns the error of a listener whose socket cannot be opened because of err. It suggests what to do about an
// address in use, or one that only root may listen on.
func refused(l config.Listener, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s: %s is in use; end the program that listens there, or choose another address with --%[1]s", l.Flag, l.Address.Host)
	case errors.Is(err, syscall.EACCES) && l.Address.Scheme != "unix":
		return fmt.Errorf("%s: %w; a port below 1024 needs root or the capability CAP_NET_BIND_SERVICE: choose another address with --%[1]s", l.Flag, err)
	}
	return fmt.Errorf("%s: %w", l.Flag, err)
}

// bind opens a socket. A Unix socket belongs to the user and the group of the
// process.
func bind(at config.Address) (net.Listener, error) {
	if at.Scheme != "unix" {
		return net.Listen("tcp", at.Host)
	}
	socket, err := net.Listen("unix", at.Host)
	if errors.Is(err, syscall.EADDRINUSE) && abandoned(at.Host) {
		if err := os.Remove(at.Host); err != nil {
			return nil, err
		}
		socket, err = net.Listen("unix", at.Host)
	}
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(at.Host, 0o660); err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	info, err := os.Lstat(at.Host)
	if err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	socket.(*net.UnixListener).SetUnlinkOnClose(false)
	return unixListener{socket, sync.OnceValue(func() error {
		if now, err := os.Lstat(at.Host); err == nil && os.SameFile(info, now) {
			return errors.Join(os.Remove(at.Host), socket.Close())
		}
		return socket.Close()
	})}, nil
}

// unixListener is a listener on a Unix socket. When it is closed, it removes the socket's file, unless another process
// has replaced that.
type unixListener struct {
	net.Listener
	close func() error // compares the files once, because a closed socket's inode is used again
}

// Close implements [net.Listener].
func (l unixListener) Close() error { return l.close() }

// abandoned reports whether path is a socket on which no process listens: one
// that a killed process left behind.
func abandoned(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != fs.ModeSocket {
		return false
	}
	c, err := net.Dial("unix", path)
	if err == nil {
		_ = c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// wrap replaces the socket by one that f returns. TLS stays outside: f sees
// what clients have encrypted. The listener then speaks HTTP/1.1 only.
func (l *listener) wrap(f func(net.Listener) net.Listener) {
	if l.TLSConfig != nil {
		l.socket = tls.NewListener(l.socket, l.certs.Config("http/1.1"))
		l.TLSConfig = nil
	}
	l.socket = f(l.socket)
}

// countConns maintains l.open.
func (l *listener) countConns(_ net.Conn, s http.ConnState) {
	switch s {
	case http.StateNew:
		l.open.Add(1)
	case http.StateClosed, http.StateHijacked:
		l.open.Add(-1)
	}
}

// serve serves requests until the listener is shut down.
func (l *listener) serve() error {
	defer close(l.ended)
	var err error
	if l.TLSConfig != nil {
		err = l.ServeTLS(l.socket, "", "")
	} else {
		err = l.Serve(l.socket)
	}
	if l.leaving.Load() || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Shutdown accepts no more connections and lets requests in flight finish.
// Unlike [http.Server.Shutdown] it closes a connection that is kept alive only
// after an answer that announces it. Closing one between two requests, as that
// function does, loses the request that the client is sending.
func (l *listener) Shutdown(ctx context.Context) error {
	l.leaving.Store(true)
	err := l.socket.Close()
	select {
	case <-l.ended:
	case <-ctx.Done():
	}
	for end := time.Now().Add(linger); l.open.Load() > 0 && ctx.Err() == nil && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	return errors.Join(err, l.Server.Shutdown(ctx))
}

// Close closes the listener at once, even if it never served.
func (l *listener) Close() error {
	return errors.Join(l.Server.Close(), l.socket.Close())
}

// url returns the address as a URL.
func (l *listener) url() string { return urlOf("http", l.at, l.socket) }

// clientFaultPace is the minimum time between two lines of the log about each kind of fault of
// clients.
const clientFaultPace = 10 * time.Second

// clientFaults lists the prefixes of the lines that net/http logs about faults of clients. Clients without a
// token can cause them.
var clientFaults = [...]string{
	"http: TLS handshake error",
	"http2: server connection error",
	"http2: server: error reading preface",
	"http2: server closing client connection",
	"http2: received GOAWAY",
	"timeout waiting for SETTINGS frames",
	"timeout waiting for PING response",
}

// serverLog logs the lines of an [http.Server] as warnings. Of the lines about
// clients it passes one of each kind in ten seconds, with the number of those that
// it left out before, so that clients cannot fill the log. It is safe for
// concurrent use.
type serverLog struct {
	log   *slog.Logger
	kinds [len(clientFaults)]pacedLine
}

// pacedLine is a line of the log that clients can cause. It is safe for concurrent use.
type pacedLine struct {
	mu   sync.Mutex
	next time.Time // no line before it; guarded by mu
	left int       // lines left out since the last one; guarded by mu
}

// errorLog returns the logger of an [http.Server].
func errorLog(to *slog.Logger) *log.Logger { return log.New(&serverLog{log: to}, "", 0) }

// Write implements [io.Writer]. The log package calls it once for each line.
func (s *serverLog) Write(line []byte) (int, error) {
	text := strings.TrimSuffix(string(line), "\n")
	kind := slices.IndexFunc(clientFaults[:], func(start string) bool { return strings.HasPrefix(text, start) })
	if kind < 0 {
		s.log.Warn(text)
		return len(line), nil
	}
	s.kinds[kind].warn(s.log, text)
	return len(line), nil
}

// warn logs a warning, unless there was one within clientFaultPace. It adds how many were left out
// since then.
func (p *pacedLine) warn(log *slog.Logger, text string, args ...any) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Before(p.next) {
		p.left++
		return
	}
	if p.left > 0 {
		args = append(args, "more", p.left)
	}
	p.left, p.next = 0, now.Add(clientFaultPace)
	log.Warn(text, args...)
}

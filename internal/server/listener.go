package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"
)

// listener is an HTTP server on one address.
type listener struct {
	*http.Server
	socket  net.Listener
	ended   chan struct{} // closed when no connection will be added to open
	open    atomic.Int64  // connections
	leaving atomic.Bool   // each answer closes its connection
}

// linger is how long, at the end, connections that are kept alive have to learn
// from their next answer that they are closed.
const linger = 250 * time.Millisecond

// listen opens the address, so that an address in use is reported before
// anything is served.
func listen(addr string, h http.Handler, log *slog.Logger) (*listener, error) {
	socket, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is in use; end the program that listens there, or choose another address", addr)
	}
	if err != nil {
		return nil, err
	}
	l := &listener{socket: socket, ended: make(chan struct{})}
	l.Server = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if l.leaving.Load() {
				w.Header().Set("Connection", "close")
			}
			h.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       8 * time.Second, // below WriteTimeout, so that there is time for the answer
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ConnState:         l.count,
	}
	return l, nil
}

// count maintains l.open.
func (l *listener) count(_ net.Conn, s http.ConnState) {
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
	err := l.Serve(lazyListener{l.socket})
	if l.leaving.Load() || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Shutdown accepts no more connections and lets requests in flight finish.
// Unlike [http.Server.Shutdown] it closes a connection that is kept alive only
// behind an answer that announces it. Closing one between two requests, as that
// function does, loses the request that the client is sending.
func (l *listener) Shutdown(ctx context.Context) error {
	l.leaving.Store(true)
	err := l.socket.Close()
	<-l.ended
	for end := time.Now().Add(linger); l.open.Load() > 0 && ctx.Err() == nil && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	return errors.Join(err, l.Server.Shutdown(ctx))
}

// Close closes the listener at once, even if it never served.
func (l *listener) Close() error { return errors.Join(l.Server.Close(), l.socket.Close()) }

// url returns the address as a URL.
func (l *listener) url() string { return "http://" + l.socket.Addr().String() }

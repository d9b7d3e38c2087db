package server

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// listener is one address and what answers there.
type listener struct {
	*http.Server
	socket net.Listener
}

// listen takes the address, so that a clash shows before anything is served.
func listen(addr string, h http.Handler, log *slog.Logger) (*listener, error) {
	socket, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &listener{socket: socket, Server: &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}}, nil
}

// serve answers until the listener is shut down.
func (l *listener) serve() error {
	if err := l.Serve(l.socket); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Close ends the listener at once, also one that never served.
func (l *listener) Close() error { return errors.Join(l.Server.Close(), l.socket.Close()) }

func (l *listener) url() string { return "http://" + l.socket.Addr().String() }

package server

import (
	"log"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// strangersEvery is how often the log has a line about each kind of fault of
// clients.
const strangersEvery = 10 * time.Second

// clientFaults lists the starts of the lines that net/http logs about what clients
// do. Clients without a token can cause them.
var clientFaults = [...]string{
	"http: TLS handshake error",
	"http2: server connection error",
	"http2: server closing client connection",
	"http2: received GOAWAY",
	"timeout waiting for SETTINGS frames",
	"timeout waiting for PING response",
}

// strangers passes the lines of an [http.Server] on as warnings. Of the lines about
// clients it passes one of each kind in ten seconds, with the number of those that
// it left out before, so that clients cannot fill the log. It is safe for
// concurrent use.
type strangers struct {
	log *slog.Logger

	mu    sync.Mutex
	kinds [len(clientFaults)]struct { // guarded by mu
		next time.Time // no line before it
		left int       // lines left out since the last one
	}
}

// errorLog returns the logger of an [http.Server].
func errorLog(to *slog.Logger) *log.Logger { return log.New(&strangers{log: to}, "", 0) }

// Write implements [io.Writer]. The log package calls it once for each line.
func (s *strangers) Write(line []byte) (int, error) {
	text := strings.TrimSuffix(string(line), "\n")
	for kind, start := range clientFaults {
		if !strings.HasPrefix(text, start) {
			continue
		}
		switch pass, left := s.pass(kind); {
		case !pass:
		case left > 0:
			s.log.Warn(text, "more", left)
		default:
			s.log.Warn(text)
		}
		return len(line), nil
	}
	s.log.Warn(text)
	return len(line), nil
}

// pass reports whether a line of a kind may pass, and how many were left out since
// the last one that did.
func (s *strangers) pass(kind int) (pass bool, left int) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &s.kinds[kind]
	if now.Before(k.next) {
		k.left++
		return false, 0
	}
	left, k.left, k.next = k.left, 0, now.Add(strangersEvery)
	return true, left
}

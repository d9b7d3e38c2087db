package shortcut_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/shortcut"
)

// service is a Server on pipes, with the server of net/http for the rest.
type service struct {
	*shortcut.Server
	rest  *http.Server
	pipes chan net.Conn
	logs  bytes.Buffer

	open, working, passed atomic.Int64
	enter, leave          chan bool // of calls of /wait
}

// open starts a service. It must be called in a bubble.
func open(t *testing.T) *service {
	s := &service{pipes: make(chan net.Conn), enter: make(chan bool), leave: make(chan bool)}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/wait":
			s.enter <- true
			<-s.leave
		case "/panic":
			panic("no")
		case "/abort":
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, s.working.Load())
	})
	s.rest = &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.passed.Add(1)
		}
	}}
	s.Server = shortcut.New(shortcut.Config{
		Handler: h, Rest: s.rest, ErrorLog: log.New(&s.logs, "", 0), First: 5 * time.Second, Idle: time.Minute, Write: 10 * time.Second,
		Count:   func(by int64) { s.open.Add(by) },
		Working: func(net.Conn) func(int32) { return func(by int32) { s.working.Add(int64(by)) } },
	})
	go func() { _ = s.Serve(s) }()
	t.Cleanup(func() { _ = s.rest.Close(); s.Server.Close(); close(s.pipes) })
	return s
}

// Accept implements [net.Listener].
func (s *service) Accept() (net.Conn, error) {
	if c, ok := <-s.pipes; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

// Close implements [net.Listener].
func (s *service) Close() error { return nil }

// Addr implements [net.Listener].
func (s *service) Addr() net.Addr { return nil }

// client is the far end of a connection.
type client struct {
	net.Conn
	in *bufio.Reader
}

func (s *service) dial() client {
	near, far := net.Pipe()
	s.pipes <- near
	return client{far, bufio.NewReader(far)}
}

const call = "POST /%s HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab"

// ask sends a call and returns the answer in short.
func (c client) ask(path string) string {
	if _, err := fmt.Fprintf(c, call, path); err != nil {
		return err.Error()
	}
	return c.answer()
}

func (c client) answer() string {
	a, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return err.Error()
	}
	defer a.Body.Close()
	body, _ := io.ReadAll(a.Body)
	text := fmt.Sprintf("%d %s", a.StatusCode, body)
	if a.Close {
		text += " close"
	}
	return text
}

// until returns how long the other end keeps the connection open.
func (c client) until() time.Duration {
	began := time.Now()
	_, _ = io.Copy(io.Discard, c.in)
	return time.Since(began)
}

func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func expect[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// Clients have as long for each step as from net/http, and a call that comes in parts is
// answered.
func TestPatience(t *testing.T) {
	bubble(t, "nothing comes", func(t *testing.T) {
		c := open(t).dial()
		expect(t, "open for", c.until(), 5*time.Second)
	})
	bubble(t, "no further call comes", func(t *testing.T) {
		c := open(t).dial()
		expect(t, "answer", c.ask("take"), "200 1")
		expect(t, "open for", c.until(), time.Minute)
	})
	bubble(t, "a call comes in parts", func(t *testing.T) {
		s := open(t)
		c := s.dial()
		expect(t, "answer", c.ask("take"), "200 1")
		time.Sleep(50 * time.Second)
		for _, b := range []byte(fmt.Sprintf(call, "take")) {
			time.Sleep(10 * time.Millisecond)
			_, _ = c.Write([]byte{b})
		}
		expect(t, "answer", c.answer(), "200 1")
		expect(t, "passed on", s.passed.Load(), 0)
		expect(t, "open for", c.until(), time.Minute)
	})
	bubble(t, "the rest of a call is late", func(t *testing.T) {
		s := open(t)
		c := s.dial()
		_, _ = io.WriteString(c, "POST /take HTTP/1.1\r\nHost: a\r\n")
		time.Sleep(2 * time.Second)
		expect(t, "passed on", s.passed.Load(), 1)
		_, _ = io.WriteString(c, "Content-Length: 2\r\n\r\nab")
		expect(t, "answer", c.answer(), "200 0")
		expect(t, "next answer", c.ask("take"), "200 0")
	})
	bubble(t, "the rest of a call never comes", func(t *testing.T) {
		c := open(t).dial()
		_, _ = io.WriteString(c, "POST /take HTTP/1.1\r\nHost: a\r\n")
		expect(t, "open for", c.until(), 6*time.Second)
	})
	bubble(t, "an answer is not taken", func(t *testing.T) {
		s := open(t)
		c := s.dial()
		_, _ = fmt.Fprintf(c, call, "take")
		time.Sleep(9 * time.Second)
		expect(t, "open", s.open.Load(), 1)
		time.Sleep(2 * time.Second)
		expect(t, "open", s.open.Load(), 0)
	})
}

// A connection is marked while a call is decided, and counted once, before and after it is
// passed on.
func TestMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		c, other := s.dial(), s.dial()
		expect(t, "answer", c.ask("take"), "200 1")
		synctest.Wait()
		expect(t, "at work", s.working.Load(), 0)
		synctest.Wait()
		expect(t, "open", s.open.Load(), 2)
		_, _ = io.WriteString(other, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		expect(t, "answer", other.answer(), "200 0")
		expect(t, "answer behind another method", other.ask("take"), "200 0")
		synctest.Wait()
		expect(t, "open", s.open.Load(), 1)
		expect(t, "passed on", s.passed.Load(), 1)
		_ = c.Close()
		synctest.Wait()
		expect(t, "open", s.open.Load(), 0)
	})
}

// A handler that panics ends its connection alone. The log has the panic, but for those
// that say that they want no line.
func TestPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		for _, path := range []string{"abort", "panic"} {
			c := s.dial()
			expect(t, "answer", c.ask(path), "unexpected EOF")
			synctest.Wait()
			expect(t, "lines", strings.Count(s.logs.String(), "panic serving pipe: no"), map[string]int{"panic": 1}[path])
		}
		c := s.dial()
		expect(t, "answer", c.ask("take"), "200 1")
		synctest.Wait()
		expect(t, "at work", s.working.Load(), 0)
	})
}

// At the end, answers say that their connection is closed. Shutdown closes those that wait
// for their clients, and waits for calls that are being decided.
func TestShutdown(t *testing.T) {
	bubble(t, "calls end", func(t *testing.T) {
		s := open(t)
		told, waits, idle := s.dial(), s.dial(), s.dial()
		expect(t, "answer", idle.ask("take"), "200 1")
		synctest.Wait() // its call is at work for a moment after the answer
		_, _ = fmt.Fprintf(waits, call, "wait")
		<-s.enter
		s.Leave()
		expect(t, "answer", told.ask("take"), "200 2 close")
		expect(t, "told is open for", told.until(), 0)
		ended := make(chan error)
		go func() { ended <- s.Shutdown(t.Context()) }()
		expect(t, "idle is open for", idle.until(), 0)
		synctest.Wait()
		expect(t, "open", s.open.Load(), 1)
		close(s.leave)
		expect(t, "answer", waits.answer(), "200 1 close")
		expect(t, "error", <-ended, nil)
		expect(t, "open", s.open.Load(), 0)
	})
	bubble(t, "a call does not end", func(t *testing.T) {
		s := open(t)
		waits := s.dial()
		_, _ = fmt.Fprintf(waits, call, "wait")
		<-s.enter
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
		close(s.leave)
	})
	bubble(t, "a call of another kind comes last", func(t *testing.T) {
		s := open(t)
		c := s.dial()
		_ = s.rest.Close()
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		expect(t, "answer", c.answer(), "unexpected EOF")
		synctest.Wait()
		expect(t, "open", s.open.Load(), 0)
	})
}

// The usual heads of clients are plain, and so is what they send next.
func TestPlain(t *testing.T) {
	post := func(lines ...string) []byte {
		return []byte("POST /v1/take HTTP/1.1\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\nab")
	}
	for name, sent := range map[string][]byte{
		"wrk":    post("Host: 127.0.0.1:8080", "Content-Length: 2", "Content-Type: application/json"),
		"curl":   post("Host: localhost:8080", "User-Agent: curl/7.88.1", "Accept: */*", "Content-Length: 2", "Content-Type: application/x-www-form-urlencoded"),
		"Go":     post("Host: [::1]:8080", "User-Agent: Go-http-client/1.1", "Content-Length: 2", "Authorization: Bearer a.b-c", "Accept-Encoding: gzip"),
		"Python": post("Accept-Encoding: identity", "Content-Type: application/json", "Content-Length: 2", "Host: weir", "User-Agent: Python-urllib/3.11", "Connection: close"),
		"node":   post("host: weir:8080", "connection: keep-alive", "content-type: application/json", "accept: */*", "accept-language: *", "sec-fetch-mode: cors", "user-agent: node", "accept-encoding: gzip, deflate", "content-length: 2"),
	} {
		t.Run(name, func(t *testing.T) {
			_, _, want, got, passed := both(t, slices.Repeat(sent, 3), 0)
			expect(t, "passed on", passed, 0)
			expect(t, "requests", fmt.Sprint(got), fmt.Sprint(want))
		})
	}
}

// A call whose head was seen before allocates nothing but what its handler does.
func BenchmarkCall(b *testing.B) {
	s := shortcut.New(shortcut.Config{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var buffer [64]byte
			n, _ := r.Body.Read(buffer[:])
			_, _ = w.Write(buffer[:n])
		}),
		Count: func(int64) {}, First: time.Minute, Idle: time.Minute, Write: time.Minute,
	})
	c := &benchConn{n: b.N, call: []byte("POST /v1/take HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\nab"), stream: stream{closed: make(chan struct{})}}
	b.ReportAllocs()
	_ = s.Serve(&once{conn: c})
	<-c.closed
}

// benchConn sends the same call n times.
type benchConn struct {
	stream
	call []byte
	n    int
}

func (c *benchConn) Read(b []byte) (int, error) {
	if c.n--; c.n < 0 {
		return 0, io.EOF
	}
	return copy(b, c.call), nil
}

func (c *benchConn) Write(b []byte) (int, error) { return len(b), nil }

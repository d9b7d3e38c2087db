package shortcut_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/shortcut"
)

// stream is a connection whose client has sent all its bytes before. A read returns at
// most size of them, if size is not 0.
type stream struct {
	left   []byte
	size   int
	sent   bytes.Buffer
	closed chan struct{}
	once   sync.Once
}

func (s *stream) Read(b []byte) (int, error) {
	if len(s.left) == 0 {
		return 0, io.EOF
	}
	if s.size > 0 {
		b = b[:min(len(b), s.size)]
	}
	n := copy(b, s.left)
	s.left = s.left[n:]
	return n, nil
}

func (s *stream) Write(b []byte) (int, error)      { return s.sent.Write(b) }
func (s *stream) Close() error                     { s.once.Do(func() { close(s.closed) }); return nil }
func (s *stream) LocalAddr() net.Addr              { return &net.TCPAddr{Port: 80} }
func (s *stream) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1234} }
func (s *stream) SetDeadline(time.Time) error      { return nil }
func (s *stream) SetReadDeadline(time.Time) error  { return nil }
func (s *stream) SetWriteDeadline(time.Time) error { return nil }

// recorder is a handler that writes down each request with everything that handlers can
// see of it, and answers what the path asks for.
type recorder struct{ requests []string }

func (h *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := "not read"
	if r.URL.Path != "/unread" {
		b, err := io.ReadAll(r.Body)
		body = fmt.Sprintf("%q %v", b, err)
	}
	h.requests = append(h.requests, fmt.Sprintf("%s %q %#v %s %d.%d %q host=%q length=%d close=%v coding=%q trailer=%v form=%v from=%s tls=%v %s",
		r.Method, r.RequestURI, r.URL, r.Proto, r.ProtoMajor, r.ProtoMinor, r.Header, r.Host, r.ContentLength, r.Close, r.TransferEncoding, r.Trailer, r.Form, r.RemoteAddr, r.TLS, body))
	switch r.URL.Path {
	case "/take":
		w.Header()["Content-Type"] = []string{"application/json"}
		_, _ = io.WriteString(w, `{"allowed":true}`+"\n")
	case "/problem":
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Content-Type", "application/problem+json")
		w.Header()["Www-Authenticate"] = []string{"Bearer", "line\nbreak"}
		w.WriteHeader(http.StatusTooManyRequests)
		w.WriteHeader(http.StatusOK) // too late
		w.Header().Set("Late", "yes")
		_, _ = io.WriteString(w, "{}")
	case "/none":
		w.WriteHeader(http.StatusNoContent)
		_, _ = io.WriteString(w, "nobody")
	case "/odd":
		w.WriteHeader(799)
	case "/close":
		w.Header().Set("Connection", "close")
	case "/sniffed":
		_, _ = io.WriteString(w, "<html>")
		_, _ = io.WriteString(w, "</html>")
	case "/large":
		_, _ = w.Write(bytes.Repeat([]byte("a"), 5_000))
		_, _ = w.Write(bytes.Repeat([]byte("b"), 5_000))
		_, _ = w.Write(nil)
		_, _ = w.Write([]byte("c"))
	case "/larger":
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(bytes.Repeat([]byte("a"), 50_000))
	}
}

// both serves what a client sends by net/http alone, and by a Server. It returns what each
// has sent and what its handler saw, and how many connections were passed on.
func both(t *testing.T, sent []byte, size int) (want, got string, wantSeen, gotSeen []string, passed int) {
	t.Helper()
	quiet := log.New(io.Discard, "", 0)
	synctest.Test(t, func(*testing.T) {
		alone, with := &stream{left: sent, size: size, closed: make(chan struct{})}, &stream{left: sent, size: size, closed: make(chan struct{})}
		a, b := &recorder{}, &recorder{}
		_ = (&http.Server{Handler: a, ErrorLog: quiet}).Serve(&once{conn: alone})
		<-alone.closed
		rest := &http.Server{Handler: b, ErrorLog: quiet, ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				passed++
			}
		}}
		_ = shortcut.New(shortcut.Config{
			Handler: b, Rest: rest, ErrorLog: quiet, Count: func(int64) {}, First: time.Second, Idle: time.Second, Write: time.Second,
		}).Serve(&once{conn: with})
		<-with.closed
		synctest.Wait()
		want, got, wantSeen, gotSeen = alone.sent.String(), with.sent.String(), a.requests, b.requests
	})
	return want, got, wantSeen, gotSeen, passed
}

// once is a listener with one connection.
type once struct {
	net.Listener
	conn net.Conn
}

func (o *once) Accept() (net.Conn, error) {
	c := o.conn
	if o.conn = nil; c == nil {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (o *once) Close() error { return nil }

// answers returns the answers in what a server has sent, without what says how long they
// are.
func answers(sent string) (all []string) {
	r := bufio.NewReader(strings.NewReader(sent))
	for {
		a, err := http.ReadResponse(r, nil)
		if err != nil {
			return append(all, err.Error())
		}
		body, err := io.ReadAll(a.Body)
		_ = a.Body.Close()
		a.Header.Del("Content-Length")
		all = append(all, fmt.Sprintf("%s %q close=%v %q %v", a.Status, a.Header, a.Close, body, err))
	}
}

// FuzzSame holds the two servers to the same requests and the same answers, for any bytes
// that a client can send.
func FuzzSame(f *testing.F) {
	post := func(path, more, body string) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost:8080\r\n%sContent-Length: %d\r\n\r\n%s", path, more, len(body), body)
	}
	for _, sent := range []string{
		post("/take", "Content-Type: application/json\r\nAuthorization: Bearer abc\r\n", `{"attributes":{}}`),
		post("/take", "", "1") + post("/take", "", "22") + post("/problem", "", "22") + post("/take", "", ""),
		post("/take", "", "1234567890") + post("/take", "", "12345678901") + post("/none", "", "1234567890") + post("/take", "", "1"),
		post("/take", "x-a: 1\r\nX-A:2\r\nx-A: \r\n", "1") + post("/large", "", "") + post("/larger", "", "") + post("/sniffed", "", ""),
		post("/take", "Connection: close\r\n", "1") + post("/take", "", "1"),
		post("/take", "Connection: Keep-Alive\r\n", "1") + post("/close", "", "1") + post("/take", "", "1"),
		post("/unread", "", "abc") + post("/odd", "", "abc"),
		post("/take", "", "1") + "GET /take HTTP/1.1\r\nHost: a\r\n\r\n" + post("/take", "", "1"),
		post("/take", "Transfer-Encoding: chunked\r\n", "1\r\na\r\n0\r\n\r\n"),
		post("/take", "Content-Length: 1\r\n", "1"), post("/take", "Content-Length: 7\r\n", "1"),
		post("/take", "Host: other\r\n", "1"), post("/take", "Expect: 100-continue\r\n", "1"), post("/take", "Pragma: no-cache\r\n", "1"),
		post("/take", "Connection: upgrade\r\nUpgrade: h2c\r\n", "1"), post("/take", "A: 1\r\n folded\r\n", "1"), post("/take", "A : 1\r\n", "1"),
		post("/take", "A: \x80\tb\r\n", "1"), post("/take", "A: b\nB: c\r\n", "1"), post("/take?a=b", "", "1"), post("/ta%20ke", "", "1"), post("//take", "", "1"),
		post("/take", "Connection: close\r\nConnection: keep-alive\r\n", "1") + post("/take", "", "1"),
		post("/take", strings.Repeat("A: b\r\n", 40), "1"), post("/take", "A: "+strings.Repeat("b", 5000)+"\r\n", "1"), post("/take", "", strings.Repeat("b", 5000)),
		"POST /take HTTP/1.1\r\nHost: a\r\nContent-Length: 0002\r\n\r\nab" + "POST /take HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab",
		"POST /take HTTP/1.1\r\nContent-Length: 2\r\n\r\nab", "POST /take HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab", "POST /take HTTP/1.1\r\nHost: a\r\n\r\nab",
		"POST /take HTTP/1.0\r\nHost: a\r\nContent-Length: 2\r\n\r\nab", "POST /take HTTP/1.1\nHost: a\nContent-Length: 2\n\nab", "POST", "", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"POST /take HTTP/1.1\r\nHost:\r\nContent-Length: 2\r\n\r\nab", "POST /take HTTP/1.1\r\nHost: a\r\nContent-Length: 2 \r\n\r\nab", "POST /take HTTP/1.1\r\nHost: a b\r\nContent-Length: 2\r\n\r\nab",
		"POST /take HTTP/1.1\r\nHost: a\r\nContent-Length: +2\r\n\r\nab", "POST /take HTTP/1.1\r\nHost: a\r\nContent-Length: \r\n\r\nab", "\r\n\r\n" + post("/take", "", "1"),
		post("/take", "", "1") + "0", post("/take", "", "1") + "\r\n\r\n", post("/take", "", "1") + "\r\n" + post("/take", "", "1") + "\r\n\r\n\r\n" + post("/take", "", "1"),
	} {
		f.Add([]byte(sent), 0)
		f.Add([]byte(sent), 7)
		f.Add([]byte(sent), 61)
	}
	f.Fuzz(func(t *testing.T, sent []byte, size int) {
		if len(sent) > 16<<10 {
			return
		}
		want, got, wantSeen, gotSeen, _ := both(t, sent, max(size, 0))
		for i := range max(len(wantSeen), len(gotSeen)) {
			if i >= len(wantSeen) || i >= len(gotSeen) || wantSeen[i] != gotSeen[i] {
				t.Fatalf("%q: handlers saw\n%q\nwant\n%q", sent, gotSeen, wantSeen)
			}
		}
		a, b := answers(want), answers(got)
		if fmt.Sprint(a) != fmt.Sprint(b) {
			t.Fatalf("%q: answered\n%q\nwant\n%q", sent, b, a)
		}
		if !strings.Contains(want, "chunked") && want != got {
			t.Fatalf("%q: answered\n%q\nwant\n%q", sent, got, want)
		}
	})
}

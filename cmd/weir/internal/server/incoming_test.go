package server_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/server"
	"github.com/weirhq/weir/internal/redistest"
)

// What clients have sent that is not a request yet is limited over all connections. Beyond the limit the
// connection whose part has waited longest is closed. Requests of any number and size are not affected.
func TestIncompleteRequests(t *testing.T) {
	t.Parallel()
	addr, sheds := limited(t, 20, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	write := func(c net.Conn, text string) {
		if _, err := io.WriteString(c, text); err != nil {
			t.Error(err)
		}
	}
	head := func(size int) string { return "POST / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", size) }
	answered := func(c net.Conn) {
		t.Helper()
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != http.StatusOK {
			t.Errorf("got %s", resp.Status)
		}
	}

	honest, slow := connect(t, addr), connect(t, addr)
	write(slow, head(1<<10))
	for range 3 * server.MostIncoming / (40 << 10) {
		write(honest, head(30<<10)+fmt.Sprintf("\r\nContent-Length: %d\r\n\r\n%s", 10<<10, strings.Repeat("b", 10<<10)))
		answered(honest)
	}
	if n := sheds.Load(); n != 0 {
		t.Errorf("got %d connections closed, want none for requests that are complete", n)
	}

	const greedy = 8
	for range greedy {
		write(connect(t, addr), head(30<<10))
	}
	const fit = server.MostIncoming / (30 << 10)
	redistest.Eventually(t, "the others are closed", func() bool { return sheds.Load() == greedy-fit })
	for _, c := range []net.Conn{honest, slow} {
		rest := "\r\nContent-Length: 0\r\n\r\n"
		if c == honest {
			rest = head(30<<10) + rest
		}
		write(c, rest)
		answered(c)
	}
}

// The head of a request counts by its memory, until its body has arrived and it is answered.
func TestHeads(t *testing.T) {
	t.Parallel()
	addr, sheds := limited(t, 20, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/read" {
			_, _ = io.Copy(io.Discard, r.Body)
		}
	})
	write := func(path string) net.Conn {
		c := connect(t, addr)
		head := "POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n" + strings.Repeat("X:\r\n", 4800) + "\r\n" // counts as some 30 KB
		if _, err := io.WriteString(c, head); err != nil {
			t.Error(err)
		}
		return c
	}
	const fit = server.MostIncoming / (30 << 10)
	for range 2 {
		sheds.Store(0)
		var all []net.Conn
		for n := range fit + 3 {
			all = append(all, write([]string{"/", "/read"}[n%2]))
		}
		redistest.Eventually(t, "the others are closed", func() bool { return sheds.Load() == 3 })
		for _, c := range all {
			_, _ = io.WriteString(c, "b")
			if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil {
				resp.Body.Close()
			}
			c.Close()
		}
	}
}

// A handshake that is over takes no memory, so clients that connect and then wait are not counted.
func TestHandshakesEnd(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	ca.server(t)
	certs, err := access.OpenCertificates(ca.path("server.pem"), ca.path("server.key"), "")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"http/1.1"} // a long hello
	for n := range 100 {
		names = append(names, fmt.Sprintf("protocol-%030d", n))
	}
	counted, err := server.Handshake(t.Context(), certs, &tls.Config{InsecureSkipVerify: true, NextProtos: names})
	if err != nil || counted != 0 {
		t.Errorf("got %d bytes and %v, want none", counted, err)
	}
}

// What a client with HTTP/2 sends while it reads a long answer belongs to that request.
func TestLongAnswers(t *testing.T) {
	t.Parallel()
	const chunks, size = 1500, 32 << 10
	addr, sheds := limited(t, 20, func(w http.ResponseWriter, _ *http.Request) {
		for range chunks {
			_, _ = w.Write(make([]byte, size))
		}
	})
	via := &http.Transport{Protocols: new(http.Protocols)}
	via.Protocols.SetUnencryptedHTTP2(true)
	defer via.CloseIdleConnections()
	resp, err := (&http.Client{Transport: via}).Get("http://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); n != chunks*size || sheds.Load() > 0 {
		t.Errorf("got %d bytes, error %v and %d connections closed, want %d bytes and none", n, err, sheds.Load(), chunks*size)
	}
}

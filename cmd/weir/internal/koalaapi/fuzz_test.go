package koalaapi_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/koalaapi"
)

// FuzzQuery compares the reading of queries with net/url, if that reads them.
func FuzzQuery(f *testing.F) {
	for _, query := range []string{"a=1&b=2", "flag&a=1", "a=%E4%B8%AD+b", "a=%zz&b=%", "a=1&a=2&&=x&=", "a==b"} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		got := koalaapi.Parameters(query)
		pieces := strings.Split(query, "&")
		pieces = slices.DeleteFunc(pieces, func(p string) bool { return p == "" })
		if len(got) != len(pieces) {
			t.Fatalf("%q: got %d parameters, want %d", query, len(got), len(pieces))
		}
		for i, piece := range pieces {
			if strings.Contains(piece, ";") {
				continue // net/url refuses these
			}
			values, err := url.ParseQuery(piece)
			if err != nil {
				continue // an escape that is none
			}
			if got[i].Value != values.Get(got[i].Name) || !values.Has(got[i].Name) {
				t.Errorf("%q: got %q, want %v", piece, got[i], values)
			}
		}
	})
}

// FuzzCalls checks that every call answers any request.
func FuzzCalls(f *testing.F) {
	f.Add("act=ask&uid=1")
	f.Add("act=buy&uid=1&cents=x&_writeThrough=yes")
	f.Add("rule_no=201&uid=%zz&size=1e9")
	f.Add(`argsJson=[{"Id":"0","Arg":"act%253Dask%2526uid%253D1"},{"Arg":"=&&%"}]`)
	f.Add("_feedbackType=erase2&act=ask&uid=1")
	b := newBench(f, `rules:
  - {name: koala-101, code: 101, when: {ip: {ip: 10.0.0.0/8}}, then: deny, rest: count}
  - {name: koala-201, code: 201, when: {act: ask, size: {below: 5}}, per: [uid], limit: 2, window: {fixed: 1h}}
  - {name: koala-301, code: 301, when: {act: ask}, per: [uid], limit: 2, window: 1h, feedback: {erase1: 1, erase2: 2}}
  - {name: spend, when: {act: buy}, per: [uid], sum: cents, limit: 100, window: 1h}
`)
	f.Fuzz(func(t *testing.T, query string) {
		for _, path := range []string{
			"/rule/browse", "/rule/browse_complete", "/rule/update", "/rule/feedback", "/multi/browse",
		} {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RequestURI = path + "?" + query
			w := httptest.NewRecorder()
			b.api.ServeHTTP(w, r)
			switch w.Code {
			case http.StatusOK, http.StatusBadRequest:
			default:
				t.Errorf("%s?%s: got %d %s", path, query, w.Code, w.Body)
			}
			if strings.Contains(path, "browse") && w.Body.Len() > 0 && !json.Valid(w.Body.Bytes()) {
				t.Errorf("%s?%s: got %s, want JSON", path, query, w.Body)
			}
		}
	})
}

// pieces is a connection from which bytes come in pieces of size.
type pieces struct {
	net.Conn
	rest []byte
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), p.size)], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// accepts is a listener with one connection.
type accepts struct {
	net.Listener
	conn net.Conn
}

func (a accepts) Accept() (net.Conn, error) { return a.conn, nil }

// rewritten returns what a server reads of a stream, in pieces of size.
func rewritten(t *testing.T, stream []byte, size int) []byte {
	t.Helper()
	conn, err := koalaapi.Listen(accepts{conn: &pieces{rest: stream, size: size}}).Accept()
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// FuzzHost checks that a connection adds one empty Host to the first head, if that has
// none, and changes nothing else, in whatever pieces the head comes. What net/http
// accepts without it stays as it is.
func FuzzHost(f *testing.F) {
	const get = "GET /rule/browse?uid=7 HTTP/1.1\r\n"
	for _, stream := range []string{
		get + "\r\n",
		get + "Accept: */*\r\n\r\n" + get + "hOST: a\r\n\r\n" + get + "\r\n",
		get + "X: 1\n Host: folded\n\n" + get + "\n",
		get + "Host: a\r\nHost: b\r\nCONNECTION: keep-alive\r\n\r\n",
		"\r\n\n" + get + "X:\r\r\n\r\n",
		"POST / HTTP/1.1\r\nContent-Length: 30\r\n\r\n" + get + "\r\n",
		get + ":\r\nHost\r\n\r\n\r",
	} {
		f.Add([]byte(stream), uint8(3))
	}
	f.Fuzz(func(t *testing.T, stream []byte, size uint8) {
		got := rewritten(t, stream, len(stream)+1)
		if again := rewritten(t, stream, int(size)+1); !bytes.Equal(again, got) {
			t.Fatalf("%q: got %q in pieces of %d, want %q", stream, again, int(size)+1, got)
		}
		line := bytes.IndexByte(stream, '\n') + 1
		added := slices.Concat(stream[:line], []byte("Host:\r\n"), stream[line:])
		if len(got) != 0 && !bytes.Equal(got, stream) && !bytes.Equal(got, added) {
			t.Fatalf("%q: got %q, want at most a Host more", stream, got)
		}
		want, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(stream)))
		if err != nil {
			return
		}
		request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(got)))
		if err != nil || request.Host != want.Host || request.RequestURI != want.RequestURI || request.ContentLength != want.ContentLength {
			t.Fatalf("%q: got %+v and error %v, want %+v", stream, request, err, want)
		}
		if hosts := bytes.Count(got, []byte("Host:\r\n")) - bytes.Count(stream, []byte("Host:\r\n")); want.Host != "" && hosts != 0 {
			t.Fatalf("%q: got %q, want no Host more", stream, got)
		}
	})
}

package api_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/koala/api"
)

// FuzzQuery holds the reading of queries to net/url, where that reads them.
func FuzzQuery(f *testing.F) {
	for _, query := range []string{"a=1&b=2", "flag&a=1", "a=%E4%B8%AD+b", "a=%zz&b=%", "a=1&a=2&&=x&=", "a==b"} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		got := api.Parameters(query)
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

// FuzzCalls has every call answer whatever it is asked.
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
			"/rule/browse", "/rule/browse_complete", "/rule/update", "/rule/feedback", "/rule/value",
			"/multi/browse", "/dump/counter", "/dump/policy", "/rule/rewrite",
		} {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RequestURI = path + "?" + query
			w := httptest.NewRecorder()
			b.api.ServeHTTP(w, r)
			switch w.Code {
			case http.StatusOK, http.StatusBadRequest, http.StatusForbidden:
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

// completed is what a server reads of a stream, in pieces of size.
func completed(t *testing.T, stream []byte, size int) []byte {
	t.Helper()
	conn, err := api.Listen(accepts{conn: &pieces{rest: stream, size: size}}).Accept()
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// FuzzHeads holds the completing of heads to its laws: pieces do not matter, it
// only ever adds lines, and who reads the result finds a Host in each head, up
// to the first request that may have a body, which ends the connection.
func FuzzHeads(f *testing.F) {
	const get = "GET /rule/browse?uid=7 HTTP/1.1\r\n"
	for _, stream := range []string{
		get + "\r\n",
		get + "Accept: */*\r\n\r\n" + get + "hOST: a\r\n\r\n" + get + "\r\n",
		get + "X: 1\n Host: folded\n\n" + get + "\n",
		"\r\n\n" + get + "X:\r\r\n\r\n",
		"POST / HTTP/1.1\r\nContent-Length: 30\r\nConnection: keep-alive\r\n\r\n" + get + "\r\n",
		"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + get + "\r\n",
		get + ":\r\nHost:\r\n\r\n\r",
	} {
		f.Add([]byte(stream), uint8(3))
	}
	f.Fuzz(func(t *testing.T, stream []byte, size uint8) {
		got := completed(t, stream, len(stream)+1)
		if again := completed(t, stream, int(size)+1); !bytes.Equal(again, got) {
			t.Fatalf("%q: got %q in pieces of %d, want %q", stream, again, int(size)+1, got)
		}
		wantOnlyAdded(t, got, stream)
		wantComplete(t, got, stream)
	})
}

// wantOnlyAdded asks that got is stream with lines added at the ends of heads.
func wantOnlyAdded(t *testing.T, got, stream []byte) {
	t.Helper()
	for len(got) > 0 {
		if len(stream) > 0 && got[0] == stream[0] {
			got, stream = got[1:], stream[1:]
			continue
		}
		rest := bytes.TrimPrefix(bytes.TrimPrefix(got, []byte("Host:\r\n")), []byte("Connection: close\r\n"))
		if len(rest) == len(got) || len(stream) == 0 || stream[0] != '\r' && stream[0] != '\n' {
			t.Fatalf("got %q where %q stands, want nothing changed", got, stream)
		}
		got = rest
	}
	if len(stream) > 0 && string(stream) != "\r" {
		t.Fatalf("got no %q, want all but a last return", stream)
	}
}

// wantComplete reads heads as net/http does, of both.
func wantComplete(t *testing.T, got, stream []byte) {
	t.Helper()
	lines := func(b []byte) *textproto.Reader {
		return textproto.NewReader(bufio.NewReader(bytes.NewReader(b[:bytes.LastIndexByte(b, '\n')+1])))
	}
	g, s := lines(got), lines(stream)
	for {
		want, err := s.ReadLine()
		if err != nil || want == "" {
			return // the end, or what net/http refuses
		}
		if line, _ := g.ReadLine(); line != want {
			t.Fatalf("%q: got request line %q, want %q", got, line, want)
		}
		wanted, err := s.ReadMIMEHeader()
		if err != nil {
			return
		}
		head, err := g.ReadMIMEHeader()
		if err != nil || head["Host"] == nil {
			t.Fatalf("%q: got %v %v, want a head with a Host", got, head, err)
		}
		last := wanted["Content-Length"] != nil || wanted["Transfer-Encoding"] != nil
		closes := slices.Contains(head["Connection"], "close")
		if last && !closes {
			t.Fatalf("%q: got %v, want it to end the connection", got, head)
		}
		if last || closes {
			return
		}
		if wanted["Host"] == nil {
			delete(head, "Host")
		}
		if !maps.EqualFunc(head, wanted, slices.Equal) {
			t.Fatalf("%q: got %v, want %v", got, head, wanted)
		}
	}
}

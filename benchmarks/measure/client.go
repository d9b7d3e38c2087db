package measure

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"strconv"
	"sync"
	"time"
)

// Request appends the bytes of the HTTP request with number i.
type Request func(b []byte, i int) []byte

// HTTP sends requests over n connections for the time d, each connection one after
// the other. If anew, each request has a connection of its own. The numbers in
// requests repeat after a hundred thousand. Any answer but status 200 is an error.
func HTTP(addr string, request Request, n int, anew bool, d time.Duration) (Load, error) {
	const users = 100_000
	var (
		mu     sync.Mutex
		all    Histogram
		failed error
		conns  sync.WaitGroup
	)
	start := time.Now()
	for c := range n {
		conns.Go(func() {
			var times Histogram
			var err error
			w := web{addr: addr}
			last := time.Now()
			for i := c * users / n; err == nil && last.Sub(start) < d; i++ {
				if anew {
					w.close()
				}
				if err = w.call(request, i%users); err != nil {
					break
				}
				now := time.Now()
				times.Add(now.Sub(last))
				last = now
			}
			w.close()
			mu.Lock()
			defer mu.Unlock()
			all.Merge(&times)
			failed = errors.Join(failed, err)
		})
	}
	conns.Wait()
	took := time.Since(start)
	return Load{PerSecond: float64(all.Len()) / took.Seconds(), P99: all.At(0.99), Calls: float64(all.Len())}, failed
}

// web is a connection of a client that does as little as it can.
type web struct {
	addr string
	conn net.Conn
	in   *bufio.Reader
	out  []byte
}

func (w *web) close() {
	if w.conn != nil {
		_ = w.conn.Close() // nothing is lost
		w.conn = nil
	}
}

func (w *web) call(request Request, i int) error {
	if w.conn == nil {
		var d net.Dialer
		d.Timeout = 5 * time.Second
		conn, err := d.Dial("tcp", w.addr)
		if err != nil {
			return err
		}
		w.conn = conn
		if w.in == nil {
			w.in = bufio.NewReader(conn)
		}
		w.in.Reset(conn)
	}
	w.out = request(w.out[:0], i)
	if _, err := w.conn.Write(w.out); err != nil {
		return err
	}
	return w.answer()
}

// answer reads one answer.
func (w *web) answer() error {
	status, err := w.in.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(status, []byte("HTTP/1.1 200")) {
		return fmt.Errorf("%s answers %q", w.addr, bytes.TrimSpace(status))
	}
	length, chunked := 0, false
	for {
		line, err := w.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) <= 2 {
			break
		}
		chunked = chunked || bytes.Equal(line, []byte("Transfer-Encoding: chunked\r\n"))
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
	}
	if !chunked {
		_, err = w.in.Discard(length)
		return err
	}
	if _, err = io.Copy(io.Discard, httputil.NewChunkedReader(w.in)); err == nil {
		_, err = w.in.ReadSlice('\n') // the line after the last chunk
	}
	return err
}

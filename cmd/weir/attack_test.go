//go:build attack

package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/access"
)

// attackFor is how long each attack lasts. These tests run against the real clock
// and load the machine, so only make attack runs them.
const attackFor = 5 * time.Second

// target is a service under attack.
type target struct {
	*process
	addr  string
	until time.Time
}

func (a *target) on() bool { return time.Now().Before(a.until) }

// attacks lists what strangers do. Each function is one of many attackers, and
// returns when the attack is over.
var attacks = []struct {
	name      string
	attackers int
	attack    func(a *target)
}{
	{"idle connections", 10, func(a *target) {
		var open []net.Conn
		for a.on() && len(open) < 1000 {
			if c, err := net.Dial("tcp", a.addr); err == nil {
				open = append(open, c)
			}
		}
		time.Sleep(time.Until(a.until))
		for _, c := range open {
			c.Close()
		}
	}},
	{"slow heads", 500, func(a *target) {
		for a.on() {
			a.dribble("POST /v1/take HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("y", 1000))
		}
	}},
	{"slow and endless bodies", 500, func(a *target) {
		for a.on() {
			a.dribble("POST /v1/take HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1\r\n \r\n", 1000))
		}
	}},
	{"slow readers of large answers", 50, func(a *target) {
		body := batchOf(900, 10)
		for a.on() {
			c, err := net.Dial("tcp", a.addr)
			if err != nil {
				continue
			}
			fmt.Fprintf(c, "POST /v1/batch HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			time.Sleep(min(2*time.Second, time.Until(a.until))) // the answer is not read
			c.Close()
		}
	}},
	{"floods of batches", 20, func(a *target) {
		body := batchOf(900, 1000)
		for a.on() {
			_, _, _ = send(a.api+"/v1/batch", body)
		}
	}},
	{"new keys", 8, func(a *target) {
		for i := 0; a.on(); i++ {
			_, _, _ = send(a.api+"/v1/batch", strings.ReplaceAll(batchOf(1000, 12), `"user":"`, fmt.Sprintf(`"user":"%d/%p/`, i, &i)))
		}
	}},
	{"wrong tokens", 50, func(a *target) {
		for a.on() {
			req, _ := http.NewRequest(http.MethodPost, a.api+"/v1/take", strings.NewReader("{}"))
			req.Header.Set("Authorization", "Bearer "+access.NewToken())
			if resp, err := http.DefaultClient.Do(req); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		}
	}},
	{"HTTP/2 rapid reset", 20, func(a *target) {
		for a.on() {
			a.rapidReset()
		}
	}},
}

// dribble sends text a byte at a time.
func (a *target) dribble(text string) {
	c, err := net.Dial("tcp", a.addr)
	if err != nil {
		return
	}
	defer c.Close()
	for i := 0; i < len(text) && a.on(); i++ {
		if _, err := c.Write([]byte{text[i]}); err != nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// rapidReset opens streams and resets each at once, on one connection.
func (a *target) rapidReset() {
	c, err := net.Dial("tcp", a.addr)
	if err != nil {
		return
	}
	defer c.Close()
	go func() { _, _ = io.Copy(io.Discard, c) }()
	frame := func(b []byte, kind, flags byte, stream uint32, payload []byte) []byte {
		b = append(b, byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload)), kind, flags)
		return append(binary.BigEndian.AppendUint32(b, stream), payload...)
	}
	b := frame([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 4, 0, 0, nil) // SETTINGS
	head := append([]byte{0x82, 0x86, 0x41, 1, 'x', 0x04, 9}, "/v1/rules"...)
	for stream := uint32(1); a.on() && stream < 1<<20; stream += 2 {
		b = frame(frame(b, 1, 5, stream, head), 3, 0, stream, []byte{0, 0, 0, 8}) // HEADERS, RST_STREAM
		if len(b) > 16<<10 {
			_ = c.SetWriteDeadline(time.Now().Add(time.Second))
			if _, err := c.Write(b); err != nil {
				return
			}
			b = b[:0]
		}
	}
}

// TestAttack attacks a service, and measures what others notice of it.
func TestAttack(t *testing.T) {
	token := access.NewToken()
	for _, tc := range attacks {
		t.Run(strings.ReplaceAll(tc.name, " ", "-"), func(t *testing.T) {
			args := []string{"--listen h2c://127.0.0.1:0 --memory 64MiB"}
			shell := ""
			if tc.name == "wrong tokens" {
				shell = "export WEIR_TOKEN=" + token + ";"
			}
			p := startProcess(t, shell, rulesPerUser(50), args...)
			a := &target{process: p, addr: strings.TrimPrefix(p.api, "http://"), until: time.Now().Add(attackFor)}
			var wg sync.WaitGroup
			for range tc.attackers {
				wg.Go(func() { tc.attack(a) })
			}
			took, refused, failed := a.neighbour(t, token)
			wg.Wait()
			slices.Sort(took)
			if len(took) == 0 {
				t.Fatal("got no answer during the attack")
			}
			p99, peak := took[len(took)*99/100], p.peak(t)
			t.Logf("%-30s %5d answers, p50 %v, p99 %v, %d refused, %d failed, peak %d MiB",
				tc.name, len(took), took[len(took)/2].Round(10*time.Microsecond), p99.Round(10*time.Microsecond), refused, failed, peak>>20)
			if failed > 0 || refused > len(took)/100 || p99 > 2*time.Second || peak > 400<<20 {
				t.Errorf("got %d failed, %d refused of %d, p99 %v, peak %d MiB", failed, refused, len(took), p99, peak>>20)
			}
		})
	}
}

// neighbour makes calls as an ordinary client does, on one connection and on new
// ones, until the attack is over.
func (a *target) neighbour(t *testing.T, token string) (took []time.Duration, refused, failed int) {
	fresh := &http.Transport{DisableKeepAlives: true}
	for i := 0; a.on(); i++ {
		client := &http.Client{Timeout: 10 * time.Second}
		if i%4 == 0 {
			client.Transport = fresh
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.api+"/v1/check", strings.NewReader(`{"attributes":{"user":"neighbour"}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		began := time.Now()
		resp, err := client.Do(req)
		if err != nil {
			failed++
			t.Log(err)
			continue
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		switch resp.StatusCode {
		case http.StatusOK:
			took = append(took, time.Since(began))
		case http.StatusServiceUnavailable:
			refused++
		default:
			failed++
			t.Log(resp.Status)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return took, refused, failed
}

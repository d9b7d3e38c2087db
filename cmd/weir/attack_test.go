//go:build attack

package main

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/envoyrls"
)

// attackFor is how long each attack lasts. These tests run against the real clock
// and load the machine, so only make attack runs them.
const attackFor = 5 * time.Second

// target is a service under attack.
type target struct {
	*process
	addr  string
	until time.Time
	done  chan struct{} // closed when the attackers have done their work
	made  atomic.Int64  // what the attackers have done
}

// on reports whether the attack goes on.
func (a *target) on() bool {
	select {
	case <-a.done:
		return false
	default:
		return time.Now().Before(a.until)
	}
}

type attackRow struct {
	name      string
	attackers int
	how       setting
	attack    func(a *target)
}

// attacks returns what strangers do. Each function is one of many attackers, and
// returns when the attack is over. It is no variable, because the service under attack is
// the same program, and would have the inputs of the attacks in memory.
func attacks() []attackRow {
	return append([]attackRow{
		{"idle connections", 10, setting{}, func(a *target) {
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
		{"event streams that nobody reads", 50, setting{}, func(a *target) {
			for a.on() {
				if c, err := net.Dial("tcp", a.addr); err == nil {
					_, _ = io.WriteString(c, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
					body := `{"attributes":{"action":"post","user":"` + strconv.FormatInt(a.made.Add(1), 10) + `"},"hits":1000000}`
					if resp, err := http.Post("http://"+a.addr+"/v1/take", "application/json", strings.NewReader(body)); err == nil {
						_ = resp.Body.Close()
					}
					time.Sleep(50 * time.Millisecond)
					c.Close()
				}
			}
		}},
		{"slow heads", 500, setting{}, func(a *target) {
			for a.on() {
				a.dribble("POST /v1/take HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("y", 1000))
			}
		}},
		{"slow and endless bodies", 500, setting{}, func(a *target) {
			for a.on() {
				a.dribble("POST /v1/take HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1\r\n \r\n", 1000))
			}
		}},
		{"slow readers of large answers", 50, setting{}, func(a *target) {
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
		{"floods of batches", 20, setting{}, func(a *target) {
			body := batchOf(900, 1000)
			for a.on() {
				_, _, _ = send(a.api+"/v1/batch", body)
			}
		}},
		{"new keys", 8, setting{}, func(a *target) {
			for i := 0; a.on(); i++ {
				_, _, _ = send(a.api+"/v1/batch", strings.ReplaceAll(batchOf(1000, 12), `"user":"`, fmt.Sprintf(`"user":"%d/%p/`, i, &i)))
			}
		}},
		{"floods of overrides", 20, setting{}, func(a *target) {
			for i := 0; a.on(); i++ {
				body := fmt.Sprintf(`{"rule":"r1","attributes":{"user":"%d/%p/%s"},"limit":5,"note":%q}`, i, &i, strings.Repeat("x", 900), strings.Repeat("n", 250))
				for _, method := range [...]string{http.MethodPut, http.MethodGet} {
					req, _ := http.NewRequest(method, a.api+"/v1/overrides", strings.NewReader(body))
					if resp, err := http.DefaultClient.Do(req); err == nil {
						if resp.StatusCode == http.StatusOK && method == http.MethodPut {
							a.made.Add(1)
						}
						_, _ = io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
					}
				}
			}
		}},
		{"batches with new idempotency keys", 5, setting{most: 500 << 20}, func(a *target) {
			for i := 0; a.on(); i++ {
				_, _, _ = send(a.api+"/v1/batch", batchOnce(fmt.Sprintf("%d/%p", i, &i)))
				a.made.Add(1)
			}
		}},
		{"a million idempotency keys", 4, setting{args: "--memory 1GiB", rules: 1, most: 900 << 20, longest: 2 * time.Minute}, func(a *target) {
			for a.on() {
				n := a.made.Add(1)
				if n > 1500 { // a third of them above what a namespace keeps
					return
				}
				_, _, _ = send(a.api+"/v1/batch", batchOnce(fmt.Sprint(n)))
			}
		}},
		{"exports that nobody reads to the end", 50, setting{rules: 1, export: true}, func(a *target) {
			for n := range 2 {
				_, _, _ = send(a.api+"/v1/batch", strings.ReplaceAll(batchOf(1000, 500), `"user":"`, fmt.Sprintf(`"user":"%d/%p/`, n, &n)))
			}
			for i := 0; a.on(); i++ {
				c, err := net.Dial("tcp", a.addr)
				if err != nil {
					continue
				}
				_, _ = io.WriteString(c, "GET /v1/export?rule=r0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
				head := make([]byte, 512)
				_ = c.SetReadDeadline(time.Now().Add(time.Second))
				if n, _ := c.Read(head); bytes.Contains(head[:n], []byte(" 200 ")) {
					a.made.Add(1)
				}
				if i%2 == 0 {
					time.Sleep(min(2*time.Second, time.Until(a.until))) // the rest is not read
				}
				c.Close()
			}
		}},
		{"floods of sets and unbans", 20, setting{}, func(a *target) {
			for i := 0; a.on(); i++ {
				key := fmt.Sprintf(`"rule":"r1","attributes":{"user":"%d/%p/%s"}`, i, &i, strings.Repeat("x", 900))
				for path, body := range map[string]string{"/v1/set": "{" + key + `,"hits":999}`, "/v1/unban": "{" + key + "}"} {
					if status, _, err := send(a.api+path, body); err == nil && status < 300 {
						a.made.Add(1)
					}
				}
			}
		}},
		{"pages of the audit trail", 20, setting{}, func(a *target) {
			for i := range 100 {
				_, _, _ = send(a.api+"/v1/set", fmt.Sprintf(`{"rule":"r1","attributes":{"user":"%d/%p/%s"},"hits":1}`, i, &i, strings.Repeat("\u0001", 900)))
			}
			for i := 0; a.on(); i++ {
				c, err := net.Dial("tcp", a.addr)
				if err != nil {
					continue
				}
				_, _ = io.WriteString(c, "GET /v1/audit?n=1000 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
				_ = c.SetReadDeadline(a.until)
				if i%2 == 0 {
					_, _ = io.Copy(io.Discard, c)
				} else {
					time.Sleep(min(100*time.Millisecond, time.Until(a.until))) // the answer is not read
				}
				a.made.Add(1)
				c.Close()
			}
		}},
		{"wrong tokens", 50, setting{token: true}, func(a *target) {
			for a.on() {
				req, _ := http.NewRequest(http.MethodPost, a.api+"/v1/take", strings.NewReader("{}"))
				req.Header.Set("Authorization", "Bearer "+access.NewToken())
				if resp, err := http.DefaultClient.Do(req); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			}
		}},
		{"Redis commands of 256 KiB without a token", 20, setting{token: true, redis: true, most: 100 << 20}, func(a *target) {
			text := "*16\r\n$4\r\nPING\r\n" + strings.Repeat("$16000\r\n"+strings.Repeat("x", 16000)+"\r\n", 15)
			var open []net.Conn
			for a.on() && len(open) < 50 {
				if c, err := net.Dial("tcp", a.addr); err == nil {
					_ = c.SetWriteDeadline(a.until)
					_, _ = io.WriteString(c, text) // the service may have ended it
					open = append(open, c)
					a.made.Add(1)
				}
			}
			time.Sleep(time.Until(a.until))
			for _, c := range open {
				c.Close()
			}
		}},
		{"half Redis commands", 200, setting{redis: true}, func(a *target) {
			for a.on() {
				a.hang("*2\r\n$4\r\nPING\r\n$5\r\nhe")
			}
		}},
		{"Redis commands whose replies nobody reads", 8, setting{redis: true}, func(a *target) {
			text := strings.Repeat("*3\r\n$9\r\nWEIR.TAKE\r\n$4\r\nuser\r\n$5\r\nflood\r\n", 1000)
			for a.on() {
				c, err := net.Dial("tcp", a.addr)
				if err != nil {
					continue
				}
				_ = c.SetWriteDeadline(a.until)
				for err == nil {
					_, err = io.WriteString(c, text)
					a.made.Add(1000)
				}
				c.Close()
			}
		}},
		{"idle connections with 128 descriptors", 10, setting{shell: "ulimit -n 128;", closes: true}, func(a *target) {
			var open []net.Conn
			for a.on() && len(open) < 200 {
				if c, err := net.Dial("tcp", a.addr); err == nil {
					open = append(open, c)
				}
			}
			time.Sleep(time.Until(a.until))
			for _, c := range open {
				c.Close()
			}
		}},
		{"idle connections of the admin address", 500, setting{admin: true}, func(a *target) {
			for a.on() {
				a.hang("")
			}
		}},
		{"half heads at the admin address", 500, setting{admin: true}, func(a *target) {
			for a.on() {
				a.hang("GET /healthz HTTP/1.1\r\nHost: x\r\nX: y")
			}
		}},
		{"five million keys", 4, setting{args: "--memory 1GiB", rules: 1, most: 900 << 20, longest: 2 * time.Minute}, func(a *target) {
			for a.on() {
				n := a.made.Add(1)
				if n > 5000 {
					return
				}
				_, _, _ = send(a.api+"/v1/batch", strings.ReplaceAll(batchOf(1000, 6), `"user":"`, fmt.Sprintf(`"user":"%d/`, n)))
			}
		}},
		{"HTTP/2 rapid reset", 20, setting{}, func(a *target) {
			for a.on() {
				a.rapidReset(append([]byte{0x82, 0x86, 0x41, 1, 'x', 0x04, 9}, "/v1/rules"...))
			}
		}},
		{"gRPC rapid reset", 20, setting{grpc: true, token: true}, func(a *target) {
			for a.on() {
				a.rapidReset(grpcHead())
			}
		}},
		{"gRPC resets by the server: windows of 0", 20, setting{grpc: true, envoy: true, rules: 1, token: true}, func(a *target) {
			for a.on() {
				a.rapidStreams(func(b []byte, stream uint32) []byte {
					return frame(frame(b, 1, 4, stream, grpcHead()), 8, 0, stream, make([]byte, 4)) // HEADERS, WINDOW_UPDATE
				})
			}
		}},
		{"gRPC resets by the server: data after the end", 20, setting{grpc: true, envoy: true, rules: 1, token: true}, func(a *target) {
			for a.on() {
				a.rapidStreams(func(b []byte, stream uint32) []byte {
					return frame(frame(b, 1, 5, stream, grpcHead()), 0, 0, stream, make([]byte, 5)) // HEADERS, DATA
				})
			}
		}},
		{"gRPC half messages", 1000, setting{grpc: true}, func(a *target) {
			for a.on() {
				a.halfMessages()
				time.Sleep(200 * time.Millisecond)
			}
		}},
		{"gRPC calls without a message", 1000, setting{grpc: true}, func(a *target) {
			for a.on() {
				a.noMessages()
				time.Sleep(200 * time.Millisecond)
			}
		}},
	}, envoyAttacks()...)
}

// batchOnce returns a batch of 1000 takes with new idempotency keys.
func batchOnce(name string) string {
	var body strings.Builder
	for n := range 1000 {
		fmt.Fprintf(&body, `,{"attributes":{"action":"post","user":"%d"},"idempotency_for":86400,"idempotency_key":"%s/%d"}`, n, name, n)
	}
	return `{"requests":[` + body.String()[1:] + `]}`
}

// setting is how the service runs that is attacked.
type setting struct {
	shell, args string
	rules       int           // limits for each user; 0: 50
	export      bool          // the rules can be exported
	token       bool          // the service has a token
	grpc        bool          // it serves gRPC, which is attacked
	redis       bool          // it serves Redis clients, and that listener is attacked
	admin       bool          // the admin address is attacked, and its other client is a probe
	envoy       bool          // its other client makes Envoy's calls
	files       bool          // it has files of envoyproxy/ratelimit
	closes      bool          // connections may be closed to make room
	most        int64         // bytes of memory; 0: 400 MiB
	longest     time.Duration // 0: attackFor
}

// attacked starts the service of an attack.
func (how setting) attacked(t *testing.T, token string) *target {
	t.Helper()
	shell, rules, args := how.shell, rulesPerUser(cmp.Or(how.rules, 50)), []string{"--listen h2c://127.0.0.1:0", cmp.Or(how.args, "--memory 64MiB")}
	if how.token {
		shell += "export WEIR_TOKEN=" + token + ";"
	}
	if how.export {
		rules = strings.ReplaceAll(rules, "}", ", export: true}")
	}
	a := &target{until: time.Now().Add(cmp.Or(how.longest, attackFor)), done: make(chan struct{})}
	if how.files {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "edge.yaml"), "domain: edge\ndescriptors:\n  - key: user\n    rate_limit: {unit: hour, requests_per_unit: 1000000}\n")
		rules, args = "", append(args, "--envoy-config", dir)
	}
	if how.grpc {
		args = append(args, "--grpc-listen 127.0.0.1:0")
	}
	if how.redis {
		args = append(args, "--resp-listen 127.0.0.1:0")
	}
	a.process = startProcess(t, shell, rules, args...)
	a.addr = strings.TrimPrefix(a.api, "http://")
	if how.admin {
		a.addr = strings.TrimPrefix(a.admin, "http://")
	}
	if how.grpc || how.redis {
		pattern := regexp.MustCompile(`gRPC.*: http://(\S+)`)
		if how.redis {
			pattern = regexp.MustCompile(`Redis protocol: redis://(\S+)`)
		}
		for !pattern.MatchString(a.out.String()) {
			time.Sleep(time.Millisecond)
		}
		a.addr = pattern.FindStringSubmatch(a.out.String())[1]
	}
	return a
}

// hang sends text, and waits until the service closes the connection.
func (a *target) hang(text string) {
	c, err := net.Dial("tcp", a.addr)
	if err != nil {
		return
	}
	defer c.Close()
	a.made.Add(1)
	_ = c.SetDeadline(a.until)
	_, _ = io.WriteString(c, text)
	_, _ = io.Copy(io.Discard, c)
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

// frame appends a frame of HTTP/2.
func frame(b []byte, kind, flags byte, stream uint32, payload []byte) []byte {
	b = append(b, byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload)), kind, flags)
	return append(binary.BigEndian.AppendUint32(b, stream), payload...)
}

// http2Start is what clients of HTTP/2 send first, with SETTINGS.
func http2Start() []byte { return frame([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 4, 0, 0, nil) }

// grpcHead returns the header of a call of Envoy's.
func grpcHead() []byte {
	path := "/" + envoyrls.Service + "/ShouldRateLimit"
	head := append([]byte{0x83, 0x86, 0x41, 1, 'x', 0x04, byte(len(path))}, path...)
	head = append(append(head, 0x0f, 0x10, 16), "application/grpc"...)
	return append(append(append(append(head, 0, 2), "te"...), 8), "trailers"...)
}

// halfMessages begins calls, and sends a half of a large message in each, on one
// connection that stays open.
func (a *target) halfMessages() {
	half := append([]byte{0, 0, 0x0f, 0xff, 0xff}, make([]byte, 1000)...)
	a.streams(100, func(b []byte, stream uint32) []byte {
		b = frame(b, 1, 4, stream, grpcHead())
		for range 50 {
			b = frame(b, 0, 0, stream, half)
		}
		return b
	})
}

// noMessages begins calls, and sends nothing in them.
func (a *target) noMessages() {
	a.streams(1000, func(b []byte, stream uint32) []byte { return frame(b, 1, 4, stream, grpcHead()) })
}

// streams opens n streams on a connection, which then waits until it is closed.
func (a *target) streams(n int, open func(b []byte, stream uint32) []byte) {
	c, err := net.Dial("tcp", a.addr)
	if err != nil {
		return
	}
	defer c.Close()
	b := http2Start()
	for i := range n {
		b = open(b, uint32(2*i+1))
		a.made.Add(1)
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		if _, err := c.Write(b); err != nil {
			return
		}
		b = b[:0]
	}
	_ = c.SetReadDeadline(a.until)
	_, _ = io.Copy(io.Discard, c)
}

// rapidReset opens streams and resets each at once, on one connection.
func (a *target) rapidReset(head []byte) {
	a.rapidStreams(func(b []byte, stream uint32) []byte {
		return frame(frame(b, 1, 5, stream, head), 3, 0, stream, []byte{0, 0, 0, 8}) // HEADERS, RST_STREAM
	})
}

// rapidStreams opens streams on one connection as fast as it can.
func (a *target) rapidStreams(open func(b []byte, stream uint32) []byte) {
	c, err := net.Dial("tcp", a.addr)
	if err != nil {
		return
	}
	defer c.Close()
	go func() { _, _ = io.Copy(io.Discard, c) }()
	b := http2Start()
	for stream := uint32(1); a.on() && stream < 1<<20; stream += 2 {
		b = open(b, stream)
		a.made.Add(1)
		if len(b) > 16<<10 {
			_ = c.SetWriteDeadline(time.Now().Add(time.Second))
			if _, err := c.Write(b); err != nil {
				return
			}
			b = b[:0]
		}
	}
}

// attackers is a program that attacks a service. It runs in a separate process, so that
// the client that measures does not wait for the attackers. It prints what they have
// done.
func attackers() {
	rows := attacks()
	i := slices.IndexFunc(rows, func(row attackRow) bool { return row.name == os.Args[1] })
	until, err := time.Parse(time.RFC3339Nano, os.Args[4])
	if err != nil {
		panic(err)
	}
	a := &target{process: &process{api: os.Args[2]}, addr: os.Args[3], until: until, done: make(chan struct{})}
	var wg sync.WaitGroup
	for range rows[i].attackers {
		wg.Go(func() { rows[i].attack(a) })
	}
	wg.Wait()
	fmt.Print(a.made.Load())
}

// TestAttack attacks a service, and measures what others notice of it.
func TestAttack(t *testing.T) {
	token := access.NewToken()
	for _, tc := range attacks() {
		t.Run(strings.ReplaceAll(tc.name, " ", "-"), func(t *testing.T) {
			a := tc.how.attacked(t, token)
			p := a.process
			began, before := time.Now(), p.busy(t)
			attack := exec.Command("attackers", tc.name, a.api, a.addr, a.until.Format(time.RFC3339Nano))
			var done strings.Builder
			attack.Stdout, attack.Stderr = &done, os.Stderr
			if err := attack.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error)
			go func() { err := attack.Wait(); close(a.done); ended <- err }()
			took, refused, failed := a.neighbour(t, token, tc.how)
			cpu := 100 * (p.busy(t) - before) / time.Since(began).Seconds()
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			slices.Sort(took)
			if len(took) == 0 {
				t.Fatal("got no answer during the attack")
			}
			p99, peak := took[len(took)*99/100], p.peak(t)
			t.Logf("%-38s %5d answers, p50 %v, p99 %v, %d refused, %d failed, peak %d MiB, %.0f %% of a CPU, in %v; %s done",
				tc.name, len(took), took[len(took)/2].Round(10*time.Microsecond), p99.Round(10*time.Microsecond), refused, failed, peak>>20,
				cpu, time.Since(began).Round(100*time.Millisecond), done.String())
			slowest, most := 2*time.Second, int64(400<<20)
			if tc.how.grpc {
				slowest, most = 500*time.Millisecond, 512<<20
			}
			if failed > 0 || refused > len(took)/100 || p99 > slowest || peak > cmp.Or(tc.how.most, most) {
				t.Errorf("got %d failed, %d refused of %d, p99 %v, peak %d MiB", failed, refused, len(took), p99, peak>>20)
			}
		})
	}
}

// neighbour makes calls as an ordinary client does, on one connection and on new
// ones, until the attack is over.
func (a *target) neighbour(t *testing.T, token string, how setting) (took []time.Duration, refused, failed int) {
	if how.envoy {
		return a.proxy(t, token)
	}
	fresh := &http.Transport{DisableKeepAlives: true}
	if how.admin { // where the address is that of the attackers, some probes are lost
		fresh.DialContext = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext
	}
	for i := 0; a.on(); i++ {
		client := &http.Client{Timeout: 10 * time.Second}
		if i%4 == 0 || how.admin {
			client.Transport = fresh
		}
		method, url, body := http.MethodPost, a.api+"/v1/check", `{"attributes":{"user":"neighbour"}}`
		if how.admin {
			method, url, body = http.MethodGet, a.admin+"/healthz", ""
		}
		req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		began := time.Now()
		resp, err := client.Do(req)
		if how.closes && errors.Is(err, syscall.ECONNRESET) {
			refused++ // the connection made room for a new one
			continue
		}
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

// busy returns the CPU time of the process, in seconds.
func (p *process) busy(t *testing.T) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Process.Pid))
	if err != nil {
		t.Skipf("no /proc here: %v", err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	ticks := 0.0 // of 10 ms: user and system
	for _, field := range fields[11:13] {
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return ticks / 100
}

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
)

// BenchmarkKoalaListener makes 64 callers ask koala's listener of a real service on a real
// Redis, in bursts for one user each, on a machine that does nothing else and on
// one whose cores are busy. It fails when a burst is admitted more or less often
// than the rule says, or when a decision was degraded. Run it by itself:
//
//	go test ./cmd/weir -run '^$' -bench KoalaListener -benchtime 1x
func BenchmarkKoalaListener(b *testing.B) {
	for _, busy := range []bool{false, true} {
		b.Run(fmt.Sprintf("busy=%v", busy), func(b *testing.B) {
			addr, admin := serveKoala(b, redistest.Server(b).Addr())
			if busy {
				keepBusy(b)
			}
			for b.Loop() {
				askInBursts(b, addr)
			}
			if n := degradedDecisions(b, admin); n != "0" {
				b.Errorf("degraded decisions: got %s, want 0", n)
			}
		})
	}
}

const (
	burstCallers = 64
	bursts       = 200
	burstQuota   = 2
)

// askInBursts makes all callers ask for one user after the other.
func askInBursts(b *testing.B, addr string) {
	var admitted [bursts]atomic.Int64
	var longest atomic.Int64
	var next atomic.Int64
	var callers sync.WaitGroup
	for range burstCallers {
		callers.Go(func() {
			for {
				n := next.Add(1) - 1
				if n >= bursts*burstCallers {
					return
				}
				burst := n / burstCallers
				began := time.Now()
				row, err := askListener(addr, fmt.Sprintf("/rule/browse?act=pair&uid=%d&_writeThrough=yes", burst))
				took := int64(time.Since(began))
				for most := longest.Load(); took > most && !longest.CompareAndSwap(most, took); {
					most = longest.Load()
				}
				switch {
				case err != nil:
					b.Error(err)
				case strings.Contains(row, `"Err_no":0,`):
					admitted[burst].Add(1)
				case !strings.Contains(row, `"Ret_code":502,`):
					b.Errorf("got row %q", row)
				}
			}
		})
	}
	callers.Wait()
	for i := range admitted {
		if n := admitted[i].Load(); n != burstQuota {
			b.Errorf("burst %d: got %d admitted, want %d", i, n, burstQuota)
		}
	}
	b.ReportMetric(bursts*burstCallers, "calls")
	b.ReportMetric(float64(longest.Load())/1e6, "ms-longest")
}

// askListener asks as koala's clients do, with a connection for each call.
func askListener(addr, uri string) (row string, err error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET "+uri+" HTTP/1.1\r\nAccept: */*\r\n\r\n"); err != nil {
		return "", err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

// serveKoala starts weir serve in a separate process. It returns the address of
// koala's listener, and the URL for operators.
func serveKoala(b *testing.B, redis string) (addr, admin string) {
	dir := b.TempDir()
	program, rules := filepath.Join(dir, "weir"), filepath.Join(dir, "koala_rule.conf")
	if err := os.Symlink(os.Args[0], program); err != nil { // TestMain runs main under this name
		b.Fatal(err)
	}
	text := fmt.Sprintf(`[rules]
rule : [count] [act=pair;uid=+] [time=3600; count=%d;] [result=2; return=502]

[result]
0 : { "Ret_type":0, "Ret_code":0, "Err_no":0, "Err_msg":"", "Str_reason":"Allow", "Need_vcode":0, "Vcode_len":0, "Vcode_type":0, "Other":"", "Version":0 }
1 : { "Ret_type":1, "Ret_code":0, "Err_no":0, "Err_msg":"", "Str_reason":"Allow", "Need_vcode":0, "Vcode_len":0, "Vcode_type":0, "Other":"", "Version":0 }
2 : { "Ret_type":2, "Ret_code":0, "Err_no":10, "Err_msg":"", "Str_reason":"Deny", "Need_vcode":0, "Vcode_len":0, "Vcode_type":0, "Other":"", "Version":0 }
`, burstQuota)
	if err := os.WriteFile(rules, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	weir := exec.Command(program, "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
		"--koala", rules, "--koala-listen", "127.0.0.1:0", "--store", "redis://"+redis, "--nodes", "1")
	said, err := weir.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	weir.Stderr = os.Stderr
	if testing.Verbose() {
		b.Log(weir.Args)
	}
	if err := weir.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = weir.Process.Kill(); _ = weir.Wait() })
	greeting := bufio.NewScanner(said)
	for (addr == "" || admin == "") && greeting.Scan() {
		if m := regexp.MustCompile(`its admin on (http://\S+)`).FindStringSubmatch(greeting.Text()); m != nil {
			admin = strings.TrimRight(m[1], ",.;")
		}
		if m := regexp.MustCompile(`koala\D*http://([0-9.:]+)`).FindStringSubmatch(greeting.Text()); m != nil {
			addr = m[1]
		}
	}
	if addr == "" || admin == "" {
		b.Fatal("the service has not told its addresses")
	}
	go func() { _, _ = io.Copy(io.Discard, said) }()
	return addr, admin
}

// keepBusy keeps every core of the machine busy with separate processes.
func keepBusy(b *testing.B) {
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(cancel)
	for range runtime.NumCPU() {
		if err := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done").Start(); err != nil {
			b.Fatal(err)
		}
	}
}

// degradedDecisions returns how many decisions a service has made without its
// store.
func degradedDecisions(b *testing.B, admin string) string {
	answer, err := http.Get(admin + "/metrics")
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		b.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^weir_decisions_degraded_total\{namespace="default"\} (\d+)$`).FindSubmatch(text)
	if m == nil {
		b.Fatalf("no count of degraded decisions in the metrics")
	}
	return string(m[1])
}

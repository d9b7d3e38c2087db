package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
)

// labelled returns the value of a metric with labels, or 0 where it is missing.
func (p *process) labelled(t *testing.T, name string) (n float64) {
	t.Helper()
	resp, err := http.Get(p.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			if _, err := fmt.Sscan(value, &n); err != nil {
				t.Fatal(err)
			}
		}
	}
	return n
}

// An instance that admits by itself while Redis is down, and is killed: the next process
// continues its local counts, and reports what both have admitted when Redis is back. A
// third process reports nothing again.
func TestReportsSurviveAKill(t *testing.T) {
	t.Parallel()
	redis := redistest.Server(t)
	args := []string{"--store", "redis://" + redis.Addr(), "--nodes", "1", "--data", t.TempDir(), "--sync-interval", "10ms"}
	start := func() *loaded {
		l := &loaded{process: startProcess(t, "", dataRules, args...)}
		l.ready(t)
		return l
	}
	take := func(l *loaded, hits int) {
		for range hits {
			if !l.take(1) {
				t.Fatal("a take was not answered")
			}
		}
	}
	kill := func(l *loaded) {
		for last := time.Now(); ; {
			if at, ok := l.flushed(); ok && at.After(last) {
				break
			}
		}
		l.stopped = true
		_ = l.Process.Kill()
		_ = l.Wait()
	}
	l := start()
	redis.Kill()
	take(l, 5)
	if n := l.metric(t, "weir_store_report_pending"); n != 1 {
		t.Errorf("got %v keys that wait for a report, want 1", n)
	}
	kill(l)

	l = start()
	l.waitFor(t, "weir_store_report_pending", func(n float64) bool { return n == 1 })
	take(l, 2)
	kill(l)

	redis.Restart() // without its data
	l = start()
	const recorded = `weir_store_report_hits_total{result="recorded"}`
	for end := time.Now().Add(20 * time.Second); l.labelled(t, recorded) != 7; {
		if time.Now().After(end) {
			t.Fatalf("got %v hits recorded in Redis, want 7\n%s", l.labelled(t, recorded), l.logs.String())
		}
	}
	if n := used(t, l.api)[1]; n != 7 {
		t.Errorf("got %d used in Redis, want 7", n)
	}
	kill(l)

	l = start()
	again := float64(0)
	if degraded(t, l.api) { // on a busy machine Redis may answer too late
		again = 1
	}
	for end := time.Now().Add(20 * time.Second); used(t, l.api)[1] != 8; {
		if time.Now().After(end) {
			t.Fatalf("after another kill: got %d used in Redis, want 8\n%s", used(t, l.api)[1], l.logs.String())
		}
	}
	if n := l.labelled(t, recorded); n != again {
		t.Errorf("after another kill: got %v hits recorded, want %v", n, again)
	}
}

// degraded takes a hit of user u1, and reports whether the answer is degraded: memory
// has counted the hit, instead of Redis.
func degraded(t *testing.T, api string) bool {
	t.Helper()
	resp, err := http.Post(api+"/v1/take", "application/json", strings.NewReader(`{"attributes": {"user": "u1"}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var d struct{ Allowed, Degraded bool }
	if err := json.NewDecoder(resp.Body).Decode(&d); err != nil || !d.Allowed {
		t.Fatalf("got %+v, %v, want allowed", d, err)
	}
	return d.Degraded
}

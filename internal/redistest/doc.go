// Package redistest runs real Redis processes for tests: one server, a primary
// with replicas, Sentinels, a cluster, and a proxy that breaks connections on
// demand. Everything listens on free ports of the loopback, keeps its files in
// the test's own directory and ends with the test.
//
// Without a redis-server to run, tests skip, or fail when WEIR_REQUIRE_REDIS=1.
// WEIR_REDIS_SERVER names another program, such as valkey-server.
package redistest

import (
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// patience is how long a process may take to get ready, on a machine that is busy
// with other tests.
const patience = time.Minute

// program returns the path of the server to run.
func program(t testing.TB) string {
	t.Helper()
	name := os.Getenv("WEIR_REDIS_SERVER")
	if name == "" {
		name = "redis-server"
	}
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path
	case os.Getenv("WEIR_REQUIRE_REDIS") == "1":
		t.Fatalf("%v: install Redis, or name the program in WEIR_REDIS_SERVER", err)
	default:
		t.Skipf("%v: install Redis to run this test", err)
	}
	return ""
}

// Eventually calls ok until it returns true. It fails the test when that takes
// more than a minute; what names the condition.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for pause := time.Millisecond; !ok(); pause = min(2*pause, 50*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not so after %v", what, patience)
		}
		time.Sleep(pause)
	}
}

// Clock returns a clock of naps, one after the other until the test ends: it is as slow as a machine that has too
// much to do. A bound in its time on what a program does holds on such a machine, too.
func Clock(t testing.TB) func() time.Duration {
	const nap = 10 * time.Millisecond
	var passed atomic.Int64
	var ended atomic.Bool
	var naps sync.WaitGroup
	naps.Go(func() {
		for ; !ended.Load(); passed.Add(int64(nap)) {
			time.Sleep(nap)
		}
	})
	t.Cleanup(func() { ended.Store(true); naps.Wait() })
	return func() time.Duration { return time.Duration(passed.Load()) }
}

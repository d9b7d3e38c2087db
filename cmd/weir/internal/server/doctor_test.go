package server_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/server"
	"github.com/weirhq/weir/internal/redistest"
)

// A start logs each warning of the checks on one line, and goes on.
func TestStartLogsWarnings(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	s := startOnStore(t, onStore(t, n, 2))
	s.logs.await(t, 1, `msg="store check: eviction"`)
	s.logs.await(t, 1, `msg="store check: persistence"`)
	if a := call(t, "POST", s.api+"/v1/take", `{"attributes":{"user":"42"}}`); a.json["allowed"] != true || a.json["degraded"] == true {
		t.Errorf("a take: got %s", a.text)
	}
}

// A server that does not fit ends the start, with the fix in the error.
func TestStartRefusesServer(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	n.Must("ACL", "SETUSER", "weir", "on", ">secret", "~weir:*", "+@all", "-zadd", "-hset")
	cfg := config.Default()
	cfg.Listen, cfg.Admin = "127.0.0.1:0", "127.0.0.1:0"
	onStore(t, n, 2)(&cfg)
	cfg.Store = "redis://weir:secret@" + n.Addr()
	err := server.Run(t.Context(), cfg, io.Discard, io.Discard)
	if err == nil {
		t.Fatal("got a start without the rights, want an error")
	}
	for _, want := range []string{"redis://weir@" + n.Addr(), "rights", "fix: ACL SETUSER weir ~weir:* +zadd +hset"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got error %q, want %q in it", err, want)
		}
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("got the password in %q", err)
	}
}

// A server that is unavailable is not checked, and delays the start by seconds
// at most.
func TestStartWithoutServer(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	n.Stop()
	defer n.Continue()
	clock := redistest.Clock(t)
	s := start(t, onStore(t, n, 2))
	s.logs.await(t, 1, "store not checked")
	if took := clock(); took > 15*time.Second {
		t.Errorf("with a stopped server: got a start after %v", took)
	}
}

// A server that is unavailable is named once, with the reason.
func TestDoctorNamesServersOnce(t *testing.T) {
	t.Parallel()
	a, b := freeAddr(t), freeAddr(t)
	for url, want := range map[string]string{
		"redis://" + a:                    a + ": no connection: connect: connection refused: not checked",
		"redis+cluster://" + a + "," + b:  "no connection: connect: connection refused, ",
		"redis+sentinel://" + a + "/main": "primary main: no connection: sentinel " + a + ": connect: connection refused: not checked",
	} {
		var out strings.Builder
		if err := server.Doctor(t.Context(), url, false, false, &out); err == nil {
			t.Errorf("%s: got no error", url)
		}
		if got := out.String(); !strings.Contains(got, want) || strings.Count(got, a) != 1 {
			t.Errorf("%s: got %q, want %q and %s once", url, got, want, a)
		}
	}
}

// freeAddr returns an address without a listener.
func freeAddr(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", redistest.FreePort(t))
}

// The clocks of a cluster are compared with this machine's in one finding.
func TestDoctorComparesClocksOfCluster(t *testing.T) {
	t.Parallel()
	url := "redis+cluster://" + redistest.Cluster(t, 3, 0).Addrs() + "?timeout=10s"
	var out strings.Builder
	if err := server.Doctor(t.Context(), url, false, false, &out); err != nil {
		t.Error(err)
	}
	if got := out.String(); strings.Count(got, "clock-rate") != 1 || !strings.Contains(got, " ‰, measured to ") && !strings.Contains(got, "too far away") {
		t.Errorf("got %s, want the rate of the clocks once", got)
	}
}

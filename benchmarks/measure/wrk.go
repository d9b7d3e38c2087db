package measure

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Wrk reports whether the load generator wrk is installed.
func Wrk() bool {
	_, err := exec.LookPath("wrk")
	return err == nil
}

// WrkHTTP measures what [HTTP] does, with load from wrk. script is Lua text that defines the
// function request; it can call user() for the number of the next user.
func WrkHTTP(addr, script string, n int, d time.Duration) (Load, error) {
	folder, err := os.MkdirTemp("", "bench-peers-*")
	if err != nil {
		return Load{}, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, "load.lua")
	if err := os.WriteFile(path, []byte(wrkLua+script), 0o600); err != nil {
		return Load{}, err
	}
	seconds := max(1, int(d.Round(time.Second).Seconds()))
	out, err := exec.Command("wrk", "-t1", fmt.Sprintf("-c%d", n), fmt.Sprintf("-d%ds", seconds), "-s", path, "http://"+addr).CombinedOutput()
	if err != nil {
		return Load{}, fmt.Errorf("wrk: %w\n%s", err, out)
	}
	var calls, micros, p99, failed float64
	line := string(out[strings.LastIndexByte(strings.TrimSpace(string(out)), '\n')+1:])
	if _, err := fmt.Sscan(line, &calls, &micros, &p99, &failed); err != nil {
		return Load{}, fmt.Errorf("wrk: %w: %s", err, out)
	}
	if failed > 0 {
		return Load{}, fmt.Errorf("wrk: %v failed calls: %s", failed, out)
	}
	return Load{PerSecond: calls / micros * 1e6, Calls: calls, P99: time.Duration(p99) * time.Microsecond}, nil
}

// wrkLua prints calls, microseconds, the 99th percentile and failed calls.
const wrkLua = `
done = function(summary, latency)
  local e = summary.errors
  io.write(string.format("%d %d %d %d\n", summary.requests, summary.duration, latency:percentile(99),
    e.status + e.timeout + e.read + e.write + e.connect))
end
local n = 0
user = function()
  n = n + 1
  return n % 100000
end
`

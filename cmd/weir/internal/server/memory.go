package server

import (
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/cmd/weir/internal/config"
)

// tableBytes returns the bound for the counters in memory, or 0 for none. It also
// makes the garbage collector keep to the memory that this process may use, unless
// GOMEMLIMIT is set.
func tableBytes(cfg config.Config, log *slog.Logger) int64 {
	available := availableMemory("/")
	if available > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(available / 10 * 9)
	}
	bound := int64(cfg.Bounds.Memory)
	if cfg.Bounds.Memory == config.AutoMemory {
		if bound = available / 2; bound == 0 {
			log.Warn("--memory is not set, and the memory of this machine is not known: counters in memory have no common bound")
		}
	}
	return bound
}

// availableMemory returns the memory that this process may use, as files below
// root say: that of its control group or of the machine, whichever is less; 0 if
// neither is known.
func availableMemory(root string) int64 {
	least := int64(0)
	for _, n := range []int64{
		number(root+"/sys/fs/cgroup/memory.max", ""),                   // version 2
		number(root+"/sys/fs/cgroup/memory/memory.limit_in_bytes", ""), // version 1
		number(root+"/proc/meminfo", "MemTotal:") << 10,
	} {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// number returns the number behind a word of a file, or at its start if word is empty. It
// returns 0 if there is none, as where a control group has the word max for no bound.
func number(path, word string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	at := slices.Index(fields, word) + 1
	if at >= len(fields) {
		return 0
	}
	n, err := strconv.ParseInt(fields[at], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

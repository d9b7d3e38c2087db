package server

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
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
	bound := int64(cfg.Resources.Memory)
	if cfg.Resources.Memory == config.AutoMemory {
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
		number(root, "sys/fs/cgroup/memory.max"),                   // version 2
		number(root, "sys/fs/cgroup/memory/memory.limit_in_bytes"), // version 1
		kibibytes(root, "proc/meminfo", "MemTotal:"),
	} {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// number returns the number in a file, or 0.
func number(root, path string) int64 {
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0 // the word max, for no bound
	}
	return n
}

// kibibytes returns the number of kibibytes behind a word in a file, in bytes, or
// 0.
func kibibytes(root, path, word string) int64 {
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	for i := 0; i+1 < len(fields); i++ {
		if fields[i] == word {
			n, err := strconv.ParseInt(fields[i+1], 10, 64)
			if err != nil {
				return 0
			}
			return n << 10
		}
	}
	return 0
}

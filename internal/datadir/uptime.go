package datadir

import (
	"crypto/sha256"
	"encoding/binary"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/window"
)

// startOf returns a number that identifies the boot of the machine, or 0 if the system does
// not provide one.
func startOf() uint64 {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return 0
	}
	sum := sha256.Sum256(id)
	return binary.LittleEndian.Uint64(sum[:])
}

// uptime returns the time since the machine was started, in microseconds, or 0 if
// the system does not provide it. Unlike the wall clock, it cannot be set between two
// processes.
func uptime() int64 {
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return 0
	}
	seconds, _, _ := strings.Cut(string(text), " ")
	up, err := strconv.ParseFloat(seconds, 64)
	if err != nil {
		return 0
	}
	return int64(up * 1e6)
}

// grain is the resolution of uptime.
const grain = 10 * time.Millisecond

// resumed returns the steady clock of now, given that it showed last at the uptime then, and
// that the machine's wall clock shows wall.
//
// While the machine runs, its uptime gives the time that has passed. After a reboot only the
// wall clock can give it. If it was set back since then, it shows an earlier instant than
// last, and the steady clock continues from last. Time thus never runs backwards, and quota
// becomes available late instead of early.
func resumed(last window.Instant, then int64, thenBoot uint64, now int64, boot uint64, wall window.Instant) window.Instant {
	if boot != 0 && boot == thenBoot && then > 0 && now >= then {
		return last.Add(max(0, time.Duration(now-then)*time.Microsecond-grain))
	}
	return max(last, wall)
}

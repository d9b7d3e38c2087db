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

// startOf returns a number that stands for the start of the machine, or 0 where the
// system does not tell.
func startOf() uint64 {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return 0
	}
	sum := sha256.Sum256(id)
	return binary.LittleEndian.Uint64(sum[:])
}

// uptime returns the time since the machine was started, in microseconds, or 0 where
// the system does not tell. The wall clock may be set between two processes; this
// clock cannot.
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

// grain is how exact uptime is.
const grain = 10 * time.Millisecond

// resumed returns what the steady clock shows now, where it showed last when the
// uptime was then, and the machine's wall clock shows wall.
//
// While the machine runs, its uptime says how much time has passed. After another
// start only the wall clock can tell; one that was set back since then shows an
// earlier instant than last, and the steady clock goes on from there. So the time
// never runs backwards, and quota comes back late rather than early.
func resumed(last window.Instant, then int64, thenBoot uint64, now int64, boot uint64, wall window.Instant) window.Instant {
	if boot != 0 && boot == thenBoot && then > 0 && now >= then {
		return last.Add(max(0, time.Duration(now-then)*time.Microsecond-grain))
	}
	return max(last, wall)
}

//go:build !linux

package wire

import "time"

// awaitKept returns at once, so that a watch ends.
func awaitKept(uintptr, time.Duration) bool { return true }

// await returns at once.
func await(uintptr, time.Duration) {}

//go:build !linux

package wire

import "time"

// awaitReadable returns at once.
func awaitReadable(uintptr, time.Duration) {}

//go:build !linux

package redistest

import (
	"syscall"
	"time"
)

// diesWithParent does nothing: only Linux can do it. Processes then end when the
// test ends, but not when it panics.
func diesWithParent() *syscall.SysProcAttr { return nil }

// Waited returns nothing: only Linux tells.
func Waited(int) map[string]time.Duration { return nil }

// Children returns nothing: only Linux tells.
func Children() []int { return nil }

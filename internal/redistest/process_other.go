//go:build !linux

package redistest

import (
	"syscall"
	"time"
)

// diesWithParent returns nil, because only Linux supports it. Processes then end when the test ends, but
// not when it panics.
func diesWithParent() *syscall.SysProcAttr { return nil }

// Waited returns nil, because only Linux provides it.
func Waited(int) map[string]time.Duration { return nil }

// Children returns nil, because only Linux provides it.
func Children() []int { return nil }

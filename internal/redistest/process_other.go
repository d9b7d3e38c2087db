//go:build !linux

package redistest

import "syscall"

// diesWithParent returns nil, because only Linux supports it. Processes then end when the test ends, but
// not when it panics.
func diesWithParent() *syscall.SysProcAttr { return nil }

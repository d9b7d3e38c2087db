//go:build !linux

package redistest

import "syscall"

// diesWithParent asks for nothing: only Linux can do it. Processes then end
// when the test does, but not when it panics.
func diesWithParent() *syscall.SysProcAttr { return nil }

package redistest

import "syscall"

// diesWithParent makes the kernel kill the process when the test process ends, because a panic in one
// test skips the cleanup of all others.
func diesWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

package redistest

import "syscall"

// diesWithParent has the kernel kill the process when ours ends, however it
// ends: a panic in one test skips the cleaning up of all others.
func diesWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

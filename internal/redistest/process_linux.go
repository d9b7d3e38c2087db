package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// diesWithParent makes the kernel kill the process when the test process ends: a
// panic in one test skips the cleanup of all others.
func diesWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// Waited returns how long each thread of a process has been ready to run and had
// no core, so far. There is none where the system does not tell.
func Waited(pid int) map[string]time.Duration {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	all := make(map[string]time.Duration, len(threads))
	for _, file := range threads {
		b, err := os.ReadFile(file)
		var ran, queued time.Duration
		if _, scan := fmt.Sscan(string(b), &ran, &queued); err == nil && scan == nil {
			all[file] = queued
		}
	}
	return all
}

package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// diesWithParent makes the kernel kill the process when the test process ends, because a panic in one
// test skips the cleanup of all others.
func diesWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// Waited returns how long each thread of a process has been ready to run and had
// no core, so far: of this process all threads, of another one the main thread.
// It returns nil if the system does not provide that.
func Waited(pid int) map[string]time.Duration {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if pid != os.Getpid() && len(threads) > 0 {
		threads = []string{fmt.Sprintf("/proc/%[1]d/task/%[1]d/schedstat", pid)}
	}
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

// Children returns the processes that this one has started and that still run.
func Children() (pids []int) {
	files, _ := filepath.Glob("/proc/self/task/*/children")
	for _, file := range files {
		b, _ := os.ReadFile(file) // the thread may have ended
		for field := range strings.FieldsSeq(string(b)) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

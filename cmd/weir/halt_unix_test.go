//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weirhq/weir/internal/redistest"
)

// halt stops the service with SIGSTOP, and returns when all its threads have stopped.
func (p *process) halt(t *testing.T) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, "the service has stopped", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.Process.Pid))
		if err != nil || len(threads) == 0 {
			t.Skip("no /proc here")
		}
		for _, thread := range threads {
			text, err := os.ReadFile(thread)
			if _, state, _ := strings.Cut(string(text), ") "); err != nil || !strings.HasPrefix(state, "T") {
				return false
			}
		}
		return true
	})
}

// carryOn ends a halt.
func (p *process) carryOn(t *testing.T) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

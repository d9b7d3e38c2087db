//go:build unix

package redistest

import (
	"os"
	"syscall"
)

// The signals that stop a process and continue it.
var stopSignal, continueSignal os.Signal = syscall.SIGSTOP, syscall.SIGCONT

//go:build !linux

package pgtest

import (
	"os"
	"syscall"
)

// Other systems stop no processes. A server is killed at its end.
var stopSignal, continueSignal, endSignal os.Signal = nil, os.Kill, os.Kill

// attributes returns nil: a server runs as the user of the test, who must not be root, and does
// not end when the test panics.
func attributes() *syscall.SysProcAttr { return nil }

func own(string) error { return nil }

func children(int) []int { return nil }

//go:build !unix

package main

import "testing"

// halt skips the test: only Unix can stop a process and continue it.
func (p *process) halt(t *testing.T) {
	t.Helper()
	t.Skip("only Unix can stop a process and continue it")
}

// carryOn ends a halt.
func (p *process) carryOn(*testing.T) {}

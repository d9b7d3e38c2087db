//go:build unix

package server_test

import (
	"os"
	"syscall"
	"testing"
)

// Not parallel: the signal reaches every service in the process.
func TestReloadOnSignal(t *testing.T) {
	path := rulesFile(t, posts(2))
	s := start(t, withRules(path, false))
	s.logs.await(t, 1, "msg=listening")
	write(t, path, posts(3))
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	s.logs.await(t, 1, `msg="rules loaded" asked=SIGHUP`)
	wantPosts(t, s, "ann", 3)
}

package pgtest

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"
)

// The signals that stop a process and continue it, and the one that ends a server at once and
// makes it leave no shared memory behind.
var stopSignal, continueSignal, endSignal os.Signal = syscall.SIGSTOP, syscall.SIGCONT, syscall.SIGQUIT

// attributes makes a process run as a user who may run a server. The kernel kills it when the
// test process ends, because a panic in one test skips the cleanup of all others.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: credential()}
}

// own gives a directory to the user whom servers run as.
func own(dir string) error {
	if id := credential(); id != nil {
		return os.Chown(dir, int(id.Uid), int(id.Gid))
	}
	return nil
}

// credential returns the user whom servers run as; nil: the one of the test.
func credential() *syscall.Credential {
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	return &syscall.Credential{Uid: 65534, Gid: 65534}
}

// children returns the processes that a process has started.
func children(of int) (pids []int) {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", of))
	for field := range strings.FieldsSeq(string(b)) {
		if pid, err := strconv.Atoi(field); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

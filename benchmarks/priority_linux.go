package main

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// calm starts the program anew, with the highest ordinary priority that it can get, if
// it was started with a real-time one (chrt -f). A thread with a real-time priority
// keeps the threads of the system that deliver packets from running, and threads of
// two such programs can wait for each other for ever.
func calm() error {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil || attr.Policy != unix.SCHED_FIFO && attr.Policy != unix.SCHED_RR {
		return nil //nolint:nilerr // a system that does not tell its priority goes on as it is
	}
	runtime.LockOSThread() // the new program has the priority of this thread
	ordinary := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: -20}
	if err := unix.SchedSetAttr(0, &ordinary, 0); err != nil {
		ordinary.Nice = 0
		if err := unix.SchedSetAttr(0, &ordinary, 0); err != nil {
			return fmt.Errorf("leave the real-time priority: %w", err)
		}
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	return unix.Exec(program, os.Args, os.Environ())
}

// priority describes the priority of the program.
func priority() string {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return "unknown"
	}
	return fmt.Sprintf("nice %d", attr.Nice)
}

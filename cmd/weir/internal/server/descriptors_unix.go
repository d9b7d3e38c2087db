//go:build unix

package server

import "syscall"

// descriptors returns how many files and connections this process may have open,
// or 0 if that is not known.
func descriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(limit.Cur, 1<<30))
}

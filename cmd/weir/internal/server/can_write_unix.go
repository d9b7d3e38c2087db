//go:build unix

package server

import (
	"fmt"
	"syscall"
)

// canWrite returns an error if this process can create no files in a directory. It creates none.
func canWrite(dir string) error {
	const write, search = 2, 1
	if err := syscall.Access(dir, write|search); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return nil
}

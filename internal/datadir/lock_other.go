//go:build !darwin && !dragonfly && !freebsd && !linux && !netbsd && !openbsd && !windows

package datadir

import (
	"errors"
	"os"
)

// lock cannot lock files on this system.
func lock(string) (held *os.File, ok bool, err error) {
	return nil, false, errors.ErrUnsupported
}

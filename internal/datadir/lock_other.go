//go:build !darwin && !dragonfly && !freebsd && !linux && !netbsd && !openbsd && !windows

package datadir

import (
	"errors"
	"io"
)

// lock cannot lock files on this system.
func lock(string) (held io.Closer, ok bool, err error) {
	return nil, false, errors.ErrUnsupported
}

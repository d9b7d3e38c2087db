package datadir

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// errSharing is the error of Windows for a file that another process has open.
const errSharing = syscall.Errno(32)

// lock opens the file at path, which it makes if need be, so that no other process
// can open it until the returned file is closed or the process ends. It reports false
// when another process has it.
func lock(path string) (held io.Closer, ok bool, err error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, false, err
	}
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil, syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, errSharing) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), true, nil
}

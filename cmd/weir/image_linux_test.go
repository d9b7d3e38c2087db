package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// runIn runs the program weir of a root directory, and returns what it prints. For
// root, the program sees nothing but that directory, and runs as another user.
func runIn(root, arg string) (string, error) {
	cmd := exec.Command(filepath.Join(root, "weir"), arg)
	if os.Geteuid() == 0 {
		cmd.Path, cmd.Dir = "/weir", "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

package trial

import (
	"os"
	"os/exec"
)

// Command is the command of the program that runs [Work] with its standard input and output.
const Command = "trial-worker"

// Self returns the command of a worker: this program. On Linux it is the one that runs, even if its file was replaced.
func Self() *exec.Cmd {
	path := "/proc/self/exe"
	if _, err := os.Stat(path); err != nil {
		if path, err = os.Executable(); err != nil {
			path = os.Args[0]
		}
	}
	return exec.Command(path, Command)
}

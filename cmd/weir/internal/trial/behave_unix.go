//go:build unix

package trial

import (
	"os"
	"syscall"
)

// niceness is the lowest priority: a worker gets what the service leaves.
const niceness = 19

// behave makes this process give way to the service, and, on Linux, be the one that is ended if the machine has no
// memory left.
func behave() {
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, niceness)
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // there is none on other systems
}

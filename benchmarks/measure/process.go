package measure

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// CPU returns the processor time that the threads of a process have used. It is NaN
// where the system does not tell, which is everywhere but on Linux.
func CPU(pid int) float64 {
	folder := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.ReadDir(folder)
	if err != nil {
		return None()
	}
	sum := 0.0
	for _, t := range threads {
		// A thread that has ended meanwhile is left out.
		if text, err := os.ReadFile(filepath.Join(folder, t.Name(), "schedstat")); err == nil {
			ran, _, _ := strings.Cut(string(text), " ")
			n, err := strconv.ParseFloat(ran, 64)
			if err != nil {
				return None()
			}
			sum += n
		}
	}
	return sum / float64(time.Second)
}

// Resident returns the bytes of memory that a process has, and the most that it has
// had. Both are NaN where the system does not tell.
func Resident(pid int) (now, most float64) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return None(), None()
	}
	return field(string(text), "VmRSS:"), field(string(text), "VmHWM:")
}

// field returns a number of kilobytes from a status, in bytes.
func field(status, name string) float64 {
	_, rest, ok := strings.Cut(status, name)
	if !ok {
		return None()
	}
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return None()
	}
	return n * 1024
}

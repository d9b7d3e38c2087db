package measure

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Apart gives the server the first core, and this process the others, until the function
// that it returns is called. A system may otherwise run both on one core, because each
// wakes the other.
func (s *Server) Apart() (together func(), err error) {
	var all, first, others unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, err
	}
	for cpu := range 1024 {
		switch {
		case !all.IsSet(cpu):
		case first.Count() == 0:
			first.Set(cpu)
		default:
			others.Set(cpu)
		}
	}
	if others.Count() == 0 {
		return nil, errors.New("it needs two cores")
	}
	together = func() {
		_ = pin(s.PID(), &all) // as before; what fails is seen in the next rows
		_ = pin(os.Getpid(), &all)
	}
	if err := errors.Join(pin(s.PID(), &first), pin(os.Getpid(), &others)); err != nil {
		together()
		return nil, err
	}
	return together, nil
}

// pin lets all threads of a process run on some cores. New threads follow those that
// make them.
func pin(pid int, cores *unix.CPUSet) error {
	threads, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return err
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(id, cores); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

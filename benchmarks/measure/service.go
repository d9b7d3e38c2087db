package measure

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"time"
)

// Service is a running program that answers HTTP.
type Service struct {
	Addr  string        // host:port
	Koala string        // host:port of koala's calls, if there are any
	Ready time.Duration // from its start to the first connection

	cmd *exec.Cmd
}

// StartService runs a program and waits until it accepts connections. arguments gets
// three free addresses and returns the program's arguments.
func StartService(path string, arguments func(a, b, c string) []string) (*Service, error) {
	var addrs [3]string
	for i := range addrs {
		addr, _, err := freePort()
		if err != nil {
			return nil, err
		}
		addrs[i] = addr
	}
	s := &Service{Addr: addrs[0], Koala: addrs[2], cmd: exec.Command(path, arguments(addrs[0], addrs[1], addrs[2])...)}
	start := time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	for range 20_000 {
		var d net.Dialer
		conn, err := d.Dial("tcp", s.Addr)
		if err == nil {
			s.Ready = time.Since(start)
			return s, conn.Close()
		}
		time.Sleep(time.Millisecond / 2)
	}
	return nil, errors.Join(fmt.Errorf("%s does not answer on %s", path, s.Addr), s.Stop())
}

// PID returns the number of the process.
func (s *Service) PID() int { return s.cmd.Process.Pid }

// Stop ends the program.
func (s *Service) Stop() error {
	err := s.cmd.Process.Kill()
	_ = s.cmd.Wait() // always an error, because it was killed
	return err
}

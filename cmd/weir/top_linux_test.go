package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// TestTopInATerminal runs weir top in its own terminal: it shows what the
// service decides meanwhile, stops and goes on, and leaves the terminal as it
// was.
func TestTopInATerminal(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "", "")
	p.call(t, http.MethodPost, "/v1/take", `{"attributes":{"action":"post","user":"ann"}}`)

	screen, side := terminal(t, 70, 20)
	cmd := exec.Command("weir", "top", "--every", "100ms", "--addr", p.api) // which TestMain provides
	cmd.Stdin, cmd.Stdout, cmd.Stderr = side, side, side
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = side.Close()
	shown := newScreen(t, screen)
	shown.until("        1            ann")
	p.call(t, http.MethodPost, "/v1/take", `{"attributes":{"action":"post","user":"ann"},"hits":4}`)
	shown.until("        5 ")
	p.call(t, http.MethodPost, "/v1/take", `{"attributes":{"action":"post","user":"ann"}}`)
	shown.until("used 5 of 5, asked for 1")
	shown.press(" ")
	shown.until("PAUSED")
	shown.press(" ")
	shown.until("space: pause")
	shown.press("q")
	shown.until(screenClose)
	if err := cmd.Wait(); err != nil {
		t.Errorf("weir top ends with %v", err)
	}
}

// terminal returns the two sides of a pseudo-terminal: what a person sees, and
// what a program writes to.
func terminal(t *testing.T, width, height uint16) (screen, side *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	var number, unlocked uint32
	control(t, screen, syscall.TIOCSPTLCK, unsafe.Pointer(&unlocked))
	control(t, screen, syscall.TIOCGPTN, unsafe.Pointer(&number))
	window := [4]uint16{height, width}
	control(t, screen, syscall.TIOCSWINSZ, unsafe.Pointer(&window))
	side, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return screen, side
}

func control(t *testing.T, f *os.File, request uintptr, argument unsafe.Pointer) {
	t.Helper()
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(argument)); errno != 0 {
		t.Fatalf("ioctl %#x: %v", request, errno)
	}
}

// seen is what a terminal has shown.
type seen struct {
	t    *testing.T
	to   io.Writer
	more chan []byte
	text []byte
}

func newScreen(t *testing.T, screen *os.File) *seen {
	s := &seen{t: t, to: screen, more: make(chan []byte)}
	go func() {
		defer close(s.more)
		for {
			b := make([]byte, 4096)
			n, err := screen.Read(b)
			if err != nil {
				return // the program has ended
			}
			s.more <- b[:n]
		}
	}()
	return s
}

// until reads until the terminal shows text, and forgets what it has shown.
func (s *seen) until(text string) {
	s.t.Helper()
	patience := time.After(time.Minute)
	for {
		if _, rest, ok := bytes.Cut(s.text, []byte(text)); ok {
			s.text = rest
			return
		}
		select {
		case b, ok := <-s.more:
			if !ok {
				s.t.Fatalf("the program ended before it showed %q:\n%q", text, s.text)
			}
			s.text = append(s.text, b...)
		case <-patience:
			s.t.Fatalf("the program did not show %q:\n%s", text, strings.ReplaceAll(string(s.text[max(0, len(s.text)-1000):]), "\x1b", "ESC"))
		}
	}
}

func (s *seen) press(key string) {
	s.t.Helper()
	if _, err := io.WriteString(s.to, key); err != nil {
		s.t.Fatal(err)
	}
}

package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
)

// A file system that does not answer holds up neither requests nor the end of the
// process: a list of the rules moves to one, and the service is asked to read it.
func TestHungMount(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hung := filepath.Join(dir, "hung")
	list, next := filepath.Join(dir, "list"), filepath.Join(dir, "next")
	for _, err := range []error{
		os.Mkdir(hung, 0o700), os.WriteFile(filepath.Join(dir, "healthy"), []byte("bad\n"), 0o600),
		os.Symlink("healthy", list), os.Symlink("hung/list", next),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	mountHung(t, hung)
	p := startProcess(t, "", fmt.Sprintf("lists: {bad: {file: %q}}\nrules:\n  - {name: deny, when: {user: {in: bad}}, then: deny}\n", list))
	if err := os.Rename(next, list); err != nil {
		t.Fatal(err)
	}
	type answer struct {
		status int
		text   string
		err    error
	}
	reload := func() chan answer {
		got := make(chan answer, 1)
		go func() {
			resp, err := http.Post(p.admin+"/-/reload", "", nil)
			if err != nil {
				got <- answer{err: err}
				return
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			got <- answer{resp.StatusCode, string(text), err}
		}()
		return got
	}
	got := reload()
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	clock := redistest.Clock(t)
	for waiting, takes := true, 0; waiting; takes++ {
		began := clock()
		if status, _, err := send(p.api+"/v1/take", `{"attributes":{"user":"ann"}}`); err != nil || status != 200 {
			t.Fatalf("got %d %v, want an answer", status, err)
		}
		if took := clock() - began; took > 5*time.Second {
			t.Errorf("a take took %v", took)
		}
		select {
		case a := <-got:
			waiting = false
			if a.err != nil || a.status != 422 || !strings.Contains(a.text, "no answer within 10s; is its file system mounted?") {
				t.Errorf("reload: got %+v, want that the file system does not answer", a)
			}
			if takes < 10 {
				t.Errorf("got %d takes during the reload", takes)
			}
		case <-pace.C:
		}
	}
	began := clock()
	if err := p.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.end(t)                                           // during the reload
	if took := clock() - began; took > 9*time.Second { // a reload waits for ten
		t.Errorf("the end took %v", took)
	}
}

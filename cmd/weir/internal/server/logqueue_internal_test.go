package server

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/config"
)

// unread is a standard error that nobody reads until it is closed.
type unread struct {
	strings.Builder
	read chan struct{}
}

func (u *unread) Write(line []byte) (int, error) {
	<-u.read
	return u.Builder.Write(line)
}

// A log that nobody reads holds up nobody, and ends. When it is read again, a line says how many are missing.
func TestLogThatNobodyReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := &unread{read: make(chan struct{})}
		log, end := openLog(config.Config{}, out)
		begun := time.Now()
		log.Info("the first")
		synctest.Wait() // it is being written
		for range maxLogQueue + 7 {
			log.Info("more")
		}
		if took := time.Since(begun); took > 0 {
			t.Errorf("logging took %v, want no time", took)
		}
		if end(); time.Since(begun) != logEnd {
			t.Errorf("the end took %v, want %v", time.Since(begun), logEnd)
		}
		close(out.read)
		synctest.Wait()
		log.Info("the last")
		end()
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if n := len(lines); n != maxLogQueue+3 || !strings.Contains(lines[0], `msg="the first"`) || !strings.Contains(lines[n-1], `msg="the last"`) ||
			!strings.HasSuffix(lines[n-2], `level=WARN msg="log lines dropped, because nobody has read them" lines=7`) {
			t.Errorf("got %d lines, from %q to %q, want %d, and one before the last that says that 7 are missing", n, lines[0], lines[max(0, n-2):], maxLogQueue+3)
		}
	})
}

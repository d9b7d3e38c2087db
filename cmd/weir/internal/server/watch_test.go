package server_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/server"
)

// A file that is written in pieces is read 200 ms after the last one, or after the
// first check behind it; one that never rests is read after ten seconds.
func TestQuiet(t *testing.T) {
	t.Parallel()
	for writing, want := range map[time.Duration]time.Duration{
		0:                      200 * time.Millisecond,
		50 * time.Millisecond:  400 * time.Millisecond,
		700 * time.Millisecond: time.Second,
		time.Hour:              10 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			stamp := func() string { // a new piece each 50 ms
				return strconv.Itoa(int(min(time.Since(began), writing) / (50 * time.Millisecond)))
			}
			if got := server.Quiet(stamp); got != want {
				t.Errorf("written for %v: got read after %v, want %v", writing, got, want)
			}
		})
	}
}

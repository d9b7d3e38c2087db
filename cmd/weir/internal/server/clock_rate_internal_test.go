package server

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

// A clock of a store that runs faster or slower than what leases assume is told, and one that is only far away in time is not.
func TestClockRate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rate, trip string
		level      remote.Level
		seen       string
	}{
		{"0s", "200us", remote.LevelOK, "+0.0 ‰"},
		{"200us", "200us", remote.LevelOK, "+0.2 ‰"},
		{"-900us", "200us", remote.LevelOK, "-0.9 ‰"},
		{"1500us", "200us", remote.LevelWarn, "+1.5 ‰"},
		{"-2ms", "1ms", remote.LevelWarn, "-2.0 ‰"},
		{"0s", "80ms", remote.LevelUnknown, "too far away"},
		{"1s", "80ms", remote.LevelWarn, "+1000.0 ‰"},
	} {
		synctest.Test(t, func(t *testing.T) {
			rate, _ := time.ParseDuration(test.rate) // in a second
			trip, _ := time.ParseDuration(test.trip)
			began := time.Now()
			f := clockRate(t.Context(), func() (window.Instant, error) {
				time.Sleep(trip / 2)
				here := time.Since(began)
				at := window.At(began.Add(time.Hour + here + time.Duration(rate.Seconds()*float64(here))))
				time.Sleep(trip / 2)
				return at, nil
			})
			if took := time.Since(began); f.Level != test.level || !strings.Contains(f.Seen, test.seen) || took > 7*time.Second {
				t.Errorf("%+v: got %+v after %v", test, f, took)
			}
		})
	}
	f := clockRate(t.Context(), func() (window.Instant, error) { return 0, errors.New("gone") })
	if f.Level != remote.LevelUnknown || f.Seen != "not measured: gone" {
		t.Errorf("got %+v without an answer", f)
	}
}

package datadir_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/datadir"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// The wall clock is set between two processes. The windows of the second one age by the
// time that has passed, and calendar windows follow the wall clock, but not back.
func TestClockIsSetBetweenProcesses(t *testing.T) {
	t.Parallel()
	sliding := window.MustCompile(window.Limit{Quota: 5, Window: window.Sliding(2 * time.Hour)})
	daily := window.MustCompile(window.Limit{Quota: 5, Window: window.Calendar(window.Day, nil)})
	hourly := store.NewSpace("", "2h", "2h", 0)
	days := store.NewSpace("", "day", "day", 0)
	for _, test := range []struct {
		name                   string
		passed, shown          time.Duration // between the two, really and by the wall clock
		restarted              bool          // so was the machine
		wantSliding, wantDaily int64
	}{
		{"nothing was set", time.Hour, time.Hour, false, 1, 1},
		{"nothing was set, and the window has passed", 3 * time.Hour, 3 * time.Hour, false, 0, 1},
		{"set ahead a day", time.Hour, 25 * time.Hour, false, 1, 0},
		{"set back a day", time.Hour, -23 * time.Hour, false, 1, 1},
		{"set back a day, and the window has passed", 3 * time.Hour, -21 * time.Hour, false, 0, 1},
		{"the machine was restarted", time.Hour, time.Hour, true, 1, 1},
		{"the machine was restarted, and the window has passed", 3 * time.Hour, 3 * time.Hour, true, 0, 1},
		{"the machine was restarted, and set back", time.Hour, -23 * time.Hour, true, 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			disk := datadir.NewDisk()
			const noon = 7*24*time.Hour + 12*time.Hour // since the clock of a bubble begins
			up, boot := int64(1e9), uint64(1)
			run := func(shown time.Duration, f func(s *datadir.Store)) {
				synctest.Test(t, func(t *testing.T) {
					time.Sleep(shown)
					s := mustOpen(t, disk, datadir.WithInterval(time.Hour), datadir.WithMachine(&up, boot))
					f(s)
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
				})
			}
			run(noon, func(s *datadir.Store) {
				for space, limit := range map[*store.Space]*window.Compiled{hourly: sliding, days: daily} {
					if _, err := one(t.Context(), s, store.Take, space, limit, "k", "", 1); err != nil {
						t.Fatal(err)
					}
				}
			})
			if up += test.passed.Microseconds(); test.restarted {
				up, boot = 5e6, 2
			}
			run(noon+test.shown, func(s *datadir.Store) {
				for _, want := range []struct {
					space *store.Space
					limit *window.Compiled
					used  int64
				}{{hourly, sliding, test.wantSliding}, {days, daily, test.wantDaily}} {
					r, err := s.Read(t.Context(), &store.Op{Space: want.space, Limit: want.limit, Key: []byte("k")})
					if err != nil || r.Used != want.used {
						t.Errorf("%s: got %d used, %v, want %d", want.space.Name(), r.Used, err, want.used)
					}
				}
			})
		})
	}
}

// A machine begins with a wall clock that is far ahead, which is set right later. Calendar windows
// follow it back then: the keys that had expired by the wrong clock do not keep all others in its year.
func TestClockWasFarAhead(t *testing.T) {
	t.Parallel()
	daily := window.MustCompile(window.Limit{Quota: 5, Window: window.Calendar(window.Day, nil)})
	days := store.NewSpace("", "day", "day", 0)
	disk := datadir.NewDisk()
	const noon, year = 7*24*time.Hour + 12*time.Hour, 365 * 24 * time.Hour // since the clock of a bubble begins
	for boot, test := range []struct{ shown, wait time.Duration }{
		{noon, 12 * time.Hour}, {noon + year, 12 * time.Hour}, {noon + time.Hour, 11 * time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(test.shown)
			up := int64(5e6)
			s := mustOpen(t, disk, datadir.WithInterval(time.Hour), datadir.WithMachine(&up, uint64(boot+1)))
			defer s.Close()
			key := fmt.Sprint(boot)
			if r, err := one(t.Context(), s, store.Take, days, daily, key, "", 5); err != nil || !r.Allowed {
				t.Fatalf("boot %d: got %+v, %v, want allowed", boot, r, err)
			}
			if r, err := one(t.Context(), s, store.Take, days, daily, key, "", 1); err != nil || r.RetryAfter != test.wait {
				t.Errorf("boot %d: got retry after %v, %v, want %v", boot, r.RetryAfter, err, test.wait)
			}
		})
	}
}

package window_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir/window"
)

// A record that is no strike holds as any other, under limits with bans and without.
func TestRecordNoStrikeHolds(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]window.Limit{
		"held":          {Quota: 1, Window: window.Held(time.Minute)},
		"held and bans": {Quota: 1, Window: window.Held(time.Minute), Ban: window.Ban{For: time.Minute}},
		"hold":          {Quota: 1, Window: window.Sliding(time.Minute), Hold: time.Minute},
		"hold and bans": {Quota: 1, Window: window.Sliding(time.Minute), Hold: time.Minute, Ban: window.Ban{For: time.Minute}},
	} {
		now := window.Instant(1e15)
		hold := window.Hold{ID: [12]byte{1}, At: now, End: now.Add(time.Second)}
		_, r := window.MustCompile(l).RecordNoStrike(nil, now, window.Hits{N: 3}, hold)
		if !r.Held || r.Used != 3 || r.Banned {
			t.Errorf("%s: got %+v, want 3 held and no ban", name, r)
		}
	}
}

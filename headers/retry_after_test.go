package headers_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/weirhq/weir/headers"
	"github.com/weirhq/weir/window"
)

func TestParseRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)
	date := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for _, tc := range []struct {
		field, date string
		want        time.Duration
	}{
		{"", "", 0},
		{"7", "", 7 * time.Second},
		{" 7 ", date(time.Hour), 7 * time.Second},
		{"-7", "", 0},
		{"soon", "", 0},
		{"9223372036854775807", "", window.MaxLength},
		{"99999999999999999999", "", window.MaxLength},
		{"-99999999999999999999", "", 0},
		{date(time.Minute), "", time.Minute},
		{date(time.Minute), date(time.Second), 59 * time.Second},
		{date(-time.Minute), "", 0},
	} {
		h := http.Header{"Retry-After": {tc.field}, "Date": {tc.date}}
		if got := headers.ParseRetryAfter(h, now); got != tc.want {
			t.Errorf("%q, %q: got %v, want %v", tc.field, tc.date, got, tc.want)
		}
	}
}

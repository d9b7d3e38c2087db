package headers

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/window"
)

// ParseRetryAfter returns the wait that the field Retry-After of an answer states, in seconds or as a
// date, from 0 to [window.MaxLength]. A date is relative to the server's clock in the field Date, or to
// now if there is none. It returns 0 if there is no wait, or one that is malformed.
func ParseRetryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get(nameRetryAfter))
	if n, err := strconv.ParseInt(text, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(max(0, min(n, int64(window.MaxLength/time.Second)))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return max(0, min(at.Sub(now), window.MaxLength))
}

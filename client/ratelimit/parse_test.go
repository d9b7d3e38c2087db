package ratelimit_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/client/ratelimit"
)

// parsed are header fields, and what Parse reads from them at midnight of 1 January 2000.
var parsed = []struct{ fields, want string }{
	// What weir sends by default.
	{`RateLimit-Policy: "day";q=100;w=86400, "minute";q=10;w=60
RateLimit: "day";r=0;t=3600, "minute";r=0;t=5
Retry-After: 3600`, `wait 1h0m0s
"day" quota 100, remaining 0, window 24h0m0s, retry after 1h0m0s, reset after 0s
"minute" quota 10, remaining 0, window 1m0s, retry after 5s, reset after 0s`},
	// The same in several fields, in another order, with what a client does not know.
	{`RateLimit-Policy: "minute";q=10;w=60;acme-burst=3
RateLimit-Policy: "exports";q=5;qu="concurrent-requests";pk=:cHsdsRa894==:
RateLimit: "exports";r=3;pk=:dHJpYWwxMjEzMjM=:
RateLimit: "minute";r=9`, `wait 0s
"minute" quota 10, remaining 9, window 1m0s, retry after 0s, reset after 0s
"exports" quota 5, remaining 3, window 0s, retry after 0s, reset after 0s concurrent-requests`},
	// A malformed field is ignored as a whole.
	{`RateLimit-Policy: "day";q=100;w=86400
RateLimit: "day";r=0;t=3600, oops"
Retry-After: soon`, `wait 0s
"day" quota 100, remaining -1, window 24h0m0s, retry after 0s, reset after 0s`},
	{`RateLimit-Policy: "day";q=-100;w=86400
RateLimit: "day";r=1.5, day;r=3`, `wait 0s
"day" quota -1, remaining 3, window 0s, retry after 0s, reset after 0s`},
	// Draft-07: a Dictionary.
	{`RateLimit-Policy: 100;w=900
RateLimit: limit=100, remaining=0, reset=50`, `wait 50s
"" quota 100, remaining 0, window 15m0s, retry after 0s, reset after 50s`},
	// Draft-03 to draft-06.
	{`RateLimit-Limit: 10, 10;w=60;name="minute", 100;w=86400
RateLimit-Remaining: 0
RateLimit-Reset: 27`, `wait 27s
"minute" quota 10, remaining 0, window 1m0s, retry after 0s, reset after 27s
"" quota 100, remaining -1, window 24h0m0s, retry after 0s, reset after 0s`},
	{`RateLimit-Limit: 3
RateLimit-Remaining: 2
RateLimit-Reset: 988
RateLimit-Policy: 3;w=1000`, `wait 0s
"" quota 3, remaining 2, window 0s, retry after 0s, reset after 16m28s`},
	// Envoy.
	{`X-RateLimit-Limit: 10, 10;w=1;name="per-ip", 1000;w=3600
X-RateLimit-Remaining: 0
X-RateLimit-Reset: 1`, `wait 1s
"per-ip" quota 10, remaining 0, window 1s, retry after 0s, reset after 1s
"" quota 1000, remaining -1, window 1h0m0s, retry after 0s, reset after 0s`},
	// A Unix time in seconds and in milliseconds. The clock is the server's.
	{`Date: Sat, 01 Jan 2000 00:00:10 GMT
X-RateLimit-Limit: 60
X-RateLimit-Remaining: 0
X-RateLimit-Reset: 946684830`, `wait 20s
"" quota 60, remaining 0, window 0s, retry after 0s, reset after 20s`},
	{`X-RateLimit-Limit: 60
X-RateLimit-Remaining: 0
X-RateLimit-Reset: 946684830500`, `wait 30.5s
"" quota 60, remaining 0, window 0s, retry after 0s, reset after 30.5s`},
	{`X-Rate-Limit-Limit: 60
X-Rate-Limit-Remaining: 17.5
X-Rate-Limit-Reset: 1`, `wait 0s
"" quota 60, remaining 17, window 0s, retry after 0s, reset after 1s`},
	// A time in the past is no wait.
	{`X-RateLimit-Limit: 60
X-RateLimit-Remaining: 0
X-RateLimit-Reset: 900000000`, `wait 0s
"" quota 60, remaining 0, window 0s, retry after 0s, reset after 0s`},
	// A date.
	{`Date: Sat, 01 Jan 2000 00:00:10 GMT
Retry-After: Sat, 01 Jan 2000 00:01:00 GMT`, `wait 50s`},
	{`Retry-After: 99999999999999999`, `wait 876000h0m0s`},
	{`Retry-After: -3
X-RateLimit-Limit: lots
X-RateLimit-Remaining: NaN`, `wait 0s`},
	{`Weir-Degraded: late
Retry-After: 1`, `wait 1s
degraded late`},
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, test := range parsed {
		h, err := textproto.NewReader(bufio.NewReader(strings.NewReader(test.fields + "\n\n"))).ReadMIMEHeader()
		if err != nil {
			t.Fatal(err)
		}
		l := ratelimit.Parse(http.Header(h), time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
		got := fmt.Sprintf("wait %v", l.Wait())
		if l.Degraded != "" {
			got += fmt.Sprintf("\ndegraded %s", l.Degraded)
		}
		for _, p := range l.Policies {
			got += fmt.Sprintf("\n%q quota %d, remaining %d, window %v, retry after %v, reset after %v", p.Name, p.Quota, p.Remaining, p.Window, p.RetryAfter, p.ResetAfter)
			if p.Unit != "" {
				got += " " + p.Unit
			}
		}
		if got != test.want {
			t.Errorf("%s\ngot\n%s\nwant\n%s", test.fields, got, test.want)
		}
	}
}

// A field that is too long is ignored, and others count.
func TestParseBounds(t *testing.T) {
	t.Parallel()
	long := strings.TrimSuffix(strings.Repeat(`"day";r=0, `, 1000), ", ")
	l := ratelimit.Parse(http.Header{"Ratelimit": {long}, "X-Ratelimit-Limit": {"5"}}, time.Unix(0, 0))
	if len(l.Policies) != 1 || l.Policies[0].Quota != 5 {
		t.Errorf("got %d policies, want the one of the short field", len(l.Policies))
	}
}

package ratelimit_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/weirhq/weir/client/ratelimit"
	"github.com/weirhq/weir/headers"
	"github.com/weirhq/weir/window"
)

// What package headers writes in the dialect draft are Lists of RFC 9651, and Parse reads
// them back.
func FuzzRoundTrip(f *testing.F) {
	f.Add("posts", int64(5), int64(4), int64(3600), int64(0))
	f.Add("a\"b\\c\r\n é", int64(1)<<53, int64(-1), int64(1), int64(30))
	f.Fuzz(func(t *testing.T, name string, quota, remaining, length, retry int64) {
		if length < 0 || length > int64(window.MaxLength/time.Second) || retry < 0 || retry > int64(window.MaxLength/time.Second) {
			return
		}
		l := headers.Limits{Policies: []headers.Policy{
			{Name: name, Quota: quota, Remaining: remaining, Window: time.Duration(length) * time.Second, RetryAfter: time.Duration(retry) * time.Second},
			{Name: "other", Quota: 7, Remaining: 1 << 40},
		}}
		h := http.Header{}
		headers.Format{}.Set(h, &l)
		for field, keys := range map[string][]string{"Ratelimit-Policy": {"q"}, "Ratelimit": {"r"}} {
			list, err := httpsfv.UnmarshalList(h[field])
			if err != nil || len(list) != 2 {
				t.Fatalf("%s: %q: got %v, want two items: %v", field, h[field], list, err)
			}
			for _, m := range list {
				item, ok := m.(httpsfv.Item)
				if _, isText := item.Value.(string); !ok || !isText {
					t.Fatalf("%s: %q: got %v, want a String", field, h[field], m)
				}
				for _, key := range keys {
					v, _ := item.Params.Get(key)
					if n, isInt := v.(int64); !isInt || n < 0 {
						t.Fatalf("%s: %q: got %s=%v, want a number", field, h[field], key, v)
					}
				}
			}
		}
		within := func(n int64) int64 { return max(0, min(n, 999_999_999_999_999)) }
		got := ratelimit.Parse(h, time.Unix(0, 0))
		if len(got.Policies) != 2 {
			t.Fatalf("%v: got %+v, want two policies", h, got)
		}
		for i, p := range l.Policies { // which Set has sorted
			g := got.Policies[i]
			if g.Quota != within(p.Quota) || g.Remaining != within(p.Remaining) || g.Window != p.Window || g.RetryAfter != p.RetryAfter {
				t.Errorf("%v: got %+v, want %+v", h, g, p)
			}
		}
	})
}

// Whatever a server sends, Parse returns numbers and waits in their ranges.
func FuzzParse(f *testing.F) {
	for _, line := range []string{
		`"day";q=100;w=86400, "minute";q=10;w=60`, `limit=100, remaining=50, reset=50`, `10, 10;w=60;name="per \"user\""`,
		`a, b;c;d=?1;e=:cHs=:;f=1.5`, `"x";r=1;r="2"`, ` 1 ,	2`, `1,`, `"`, `-9;a=-`, `*a=1`, `(1 2)`, `@12`, `%"x"`, `:0:`,
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		h := http.Header{"Ratelimit": {line}, "X-Ratelimit-Limit": {line}, "X-Ratelimit-Remaining": {line}, "X-Ratelimit-Reset": {line}, "Retry-After": {line}, "Date": {line}}
		for range 2 {
			l := ratelimit.Parse(h, time.Unix(1e9, 0))
			if l.Wait() < 0 || l.Wait() > window.MaxLength {
				t.Fatalf("%q: got a wait of %v", line, l.Wait())
			}
			for _, p := range l.Policies {
				if p.Quota < -1 || p.Remaining < -1 || p.Window < 0 || p.RetryAfter < 0 || p.ResetAfter < 0 {
					t.Fatalf("%q: got %+v", line, p)
				}
			}
			delete(h, "Ratelimit")
		}
	})
}

package accesslog_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/logs/accesslog"
	"github.com/weirhq/weir/window"
)

const combined = `10.0.0.1 - - [20/Feb/2016:00:00:45 -0500] "GET /a/b?q=1&r=2 HTTP/1.1" 200 187 "http://ref/" "Mozilla/5.0 (X11)"`

var noon = at("2016-02-29T12:00:00Z")

func at(s string) window.Instant {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return window.At(t)
}

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		line string
		want accesslog.Entry
	}{
		{"combined", combined, accesslog.Entry{
			Time: at("2016-02-20T05:00:45Z"), IP: "10.0.0.1",
			Method: "GET", Path: "/a/b", Query: "q=1&r=2", Status: "200", Bytes: "187",
			Referer: "http://ref/", Agent: "Mozilla/5.0 (X11)",
		}},
		{"common", `::1 - ann [29/Feb/2016:12:00:00 +0000] "HEAD / HTTP/1.0" 304 -`, accesslog.Entry{
			Time: noon, IP: "::1", Method: "HEAD", Path: "/", Status: "304", Bytes: "0",
		}},
		{"user with blanks", `h.example - ann lee [29/Feb/2016:12:00:00 +0000] "GET /" 200 1`, accesslog.Entry{
			Time: noon, IP: "h.example", Method: "GET", Path: "/", Status: "200", Bytes: "1",
		}},
		{"virtual host", `[2001:db8::1]:443 10.0.0.1 - - [29/Feb/2016:12:00:00 +0000] "-" 408 0 "-" "-"`, accesslog.Entry{
			Time: noon, Host: "[2001:db8::1]", IP: "10.0.0.1", Status: "408", Bytes: "0",
		}},
		{"host without port", "b.example 10.0.0.1 - - [29/Feb/2016:12:00:00 +0000] \"\" 400 0\r", accesslog.Entry{
			Time: noon, Host: "b.example", IP: "10.0.0.1", Status: "400", Bytes: "0",
		}},
		{"whole address", `10.0.0.1 - - [29/Feb/2016:12:00:00 +0000] "POST HTTP://b.example:80/c?d HTTP/1.1" 200 5`, accesslog.Entry{
			Time: noon, Host: "b.example", IP: "10.0.0.1", Method: "POST", Path: "/c", Query: "d", Status: "200", Bytes: "5",
		}},
		{"whole address without path", `10.0.0.1 - - [29/Feb/2016:12:00:00 +0000] "GET https://b.example?d HTTP/1.1" 200 5`, accesslog.Entry{
			Time: noon, Host: "b.example", IP: "10.0.0.1", Method: "GET", Path: "/", Query: "d", Status: "200", Bytes: "5",
		}},
		{"no method", `10.0.0.1 - - [29/Feb/2016:12:00:00 +0000] "- /a" 400 5`, accesslog.Entry{
			Time: noon, IP: "10.0.0.1", Status: "400", Bytes: "5",
		}},
		{"not HTTP", `10.0.0.1 - - [29/Feb/2016:12:00:00 +0000] "\x16\x03\x01 \xFC" 400 226 "-" "-"`, accesslog.Entry{
			Time: noon, IP: "10.0.0.1", Status: "400", Bytes: "226",
		}},
		{"blanks in the target", `10.0.0.1 - - [29/Feb/2016:12:00:00 +0000] "GET /a b HTTP/1.1" 200 5`, accesslog.Entry{
			Time: noon, IP: "10.0.0.1", Method: "GET", Path: "/a b", Status: "200", Bytes: "5",
		}},
		{"escaped quotes", `10.0.0.1 - - [29/Feb/2016:12:00:00 +0000] "GET /\" HTTP/1.1" 200 5 "a\" b" "c\\"`, accesslog.Entry{
			Time: noon, IP: "10.0.0.1", Method: "GET", Path: `/\"`, Status: "200", Bytes: "5", Referer: `a\" b`, Agent: `c\\`,
		}},
		{"quotes that nobody escaped", `10.0.0.1 - - [29/Feb/2016:12:00:00 +0000] "GET /"x HTTP/1.1" 200 5 "a"b" "c"`, accesslog.Entry{
			Time: noon, IP: "10.0.0.1", Method: "GET", Path: `/"x`, Status: "200", Bytes: "5", Referer: `a"b`, Agent: "c",
		}},
		{"more fields", combined + ` 0.013 "-"`, accesslog.Entry{
			Time: at("2016-02-20T05:00:45Z"), IP: "10.0.0.1",
			Method: "GET", Path: "/a/b", Query: "q=1&r=2", Status: "200", Bytes: "187",
			Referer: "http://ref/", Agent: "Mozilla/5.0 (X11)",
		}},
		{"no agent", `10.0.0.1 - - [29/Feb/2016:12:00:00 +0000] "GET /" 200 5 "-"`, accesslog.Entry{
			Time: noon, IP: "10.0.0.1", Method: "GET", Path: "/", Status: "200", Bytes: "5",
		}},
		{"another field after bytes", `10.0.0.1 - - [29/Feb/2016:12:00:00 +0000] "GET /" 200 5 0.013`, accesslog.Entry{
			Time: noon, IP: "10.0.0.1", Method: "GET", Path: "/", Status: "200", Bytes: "5",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got accesslog.Entry
			if err := new(accesslog.Parser).Parse(tt.line, &got); err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestParseFaults(t *testing.T) {
	t.Parallel()
	const start = `10.0.0.1 - - [29/Feb/2016:12:00:00 +0000] `
	tests := []struct{ name, line, want string }{
		{"empty", "", "column 1: want address ident user ["},
		{"in quotes", `"` + strings.ReplaceAll(combined, `"`, `""`) + `"`, "column 1: want address ident user [, without quotes around the line"},
		{"in quotes that are not doubled", `"` + combined + `"`, "column 1: want address ident user [, without quotes around the line"},
		{"two words", "10.0.0.1 - [29/Feb/2016:12:00:00 +0000]", "column 1: want address ident user ["},
		{"no such day", `h - - [29/Feb/2015:12:00:00 +0000] "-" 200 0`, "column 8: want [day/month/year:hour:minute:second zone]"},
		{"no such month", `h - - [29/feb/2016:12:00:00 +0000] "-" 200 0`, "column 8: want [day/month/year:hour:minute:second zone]"},
		{"no such hour", `h - - [29/Feb/2016:24:00:00 +0000] "-" 200 0`, "column 8: want [day/month/year:hour:minute:second zone]"},
		{"time cut short", "h - - [29/Feb/2016:12:00", "column 8: want [day/month/year:hour:minute:second zone]"},
		{"no request", start, `column 43: want "request"`},
		{"request cut short", start + `"GET /a`, `column 43: want "request"`},
		{"no status", start + `"GET /a"`, "column 52: want a status of three digits"},
		{"status cut short", start + `"GET /a" 20`, "column 52: want a status of three digits"},
		{"no bytes", start + `"GET /a" 200 `, "column 56: want bytes, in at most 15 digits or -"},
		{"too many bytes", start + `"GET /a" 200 1234567890123456`, "column 56: want bytes, in at most 15 digits or -"},
		{"referer cut short", start + `"GET /a" 200 1 "http`, `column 58: want "referer"`},
		{"agent cut short", start + `"GET /a" 200 1 "-" "Mozilla`, `column 62: want "agent"`},
		{"agent without quotes", start + `"GET /a" 200 1 "-" Mozilla`, `column 62: want "agent"`},
		{"huge", strings.Repeat("x", 1<<20), "column 1: want address ident user ["},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := new(accesslog.Parser).Parse(tt.line, new(accesslog.Entry))
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// TestParseTime compares the times of lines with package time, for every day of
// 135 years.
func TestParseTime(t *testing.T) {
	t.Parallel()
	const layout = "02/Jan/2006:15:04:05 -0700"
	zone := time.FixedZone("", -(9*3600 + 30*60))
	for day := time.Date(1970, 1, 2, 23, 59, 58, 0, zone); day.Year() < 2105; day = day.AddDate(0, 0, 1) {
		var e accesslog.Entry
		line := `h - - [` + day.Format(layout) + `] "-" 200 0`
		if err := new(accesslog.Parser).Parse(line, &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if e.Time != window.At(day) {
			t.Fatalf("%s: got %s, want %s", line, e.Time.Time(), day.UTC())
		}
	}
}

func TestParseAllocatesNothing(t *testing.T) {
	var e accesslog.Entry
	allocs := testing.AllocsPerRun(100, func() {
		if err := new(accesslog.Parser).Parse(combined, &e); err != nil {
			t.Fatal(err)
		}
	})
	if allocs != 0 {
		t.Errorf("got %v allocations a line, want 0", allocs)
	}
}

package accesslog_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/logs/accesslog"
)

// FuzzParse searches for a line on which Parse panics, and for an entry with a field
// that breaks the promise of the field's comment.
func FuzzParse(f *testing.F) {
	f.Add(combined)
	f.Add(`h:80 ::1 - a b [29/Feb/2016:12:00:00 +0000] "GET http://x/\" HTTP/1.1" 304 - "\\" "" 1`)
	f.Add(`h - - [01/Jan/1970:00:00:00 +2359] "\x16\x03" 400 0`)
	f.Fuzz(func(t *testing.T, line string) {
		var e, again accesslog.Entry
		var p accesslog.Parser
		err := p.Parse(combined, &e)
		if err == nil {
			err = p.Parse(line, &e)
		}
		if fresh := new(accesslog.Parser).Parse(line, &again); (err == nil) != (fresh == nil) || e != again {
			t.Errorf("%q: got %+v, %v from a parser that knows a minute, want %+v, %v", line, e, err, again, fresh)
		}
		if err != nil {
			return
		}
		for _, field := range []string{e.Host, e.IP, e.Method, e.Query, e.Status, e.Bytes, e.Referer, e.Agent} {
			if !strings.Contains(line, field) && field != "0" {
				t.Errorf("got field %q, want a part of %q", field, line)
			}
		}
		if strings.Contains(e.Path, "?") || (e.Method == "") != (e.Path == "") {
			t.Errorf("got method %q and path %q, want both or neither, and no query", e.Method, e.Path)
		}
		if len(e.Status) != 3 || e.Bytes == "" || strings.Trim(e.Status+e.Bytes, "0123456789") != "" {
			t.Errorf("got status %q and bytes %q, want digits", e.Status, e.Bytes)
		}
	})
}

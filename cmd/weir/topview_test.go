package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/datatest"
)

// TestTopView shows what weir top prints for answers of a service.
func TestTopView(t *testing.T) {
	t.Parallel()
	var v topView
	parse := func(d *datatest.TestData, into any) {
		if err := json.Unmarshal([]byte(d.Input), into); err != nil {
			d.Fatalf(t, "%v", err)
		}
	}
	datatest.RunTest(t, "testdata/top/view.txt", func(t *testing.T, d *datatest.TestData) string {
		switch d.Cmd {
		case "top":
			v = topView{before: v.top, zone: time.UTC}
			parse(d, &v.top)
			v.elapsed, _ = time.ParseDuration(d.Arg("after"))
		case "denials":
			var answer denialsAnswer
			parse(d, &answer)
			v.denials = answer.Denials
		case "show":
			var s size
			s.width, _ = strconv.Atoi(d.Arg("width"))
			s.height, _ = strconv.Atoi(d.Arg("height"))
			lines := v.lines(s)
			if s.height > 0 && len(lines) > s.height {
				t.Errorf("%s: got %d lines, want at most %d", d.Pos, len(lines), s.height)
			}
			for _, line := range lines {
				if n := len([]rune(line)); s.width > 0 && n > s.width {
					t.Errorf("%s: got %d characters, want at most %d: %s", d.Pos, n, s.width, line)
				}
			}
			return strings.Join(lines, "\n") + "\n"
		default:
			d.Fatalf(t, "no such command: %s", d.Cmd)
		}
		return ""
	})
}

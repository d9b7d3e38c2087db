package accesslog_test

import (
	"bufio"
	"compress/gzip"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/weirhq/weir/replay/accesslog"
	"github.com/weirhq/weir/window"
)

// TestRealLogs reads recorded logs, and holds every field to what a regular
// expression and package time make of the same line.
func TestRealLogs(t *testing.T) {
	t.Parallel()
	logs, err := filepath.Glob("../../../shared/data/*.log.gz")
	if err != nil {
		t.Fatal(err)
	}
	if len(logs) == 0 {
		t.Skip("no recorded logs beside the project")
	}
	format := regexp.MustCompile(`^(\S+) \S+ \S+ \[([^\]]+)\] "([A-Z]+) ([^ ?]+)\??(.*?) HTTP/1\.[01]" (\d{3}) (\d+|-) "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)"`)
	for _, name := range logs {
		read, bad := 0, 0
		for line := range lines(t, name) {
			var got accesslog.Entry
			err := accesslog.Parse(line, &got)
			f := format.FindStringSubmatch(line)
			if (f == nil) != (err != nil) {
				t.Fatalf("%s: got error %v, want one only for a line that the expression does not match", line, err)
			}
			if err != nil {
				bad++
				continue
			}
			when, err := time.Parse("02/Jan/2006:15:04:05 -0700", f[2])
			if err != nil {
				t.Fatal(err)
			}
			for i := range f {
				if f[i] == "-" {
					f[i] = ""
				}
			}
			if f[7] == "" {
				f[7] = "0"
			}
			want := accesslog.Entry{
				Time: window.At(when), IP: f[1], Method: f[3], Path: f[4], Query: f[5],
				Status: f[6], Bytes: f[7], Referer: f[8], Agent: f[9],
			}
			if got != want {
				t.Fatalf("%s: got %+v, want %+v", line, got, want)
			}
			read++
		}
		t.Logf("%s: %d lines agree, %d are bad", filepath.Base(name), read, bad)
	}
}

func lines(t *testing.T, name string) func(yield func(string) bool) {
	t.Helper()
	return func(yield func(string) bool) {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		text, err := gzip.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		scan := bufio.NewScanner(text)
		for scan.Scan() {
			if !yield(scan.Text()) {
				return
			}
		}
		if err := scan.Err(); err != nil {
			t.Fatal(err)
		}
	}
}

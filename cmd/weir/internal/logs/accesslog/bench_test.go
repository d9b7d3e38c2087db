package accesslog_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/logs/accesslog"
)

func BenchmarkParse(b *testing.B) {
	b.Run("weir", func(b *testing.B) {
		b.SetBytes(int64(len(combined)))
		b.ReportAllocs()
		var e accesslog.Entry
		var p accesslog.Parser
		for b.Loop() {
			if err := p.Parse(combined, &e); err != nil {
				b.Fatal(err)
			}
		}
	})

	// The simplest parser: a regular expression for the fields, and package time
	// for the time.
	b.Run("regexp", func(b *testing.B) {
		b.SetBytes(int64(len(combined)))
		b.ReportAllocs()
		format := regexp.MustCompile(`^(\S+) \S+ \S+ \[([^\]]+)\] "(\S+) ([^ ?]+)\??(\S*) [^"]*" (\d{3}) (\d+|-) "([^"]*)" "([^"]*)"`)
		for b.Loop() {
			fields := format.FindStringSubmatch(combined)
			if _, err := time.Parse("02/Jan/2006:15:04:05 -0700", fields[2]); err != nil {
				b.Fatal(err)
			}
		}
	})
}

package server_test

import (
	"runtime/debug"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/server"
)

func TestCommitOf(t *testing.T) {
	t.Parallel()
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123"}
	modified := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	clean := debug.BuildSetting{Key: "vcs.modified", Value: "false"}
	for want, settings := range map[string][]debug.BuildSetting{
		"":              {modified},
		"0123456789ab":  {revision, clean},
		"0123456789ab+": {revision, modified},
	} {
		const date = "2026-03-01T12:00:00Z"
		settings = append(settings, debug.BuildSetting{Key: "vcs.time", Value: date})
		if got, of := server.CommitOf(settings); got != want || of != date {
			t.Errorf("got %q of %s, want %q of %s", got, of, want, date)
		}
	}
}

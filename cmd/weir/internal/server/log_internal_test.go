package server

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/config"
)

// With hidden keys, errors of a store do not show them.
func TestLogHidesKeys(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]string{"plain": "weir:{ann}:posts", "hashed": "***", "none": "***"} {
		for _, format := range []string{"text", "json"} {
			var out strings.Builder
			log := newLog(config.Config{LogKeys: keys, LogFormat: format}, &out)
			log.Warn("decisions without the store", "error", errors.New(`host:1: key "weir:{ann}:posts": EOF`), "after", 1500*time.Millisecond)
			if got := out.String(); !strings.Contains(got, want) || want == "***" && strings.Contains(got, "ann") || !strings.Contains(got, "1.5s") {
				t.Errorf("--log-keys %s: got %s, want %s and 1.5s", keys, got, want)
			}
		}
	}
}

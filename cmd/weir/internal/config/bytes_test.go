package config_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/config"
)

func TestBytes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]config.Bytes{
		"0": 0, "1500": 1500, "512KiB": 512 << 10, "8MiB": 8 << 20, "2GiB": 2 << 30, "1TiB": 1 << 40, "auto": config.AutoMemory, "7B": 7,
	} {
		var b config.Bytes
		if err := b.Set(text); err != nil || b != want {
			t.Errorf("%s: got %d %v, want %d", text, b, err, want)
		}
		var again config.Bytes
		if err := again.Set(b.String()); err != nil || again != b {
			t.Errorf("%s: got %d %v from %s, want the same", text, again, err, b.String())
		}
	}
	for _, text := range []string{"", "-1", "8MB", "1e3", "2 G", "9999999TiB", "GiB"} {
		var b config.Bytes
		if err := b.Set(text); err == nil {
			t.Errorf("%q: got %d, want an error", text, b)
		}
	}
}

func TestValidateBounds(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Resources = config.ResourceLimits{Connections: -1, Requests: -1, RequestMemory: 1 << 20, Answer: 1 << 20, Memory: 1}
	const want = `max-connections: -1: negative
max-requests: -1: negative
max-request-memory: 1MiB: want at least 16 times max-answer, 16MiB, so that the largest answer fits
memory: 1B: want at least 16MiB`
	if got := summaries(c.Validate()); !strings.Contains(got, want) {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

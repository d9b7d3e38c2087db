package server

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/store"
)

// keyed is the error of a store about a key.
type keyed string

func (k keyed) Error() string   { return "key " + k.KeyText() + ": EOF" }
func (k keyed) KeyText() string { return strconv.Quote(string(k)) }

// With hidden keys, errors of a store do not show them.
func TestLogHidesKeys(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]string{"plain": "weir:{ann}:posts", "hashed": "***", "none": "***"} {
		for _, format := range []string{"text", "json"} {
			var out strings.Builder
			log := newLog(config.Config{LogKeys: keys, LogFormat: format}, &out)
			log.Warn("decisions without the store", "error", errors.Join(io.EOF, fmt.Errorf("host:1: %w", &store.OutageError{Err: keyed("weir:{ann}:posts")})), "after", 1500*time.Millisecond)
			if got := out.String(); !strings.Contains(got, want) || want == "***" && strings.Contains(got, "ann") || !strings.Contains(got, "1.5s") {
				t.Errorf("--log-keys %s: got %s, want %s and 1.5s", keys, got, want)
			}
		}
	}
}

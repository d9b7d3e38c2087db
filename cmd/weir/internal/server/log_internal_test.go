package server

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
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

// Wrong tokens from any number of addresses are one line in ten seconds.
func TestLogOfWrongTokens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var cfg config.Config
		cfg.Access.Token = strings.Repeat("secret", 8)
		var out strings.Builder
		c, err := openCredentials(cfg, metrics.New(metrics.Config{}), newLog(cfg, &out))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.close() }()
		for i := range 1000 {
			c.keys.Slow(fmt.Sprintf("192.0.2.%d", i))
		}
		time.Sleep(clientFaultPace)
		c.keys.Slow("203.0.113.7")
		if got := out.String(); strings.Count(got, "wrong tokens") != 2 || !strings.Contains(got, "address=192.0.2.0 ") || !strings.Contains(got, "address=203.0.113.7") || !strings.Contains(got, "more=999") {
			t.Errorf("got\n%s\nwant a line about the first address, and one about the last with more=999", got)
		}
	})
}

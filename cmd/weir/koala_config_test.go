package main

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/cmd/weir/internal/config"
)

// Not parallel, because it sets the environment.
func TestServeKoalaConfig(t *testing.T) {
	t.Setenv("WEIR_STORE", "")
	dir := t.TempDir()
	path := filepath.Join(dir, "koala.conf")
	const text = `listen = :9981
rule_file = koala_rule.conf
policy_loader_frequency = 30
redis_server = 127.0.0.1:6379
redis_auth =
externalReadTimeout = 700
externalWriteTimeout = 500
log_level = 7
`
	put(t, path, text)
	put(t, filepath.Join(dir, "koala_rule.conf"), "[rules]\n")
	for _, tc := range []struct {
		flags string
		want  config.Config
	}{
		{"", config.Config{
			Koala: filepath.Join(dir, "koala_rule.conf"), KoalaListen: ":9981", WatchEvery: 30 * time.Second, Store: "redis://127.0.0.1:6379",
			KoalaTimeout: 700 * time.Millisecond,
		}},
		{"--koala x.conf --koala-listen :1 --watch-every 0s --store redis://other --store-timeout 20ms", config.Config{
			Koala: "x.conf", KoalaListen: ":1", Store: "redis://other", StoreTimeout: 20 * time.Millisecond,
		}},
		{"--rules rules.yaml --store=", config.Config{Rules: "rules.yaml", KoalaListen: ":9981", WatchEvery: 30 * time.Second, KoalaTimeout: 700 * time.Millisecond}},
	} {
		var cfg config.Config
		cmd := &cobra.Command{}
		serveFlags(cmd, &cfg)
		if err := cmd.ParseFlags(strings.Fields(tc.flags)); err != nil {
			t.Fatal(err)
		}
		if err := readKoalaConfig(cmd, &cfg, path); err != nil {
			t.Fatal(err)
		}
		if len(cfg.Warnings) != 1 || !strings.Contains(cfg.Warnings[0], "koala.conf:8:1: log_level has no effect") {
			t.Errorf("%s: got warnings %q, want one of log_level", tc.flags, cfg.Warnings)
		}
		cfg.Warnings = nil
		if !reflect.DeepEqual(cfg, tc.want) {
			t.Errorf("%s: got %+v\nwant %+v", tc.flags, cfg, tc.want)
		}
	}
}

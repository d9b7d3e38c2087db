package envoyrls_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/envoyfile"
	"github.com/weirhq/weir/cmd/weir/internal/envoyrls"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/headers"
	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/store/redisstore"
	"github.com/weirhq/weir/window"
)

const filesForRedis = `domain: d
descriptors:
  - {key: user, rate_limit: {unit: year, requests_per_unit: 3}}
  - {key: path, value: /a/*, rate_limit: {unit: year, requests_per_unit: 2}}
  - {key: plan, quota_mode: true, rate_limit: {unit: year, requests_per_unit: 1}}
  - {key: quiet, shadow_mode: true, rate_limit: {unit: year, requests_per_unit: 1}}
`

// As a replacement of envoyproxy/ratelimit, Redis gives the same answers as memory, and each call
// asks it once.
func TestFilesOnRedis(t *testing.T) {
	t.Parallel()
	for modes := range 8 {
		t.Run(fmt.Sprintf("%03b", modes), func(t *testing.T) {
			t.Parallel()
			filesOnRedis(t, modes&1 > 0, modes&2 > 0, modes&4 > 0)
		})
	}
}

// filesOnRedis compares both with QUOTA_MODE, SHADOW_MODE and
// STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT, or without them.
func filesOnRedis(t *testing.T, quota, shadow, together bool) {
	n := redistest.Server(t)
	shared, err := redisstore.Open(t.Context(), "redis://"+n.Addr()+"?timeout=5s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shared.Close() })
	key := store.Op{Space: store.NewSpace("", "none", "none", 0), Limit: window.MustCompile(window.Limit{Quota: 1, Window: window.Fixed(time.Hour)}), Key: []byte("none")}
	redistest.Eventually(t, "the store is connected", func() bool {
		_, err := shared.Read(t.Context(), &key)
		return err == nil
	})
	files, err := envoyfile.New([]envoyfile.Source{{Name: "f.yaml", Text: []byte(filesForRedis)}}, envoyfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	open := func(s store.Store) (*envoyrls.API, *weir.Engine) {
		engine, err := weir.NewEngine(files.Set, weir.WithStore(s))
		if err != nil {
			t.Fatal(err)
		}
		r := &envoyrls.Reference{Files: func() *envoyfile.Config { return files }, Now: func() window.Instant { return window.At(time.Now()) }, Quota: quota, Shadow: shadow, Together: together}
		return envoyrls.New(namespace.Only(engine), envoyrls.Config{Headers: headers.Format{Dialect: headers.None}, Reference: r}), engine
	}
	memory := memstore.New()
	t.Cleanup(func() { _ = memory.Close() })
	here, hereEngine := open(memory)
	there, thereEngine := open(shared)
	resets := regexp.MustCompile(`reset after \S+`)
	for i := range 60 {
		in := &rls.RateLimitRequest{Domain: "d", HitsAddend: uint32(i % 3)}
		for k, key := range []string{"user", "path", "plan", "quiet", "none"} {
			if (i>>k)&1 == 1 {
				in.Descriptors = append(in.Descriptors, &common.RateLimitDescriptor{
					Entries: []*common.RateLimitDescriptor_Entry{{Key: key, Value: fmt.Sprint("/a/", i%4)}},
				})
			}
		}
		if len(in.Descriptors) == 0 {
			continue
		}
		want := call(t, here, hereEngine, in)
		before := scripts(t, n)
		got := call(t, there, thereEngine, in)
		if got, want := resets.ReplaceAllString(got, ""), resets.ReplaceAllString(want, ""); got != want {
			t.Errorf("%v:\ngot  %s\nwant %s", in, got, want)
		}
		if runs := scripts(t, n) - before; runs > 1 || strings.Contains(got, " of ") && runs != 1 {
			t.Errorf("%v: got %d runs of the script, want one for the whole call", in, runs)
		}
	}
}

// scripts returns how many scripts n has run.
func scripts(t *testing.T, n *redistest.Node) (runs int) {
	t.Helper()
	text := n.Info("cmdstat_evalsha")
	if _, err := fmt.Sscanf(text, "calls=%d,", &runs); text != "" && err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return runs
}

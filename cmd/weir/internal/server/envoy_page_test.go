package server_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/weirhq/weir/cmd/weir/internal/config"
)

// called finds the body of a call in a command of the page.
var called = regexp.MustCompile(`^(grpcurl|curl) .*-d '([^']*)'`)

// TestEnvoyPage makes the calls of docs/guides/envoy.md and compares the answers: those of
// grpcurl over gRPC, by weir's rules, and those of curl by the files of
// envoyproxy/ratelimit. The time until a reset may differ. It reads the page of the admin
// address, too.
func TestEnvoyPage(t *testing.T) {
	t.Parallel()
	blocks := read(t, "../../../../docs/guides/envoy.md")
	dir := t.TempDir()
	var native, reference *service
	var client rls.RateLimitServiceClient
	for _, b := range blocks {
		switch {
		case b.language == "yaml" && strings.Contains(b.text, "\nrules:\n"):
			socket := filepath.Join(dir, "grpc")
			native = start(t, func(c *config.Config) { c.Rules, c.GRPCListen = rulesFile(t, b.text), "unix:"+socket })
			client = rls.NewRateLimitServiceClient(dial(t, "unix:"+socket, insecure.NewCredentials()))
		case b.language == "yaml" && strings.HasPrefix(b.text, "domain:"):
			write(t, filepath.Join(dir, "edge.yaml"), b.text)
			reference = start(t, func(c *config.Config) { c.Envoy.Dir = dir })
		}
	}
	calls, pages := 0, 0
	for i, b := range blocks {
		if path, ok := strings.CutPrefix(strings.TrimSpace(b.text), "curl http://127.0.0.1:6070"); ok {
			pages++
			if a := ask(t, http.DefaultTransport, "GET", reference.admin+path, "", ""); !strings.HasSuffix(a.text, blocks[i+1].text) {
				t.Errorf("%s\ngot  %s\nwant %s", b.text, a.text, blocks[i+1].text)
			}
		}
		m := called.FindStringSubmatch(b.text)
		if b.language != "sh" || m == nil {
			continue
		}
		calls++
		var got string
		if m[1] == "curl" {
			a := ask(t, http.DefaultTransport, "POST", reference.api+"/json", "", m[2])
			_, got, _ = strings.Cut(a.text, " ")
		} else {
			in := &rls.RateLimitRequest{}
			if err := protojson.Unmarshal([]byte(m[2]), in); err != nil {
				t.Fatal(err)
			}
			out, err := client.ShouldRateLimit(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			text, err := protojson.Marshal(out)
			if err != nil {
				t.Fatal(err)
			}
			got = string(text)
		}
		if g, w := withoutResets(t, got), withoutResets(t, blocks[i+1].text); !reflect.DeepEqual(g, w) {
			t.Errorf("%s\ngot  %s\nwant %s", b.text, got, blocks[i+1].text)
		}
	}
	if calls != 3 || pages != 1 || native == nil {
		t.Errorf("got %d calls and %d pages, want 3 and 1", calls, pages)
	}
}

// withoutResets returns an answer whose times are all the same.
func withoutResets(t *testing.T, text string) (v any) {
	t.Helper()
	text = regexp.MustCompile(`"durationUntilReset": *"[0-9]+s"`).ReplaceAllString(text, `"durationUntilReset":"1s"`)
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

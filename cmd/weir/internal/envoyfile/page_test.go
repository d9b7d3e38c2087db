package envoyfile_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	mutation "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"github.com/goccy/go-yaml"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/weirhq/weir/cmd/weir/internal/envoyfile"
	"github.com/weirhq/weir/rulefile"
)

// TestPage reads the configurations of docs/guides/envoy.md: weir's rules, files of
// envoyproxy/ratelimit, and Envoy's own configuration, which is decoded into Envoy's
// types with all that it nests.
func TestPage(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("../../../../docs/guides/envoy.md")
	if err != nil {
		t.Fatal(err)
	}
	rules, files, envoys := 0, 0, 0
	for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```\n").FindAllStringSubmatch(string(src), -1) {
		text := m[1]
		switch {
		case strings.Contains(text, "\nrules:\n"):
			rules++
			if _, err := rulefile.Parse("rules.yaml", []byte(text), nil); err != nil {
				t.Error(err)
			}
		case strings.HasPrefix(text, "domain:"):
			files++
			if _, err := envoyfile.New([]envoyfile.Source{{Name: "f.yaml", Text: []byte(text)}}, envoyfile.Options{}); err != nil {
				t.Error(err)
			}
		case strings.Contains(text, "\nkind: EnvoyGateway\n"): // of another program
		default:
			envoys++
			decodeEnvoy(t, text)
		}
	}
	if rules != 1 || files != 1 || envoys != 1 {
		t.Errorf("got %d, %d and %d configurations, want one of each", rules, files, envoys)
	}
}

func decodeEnvoy(t *testing.T, text string) {
	t.Helper()
	json, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	b := &bootstrap.Bootstrap{}
	if err := protojson.Unmarshal(json, b); err != nil {
		t.Fatal(err)
	}
	if err := b.ValidateAll(); err != nil {
		t.Error(err)
	}
	manager := &hcm.HttpConnectionManager{}
	of(t, b.StaticResources.Listeners[0].FilterChains[0].Filters[0].GetTypedConfig(), manager)
	if err := manager.ValidateAll(); err != nil {
		t.Error(err)
	}
	early := &mutation.HeaderMutation{}
	of(t, manager.EarlyHeaderMutationExtensions[0].TypedConfig, early)
	if err := early.ValidateAll(); err != nil || early.Mutations[0].GetRemove() != "x-weir-receipt" {
		t.Errorf("got %v, %v, want no receipt that a client has sent", early, err)
	}
	filter := &ratelimit.RateLimit{}
	of(t, manager.HttpFilters[0].GetTypedConfig(), filter)
	if err := filter.ValidateAll(); err != nil {
		t.Error(err)
	}
	cluster := filter.RateLimitService.GrpcService.GetEnvoyGrpc().ClusterName
	found := false
	for _, c := range b.StaticResources.Clusters {
		found = found || c.Name == cluster
	}
	if !found {
		t.Errorf("the filter asks cluster %q, which is not defined", cluster)
	}
}

func of(t *testing.T, from *anypb.Any, to proto.Message) {
	t.Helper()
	if err := from.UnmarshalTo(to); err != nil {
		t.Fatal(err)
	}
}

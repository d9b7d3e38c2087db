package compose

import (
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// load reads the manifest as Docker Compose does: with its schema, the variables of
// the environment, and the rules about what belongs together.
func load(t *testing.T, env ...string) (*types.Project, error) {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"compose.yaml"}, cli.WithEnv(env), cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}
	return options.LoadProject(t.Context())
}

func TestCompose(t *testing.T) {
	t.Parallel()
	const token = "a-token-of-twenty-characters"
	p, err := load(t, "WEIR_TOKEN="+token, "GRAFANA_PASSWORD=secret")
	if err != nil {
		t.Fatal(err)
	}
	names := p.ServiceNames()
	slices.Sort(names)
	if want := []string{"grafana", "prometheus", "redis", "weir"}; !slices.Equal(names, want) {
		t.Errorf("got services %q, want %q", names, want)
	}
	for name, s := range p.Services {
		if s.Image == "" && s.Build == nil {
			t.Errorf("%s: got neither an image nor a build", name)
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %s is published on %q, want only this machine", name, port.Published, port.HostIP)
			}
		}
		for _, c := range s.Configs {
			if _, ok := p.Configs[c.Source]; !ok {
				t.Errorf("%s: config %s does not exist", name, c.Source)
			}
		}
		for dependency := range s.DependsOn {
			if _, ok := p.Services[dependency]; !ok {
				t.Errorf("%s depends on %s, which does not exist", name, dependency)
			}
		}
	}
	weir := p.Services["weir"]
	if !weir.ReadOnly || !slices.Equal(weir.CapDrop, []string{"ALL"}) {
		t.Errorf("got read_only %t, cap_drop %q", weir.ReadOnly, weir.CapDrop)
	}
	if got := weir.Environment["WEIR_TOKEN"]; got == nil || *got != token {
		t.Errorf("got token %v, want that of the environment", got)
	}
	if line := strings.Join(weir.Command, " "); strings.Contains(line, token) {
		t.Errorf("got %q, want no token in the command line", line)
	}
}

// Without its secrets Compose does not start.
func TestComposeWithoutSecrets(t *testing.T) {
	t.Parallel()
	for _, env := range [][]string{{"WEIR_TOKEN=x"}, {"GRAFANA_PASSWORD=x"}} {
		if _, err := load(t, env...); err == nil || !strings.Contains(err.Error(), "required variable") {
			t.Errorf("%q: got %v, want that a variable is required", env, err)
		}
	}
}

package server

import (
	"testing"

	"github.com/weirhq/weir/internal/files"
)

// TestWarningsAreLogged loads rules that probably do not mean what they say.
func TestWarningsAreLogged(t *testing.T) {
	t.Parallel()
	l, err := rulesAt{path: "rules.yaml"}.parse([]byte("rules:\n  - {name: open, then: allow}\n  - {name: posts, per: [user], limit: 5, window: 1h}\n"), files.List)
	if err != nil {
		t.Fatal(err)
	}
	want := `rules.yaml:2:5: rule "open": the rule matches every request: the rules behind it (1) never apply (dead-rule)`
	if len(l.warnings) != 1 || l.warnings[0].Summary() != want {
		t.Errorf("got %v, want %s", l.warnings, want)
	}
}

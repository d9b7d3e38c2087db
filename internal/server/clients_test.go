package server_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/needtest"
)

// TestClients runs the programs in PHP, Python and JavaScript, and compares what
// they print with the page.
func TestClients(t *testing.T) {
	t.Parallel()
	blocks := read(t, "../../docs/clients.md")
	s := start(t, withRules(rulesFile(t, blocks[0].text), false))
	interpreters := map[string][]string{"php": {"php"}, "python": {"python3", "-"}, "js": {"node", "-"}}
	for i, b := range blocks {
		args := interpreters[b.language]
		if args == nil {
			continue
		}
		t.Run(fmt.Sprintf("%s/%d", b.language, i), func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), needtest.Program(t, args[0]), args[1:]...)
			// A crowded machine is not an outage.
			text := strings.NewReplacer("http://localhost:8080", s.api, "timeout=0.5", "timeout=60", "'timeout' => 0.5", "'timeout' => 60", "timeout(500)", "timeout(60000)")
			cmd.Env = append(os.Environ(), "PYTHONPATH=../../clients/python", "PYTHONDONTWRITEBYTECODE=1")
			cmd.Stdin = strings.NewReader(text.Replace(b.text))
			got, err := cmd.CombinedOutput()
			if err != nil || string(got) != blocks[i+1].text {
				t.Errorf("got %v\n%s\nwant\n%s", err, got, blocks[i+1].text)
			}
		})
	}
}

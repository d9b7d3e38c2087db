package server_test

import (
	"net/http"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/config"
)

// The configuration chooses the dialect in which the gate states limits.
func TestHeaders(t *testing.T) {
	t.Parallel()
	for dialect, want := range map[string]map[string]string{
		"draft":  {"RateLimit": `"posts-per-hour";r=4`, "X-RateLimit-Limit": ""},
		"legacy": {"RateLimit": "", "X-RateLimit-Limit": "5", "X-RateLimit-Remaining": "4"},
		"none":   {"RateLimit": "", "X-RateLimit-Limit": ""},
	} {
		s := start(t, func(c *config.Config) { c.Headers = dialect })
		answer, err := http.Get(s.api + "/v1/gate?action=post&user=42")
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		for name, value := range want {
			if got := answer.Header.Get(name); got != value {
				t.Errorf("%s: got %s: %s, want %q", dialect, name, got, value)
			}
		}
	}
}

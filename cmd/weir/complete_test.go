package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/spf13/cobra"
)

// The shell completes only those words of a service that it inserts as they are.
func TestCompletionOfForeignWords(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"rules": [{"name": "posts-per-hour", "per": ["user", "$(id)"]},
			{"name": "$(touch x)"}, {"name": "a\u001b[2J"}, {"name": "a\nb"}, {"name": "` + "`id`" + `"}]}`))
	}))
	t.Cleanup(s.Close)
	c, cmd := &client{addr: s.URL}, &cobra.Command{}
	cmd.SetContext(t.Context())
	if got, _ := c.completeRules(cmd, nil, ""); !slices.Equal(got, []string{"posts-per-hour"}) {
		t.Errorf("got rules %q", got)
	}
	if got, _ := c.completeRules(cmd, []string{"posts-per-hour"}, ""); !slices.Equal(got, []string{"user="}) {
		t.Errorf("got attributes %q", got)
	}
}

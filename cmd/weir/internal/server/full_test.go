package server_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/config"
)

// A full table denies new keys until the first of its keys expires, and the log
// has one line for all of them.
func TestFullTable(t *testing.T) {
	t.Parallel()
	rules := rulesFile(t, "rules:\n  - {name: posts, per: [user], limit: 5, window: 1h, max_keys: 2}\n")
	s := start(t, func(c *config.Config) { c.Rules = rules })
	for _, user := range []string{"a", "b"} {
		if ok, _ := s.post(t, user); !ok {
			t.Errorf("%s: got denied, want room", user)
		}
	}
	for _, user := range []string{"c", "d", "e"} {
		a := call(t, "POST", s.api+"/v1/take", `{"attributes":{"action":"post","user":"`+user+`"}}`)
		wait, _ := a.json["retry_after"].(float64)
		if a.json["allowed"] != false || a.json["degraded_reason"] != "full" || wait < 3500 || wait > 3600 {
			t.Errorf("%s: got %s, want denied for the hour until a key expires", user, a.text)
		}
	}
	if ok, _ := s.post(t, "a"); !ok {
		t.Error("got a known key denied")
	}
	s.logs.await(t, 1, `msg="no room for new keys, rules follow their on_outage" reason=full`)
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	s.logs.mu.Lock()
	defer s.logs.mu.Unlock()
	if n := strings.Count(s.logs.text.String(), "no room for new keys"); n != 2 { // the end of the service ends the episode
		t.Errorf("got %d lines about room, want one at the start and one at the end:\n%s", n, s.logs.text.String())
	}
}

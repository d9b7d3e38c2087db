package server_test

import "testing"

// TestWarningsAreLogged serves rules that probably do not mean what they say.
func TestWarningsAreLogged(t *testing.T) {
	t.Parallel()
	path := rulesFile(t, "rules:\n  - {name: open, then: allow}\n  - {name: posts, per: [user], limit: 5, window: 1h}\n")
	s := start(t, withRules(path, false))
	s.logs.await(t, 1, "some rules may not mean what they say: run weir check")
	s.logs.await(t, 1, `the rule matches every request: the rules behind it (1) never apply (dead-rule)`)
}

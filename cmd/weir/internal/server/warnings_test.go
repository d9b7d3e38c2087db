package server_test

import (
	"path/filepath"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/internal/redistest"
)

// TestWarningsAreLogged serves rules that probably do not mean what they say.
func TestWarningsAreLogged(t *testing.T) {
	t.Parallel()
	path := rulesFile(t, "rules:\n  - {name: open, then: allow}\n  - {name: posts, per: [user], limit: 5, window: 1h}\n")
	s := start(t, withRules(path, false))
	s.logs.await(t, 1, "some rules may not mean what they say: run weir check")
	s.logs.await(t, 1, `the rule matches every request: the rules after it (1) never apply (dead-rule)`)
}

// A service whose counters outlive it does not warn that a restart forgets them.
func TestNoWarningOfRestartsWithData(t *testing.T) {
	t.Parallel()
	const rules = "rules:\n  - {name: posts, per: [user], limit: 5, window: ever}\n  - {name: open, then: allow}\n  - {name: never, then: deny}\n"
	dir := t.TempDir()
	write(t, filepath.Join(dir, "default.yaml"), rules)
	for _, path := range []string{rulesFile(t, rules), dir} {
		without := start(t, withRules(path, false))
		without.logs.await(t, 1, "(restart-forgets)")
		without.logs.await(t, 1, "warnings=2")
		with := start(t, func(c *config.Config) { c.Rules, c.Data = path, t.TempDir() })
		with.logs.await(t, 1, "(dead-rule)")
		with.logs.await(t, 1, "warnings=1")
	}
}

// A service warns of leases that are too small for the number of its instances, as weir check --nodes does.
func TestWarnsOfSmallLeases(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	const rules = "rules: [{name: hits, per: [user], limit: 1000, window: 1h, lease: strict, ignore: grouped-quota}]"
	dir := t.TempDir()
	write(t, filepath.Join(dir, "default.yaml"), rules)
	for _, path := range []string{rulesFile(t, rules), dir} {
		s := start(t, func(c *config.Config) {
			onStore(t, n, 9)(c)
			c.Rules = path
		})
		s.logs.await(t, 1, "a quota of 1000 is never leased by 9 instances: each of them needs 128 of it (never-leased)")
	}
}

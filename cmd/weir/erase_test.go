package main

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/redistest"
)

// dump returns all that a Redis server has, as text.
func dump(t *testing.T, n *redistest.Node) string {
	t.Helper()
	var b strings.Builder
	keys, ok := n.Must("KEYS", "*").([]any)
	if !ok {
		t.Fatal("got no list of keys")
	}
	for _, key := range keys {
		name := fmt.Sprint(key)
		var value any
		switch kind := fmt.Sprint(n.Must("TYPE", name)); kind {
		case "string":
			value = n.Must("GET", name)
		case "hash":
			value = n.Must("HGETALL", name)
		case "zset":
			value = n.Must("ZRANGE", name, "0", "-1")
		default:
			t.Fatalf("%s is a %s", name, kind)
		}
		fmt.Fprintf(&b, "%s: %s\n", name, value)
	}
	return b.String()
}

// What the page about personal data says erases a user: nothing that Redis has names the user afterwards, but for the
// overrides that were removed.
func TestEraseUser(t *testing.T) {
	t.Parallel()
	page := readFile(t, "../../docs/guides/personal-data.md")
	_, section, _ := strings.Cut(page, "## Erase a user\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var names []string
	for _, m := range regexp.MustCompile("`(weir:[^`]+)`").FindAllStringSubmatch(section, -1) {
		if names = append(names, m[1]); strings.Contains(m[1], ":kept:") {
			names = append(names, m[1]+":changed", m[1]+":removed")
		}
	}
	server := redistest.Server(t)
	const rules = "rules:\n  - name: posts-per-hour\n    when: {action: post}\n    per: [user]\n    limit: 5\n    window: 1h\n"
	p := startProcess(t, "", rules, "--store", "redis://"+server.Addr()+"?timeout=30s")
	p.ready(t)
	const user = "somebody"
	redistest.Eventually(t, "the store decides", func() bool { // on a busy machine Redis may answer too late
		return !strings.Contains(p.call(t, http.MethodPost, "/v1/check", `{"attributes":{"action":"post","user":"`+user+`"}}`), "degraded")
	})
	p.call(t, http.MethodPut, "/v1/overrides", `{"rule":"posts-per-hour","attributes":{"user":"`+user+`"},"limit":1}`)
	for i := range 2 {
		p.call(t, http.MethodPost, "/v1/take", fmt.Sprintf(`{"attributes":{"action":"post","user":%q},"hits":2,"idempotency_key":"key-%d"}`, user, i))
	}
	p.call(t, http.MethodDelete, "/v1/overrides?rule=posts-per-hour&user="+user, "")
	p.call(t, http.MethodDelete, "/v1/usage?rule=posts-per-hour&user="+user, "")
	redistest.Eventually(t, "all is written", func() bool {
		all := dump(t, server)
		for _, want := range []string{"weir.denied", "weir.override_ended", "override-removed", `"forget"`, "weir:log:denials/"} {
			if !strings.Contains(all, want) {
				return false
			}
		}
		return true
	})
	if all := dump(t, server); strings.Count(all, user) < 4 {
		t.Errorf("the user is hardly there:\n%s", all)
	}
	server.Must(append([]string{"DEL"}, names...)...)
	for line := range strings.Lines(dump(t, server)) {
		if strings.Contains(line, user) && !strings.HasPrefix(line, "weir:kept:{overrides}:") { // of 1,000 that were removed
			t.Errorf("after DEL %q there is %s", names, line)
		}
	}
}

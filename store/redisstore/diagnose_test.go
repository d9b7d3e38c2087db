package redisstore_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store/redisstore"
	"github.com/weirhq/weir/store/remote"
)

// diagnose returns the findings of a check on a server, by node, and its lines.
func diagnose(t *testing.T, url, check string) (findings []redisstore.Finding) {
	t.Helper()
	s, err := redisstore.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	nodes := 1
	if strings.HasPrefix(url, "redis+cluster:") {
		nodes = 3
	}
	connected(t, s, nodes)
	var all []redisstore.Finding
	redistest.Eventually(t, "the servers are checked", func() bool { // on a busy machine they can be late
		all, err = s.Diagnose(t.Context())
		return err == nil
	})
	for _, f := range all {
		if f.Check == check || check == "" {
			findings = append(findings, f)
		}
	}
	if len(findings) == 0 {
		t.Fatalf("got no finding of %q", check)
	}
	return findings
}

// level checks the level of the only finding of a check, and that its line has
// some words.
func level(t *testing.T, url, check string, want remote.Level, words ...string) {
	t.Helper()
	f := diagnose(t, url, check)
	if len(f) != 1 || f[0].Level != want {
		t.Errorf("%s: got %+v, want %v", check, f, want)
	}
	wantIn(t, f[0].String(), words...)
}

const patiently = "?timeout=10s"

// A server with its defaults is suitable, and the checks leave no keys.
func TestDiagnose(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t, "--appendonly", "yes")
	for _, f := range diagnose(t, "redis://"+n.Addr()+patiently, "") {
		if f.Level != remote.LevelOK && f.Check != "engine" {
			t.Errorf("%s: got %v: %v", f.Check, f.Level, f)
		}
		if f.Node != n.Addr() {
			t.Errorf("%s: got node %q, want %q", f.Check, f.Node, n.Addr())
		}
	}
	if size := n.Must("DBSIZE"); size != int64(0) {
		t.Errorf("keys left by the checks: got %v, want none", size)
	}
}

// Each setting that can lose counts is seen on a real server.
func TestDiagnoseSeesSettings(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru", "--maxclients", "25")
	url := "redis://" + n.Addr() + patiently
	level(t, url, "eviction", remote.LevelWarn, "allkeys-lru at 100 MB", "and overrides")
	level(t, url, "persistence", remote.LevelWarn, "neither")
	level(t, url, "replicas", remote.LevelOK, "0 in step")
	level(t, url+"&wait_replicas=1", "replicas", remote.LevelWarn, "wait_replicas=1")
	level(t, url+"&wait_replicas=1", "clients", remote.LevelWarn, "of maxclients 25 ")
	level(t, url, "prefix", remote.LevelOK)
	n.Must("SET", "weir:junk", "1")
	level(t, url, "prefix", remote.LevelWarn, `"weir:junk"`)
	level(t, url+"&prefix=other", "prefix", remote.LevelOK)
	r := n.Replica()
	level(t, url+"&wait_replicas=1", "replicas", remote.LevelOK, "1 in step, of which 1")
	level(t, "redis://"+r.Addr()+patiently, "role", remote.LevelWarn, "a replica")
	level(t, "redis://"+r.Addr()+patiently, "rights", remote.LevelWarn, "READONLY")
}

// The documented rights are enough, and each of them is needed.
func TestDiagnoseRights(t *testing.T) {
	t.Parallel()
	rights := documentedRights(t)
	n := redistest.Server(t)
	setUser := func(rules ...string) {
		n.Must(append([]string{"ACL", "SETUSER", "weir", "reset", "on", ">secret"}, rules...)...)
	}
	url := "redis://weir:secret@" + n.Addr() + patiently
	setUser(rights...)
	level(t, url, "rights", remote.LevelOK)
	level(t, url, "atomic", remote.LevelOK, "all counted")
	level(t, url, "eviction", remote.LevelUnknown, "ACL SETUSER weir +info")
	for _, entry := range n.Must("ACL", "LOG", "100").([]any) {
		fields := fmt.Sprint(entry)
		if !regexp.MustCompile(`object (info|scan|config\|get|acl\|whoami) `).MatchString(fields) {
			t.Errorf("the checks have tried what the page does not name: %s", fields)
		}
	}
	for i, r := range rights {
		if r[0] != '+' || r == "+eval" {
			continue // without eval no program runs
		}
		setUser(slices.Delete(slices.Clone(rights), i, i+1)...)
		switch r {
		case "+evalsha", "+time": // which the first contact needs
			if err := refusalOf(t, url); !strings.Contains(err.Error(), "NOPERM") {
				t.Errorf("without %s: got error %v from Open, want NOPERM", r, err)
			}
		default:
			level(t, url, "rights", remote.LevelRefuse, "ACL SETUSER weir ~weir:* "+r)
		}
	}
	setUser(slices.DeleteFunc(slices.Clone(rights), func(r string) bool { return r == "+eval" })...)
	level(t, url, "scripting", remote.LevelRefuse, "ACL SETUSER weir ~weir:* +eval")
	setUser(rights...)
	level(t, url+"&prefix=other", "scripting", remote.LevelRefuse, "~other:*")
}

// documentedRights returns the rules of the user in docs/guides/redis.md, which the page in Chinese
// repeats.
func documentedRights(t *testing.T) []string {
	t.Helper()
	var rights [2]string
	for i, page := range []string{"../../docs/guides/redis.md", "../../docs/zh/guides/redis.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`redis-cli ACL SETUSER weir on '>secret' ([^\x60]+)`).FindSubmatch(text)
		if m == nil {
			t.Fatalf("%s has no ACL SETUSER", page)
		}
		rights[i] = strings.NewReplacer("'", "", "\\\n", "").Replace(string(m[1]))
	}
	if rights[0] != rights[1] {
		t.Errorf("the pages differ: %s and %s", rights[0], rights[1])
	}
	return strings.Fields(rights[0])
}

// A cluster is checked node by node.
func TestDiagnoseCluster(t *testing.T) {
	t.Parallel()
	c := redistest.Cluster(t, 3, 0)
	url := "redis+cluster://" + c.Masters[0].Addr() + patiently
	nodes := map[string]bool{}
	for _, f := range diagnose(t, url, "") {
		nodes[f.Node] = true
		if f.Level == remote.LevelRefuse || f.Level == remote.LevelUnknown {
			t.Errorf("%s %s: got %v: %v", f.Node, f.Check, f.Level, f)
		}
	}
	if len(nodes) != 3 {
		t.Errorf("got nodes %v, want 3", nodes)
	}
	for _, n := range c.Masters {
		if !nodes[n.Addr()] {
			t.Errorf("got nodes %v, want %s", nodes, n.Addr())
		}
	}
}

// A dead node of a cluster is an error, and the others are checked.
func TestDiagnoseDeadShard(t *testing.T) {
	t.Parallel()
	c := redistest.Cluster(t, 3, 0)
	s, err := redisstore.Open(t.Context(), "redis+cluster://"+c.Addrs()+patiently)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	connected(t, s, 3)
	c.Masters[0].Kill()
	redistest.Eventually(t, "those that run are checked", func() bool { // on a busy machine they can be late
		all, err := s.Diagnose(t.Context())
		found := func(n *redistest.Node) bool {
			return slices.ContainsFunc(all, func(f redisstore.Finding) bool { return f.Node == n.Addr() })
		}
		if err == nil || !strings.Contains(err.Error(), c.Masters[0].Addr()) || found(c.Masters[0]) {
			t.Errorf("got error %v, want that %s is unavailable, and no findings on it", err, c.Masters[0].Addr())
		}
		return found(c.Masters[1]) && found(c.Masters[2])
	})
}

// Behind Sentinels the primary is checked.
func TestDiagnosePrimary(t *testing.T) {
	t.Parallel()
	g := redistest.Sentinel(t)
	url := "redis+sentinel://" + g.Sentinels[0].Addr() + "/" + redistest.MasterName + patiently
	level(t, url, "topology", remote.LevelOK)
	level(t, url, "role", remote.LevelOK, "a primary")
	level(t, url+"&wait_replicas=1", "replicas", remote.LevelOK, "1 in step, of which 1")
	level(t, url+"&wait_replicas=1", "rights", remote.LevelOK, "23 commands")
}

// An unavailable server is an error, soon enough.
func TestDiagnoseOutOfReach(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s, err := redisstore.Open(t.Context(), "redis://"+n.Addr()+patiently)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n.Stop()
	defer n.Continue()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	clock := redistest.Clock(t)
	if all, err := s.Diagnose(ctx); err == nil {
		t.Errorf("got findings %v, want an error", all)
	}
	if took := clock(); took > 5*time.Second {
		t.Errorf("a stopped server: got an answer after %v", took)
	}
}

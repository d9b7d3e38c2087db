package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/config"
)

func TestKoalaReload(t *testing.T) {
	t.Parallel()
	rules := koalaHome(t)
	k := startKoala(t, rules, nil)
	k.get(t, "/rule/update?act=mall_score&uid=7")

	write(t, filepath.Join(filepath.Dir(rules), "uip_blacklist.dat"), "10.9.9.8\n")
	k.logs.await(t, 1, `msg="rules loaded" asked=file`)
	if a := k.get(t, "/rule/browse?uip=10.9.9.8"); a.text != denied(104) {
		t.Errorf("after the dict changed: got %s, want denied", a.text)
	}

	write(t, rules, strings.Replace(koalaRules, "[count] [act=pair", "[cuont] [act=pair", 1))
	k.logs.await(t, 1, `msg="rules refused; the old rules stay in force" asked=file`)
	k.logs.await(t, 1, `koala_rule.conf:9:`)
	if a := call(t, "POST", k.admin+"/-/reload", ""); a.status != 422 || !strings.Contains(fmt.Sprint(a.json["errors"]), "koala_rule.conf:9:") {
		t.Errorf("got %d %s, want the fault with its line", a.status, a.text)
	}
	if a := k.get(t, "/rule/browse?act=mall_score&uid=7"); a.text != denied(501) {
		t.Errorf("after a bad file: got %s, want the old rules", a.text)
	}

	write(t, rules, strings.Replace(koalaRules, "time=3600; count=1;] [result=2; return=501]", "time=3600; count=2;] [result=2; return=501]", 1))
	k.logs.await(t, 2, `msg="rules loaded" asked=file`)
	for _, want := range []string{within, denied(501)} { // one was counted before
		if a := k.get(t, "/rule/browse?act=mall_score&uid=7&_writeThrough=yes"); a.text != want {
			t.Errorf("after the limit grew: got %s, want %s", a.text, want)
		}
	}
}

// Fault 11: with another method under the same return code koala's keys were of
// the wrong kind, and let everything pass until they expired.
func TestKoalaMethodChanges(t *testing.T) {
	t.Parallel()
	rules := koalaHome(t)
	k := startKoala(t, rules, func(c *config.Config) { c.Watch = false })
	for _, method := range []string{"count", "leak", "count"} {
		write(t, rules, strings.Replace(koalaRules, "[count] [act=mall_score", "["+method+"] [act=mall_score", 1))
		if a := call(t, "POST", k.admin+"/-/reload", ""); a.status != 200 {
			t.Fatalf("got %d %s, want loaded", a.status, a.text)
		}
		k.get(t, "/rule/browse?act=mall_score&uid=7&_writeThrough=yes")
		if a := k.get(t, "/rule/browse?act=mall_score&uid=7&_writeThrough=yes"); a.text != denied(501) {
			t.Errorf("%s: got %s, want denied", method, a.text)
		}
	}
}

// A dict that stands where koala, started in its home, found it is called by
// the path at which it is.
func TestKoalaNamesDictsWhereTheyStand(t *testing.T) {
	t.Parallel()
	rules := koalaHome(t)
	dict := filepath.Join(filepath.Dir(rules), "uip_blacklist.dat")
	write(t, dict, "10.9.0.0/16\n")
	write(t, rules, `[dicts]
uip : conf/uip_blacklist.dat
[rules]
rule : [count] [uip @ uip] [time=5; count=1] [result=2; return=1]
[result]
2 : {"Ret_type":2, "Err_no":10}
`)
	startKoala(t, rules, nil).logs.await(t, 1, dict+":1:1:")
}

// Files are looked at every now and then where the system tells of no change:
// here because it happens by another name, elsewhere on another machine.
func TestKoalaLooksAgain(t *testing.T) {
	t.Parallel()
	rules, elsewhere := koalaHome(t), filepath.Join(t.TempDir(), "rules")
	k := startKoala(t, rules, func(c *config.Config) { c.WatchEvery = 10 * time.Millisecond })
	write(t, rules, koalaRules+"# changed\n")
	k.logs.await(t, 1, `msg="rules loaded" asked=file`) // the watch is under way
	if err := os.Link(rules, elsewhere); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(elsewhere, []byte(koalaRules+"# changed again\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	k.logs.await(t, 2, `msg="rules loaded" asked=file`)
}

// Rules that are native, as weir import koala makes them, answer koala's
// clients too.
func TestKoalaListensWithNativeRules(t *testing.T) {
	t.Parallel()
	path := rulesFile(t, "rules: [{name: koala-501, code: 501, when: {act: ask}, per: [uid], limit: 1, window: 1h, then: deny}]")
	k := startKoala(t, "", func(c *config.Config) { c.Rules = path })
	for _, want := range []string{within, denied(501)} {
		if a := k.get(t, "/rule/browse?act=ask&uid=7&_writeThrough=yes"); a.text != want {
			t.Errorf("got %s, want %s", a.text, want)
		}
	}
}

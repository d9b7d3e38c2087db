package weir_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// Support sets a count right and lifts a ban; what cannot be set says why, and nothing changes.
func TestSetAndUnban(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := engine(t, []rule.Rule{
			{Name: "posts", Per: []string{"user"}, Quota: &rule.Quota{Value: 3}, Window: window.Sliding(time.Hour)},
			{Name: "logins", When: []rule.Condition{{Attribute: "action", Test: rule.Equal("login")}}, Per: []string{"user"}, Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Hour), Ban: window.Ban{For: time.Hour}},
			{Name: "friends", When: []rule.Condition{{Attribute: "action", Test: rule.Equal("friend")}}, Per: []string{"user"}, Measure: window.Distinct, Of: "friend", Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Hour)},
			{Name: "flights", When: []rule.Condition{{Attribute: "action", Test: rule.Equal("fly")}}, Per: []string{"user"}, Quota: &rule.Quota{Value: 9}, Window: window.Held(time.Hour)},
			{Name: "tokens", When: []rule.Condition{{Attribute: "action", Test: rule.Equal("chat")}}, Per: []string{"user"}, Quota: &rule.Quota{Value: 9}, Window: window.Sliding(time.Hour), Hold: time.Minute},
			{Name: "calls", When: []rule.Condition{{Attribute: "action", Test: rule.Equal("call")}}, Per: []string{"user"}, Quota: &rule.Quota{Value: 1}, Window: window.Bucket(time.Hour, 5)},
		})
		ann := weir.Attributes("user", "ann")
		take := func(attributes ...string) bool {
			t.Helper()
			d, err := e.Take(t.Context(), weir.Request{Attributes: weir.Attributes(append(attributes, "user", "ann")...)})
			if err != nil {
				t.Fatal(err)
			}
			return d.Allowed
		}
		if r, err := e.Set(t.Context(), "posts", ann, 3); err != nil || r.Before != 0 || r.Used != 3 {
			t.Errorf("got %+v, %v, want 3 used", r, err)
		}
		if take() {
			t.Error("got a post admitted, want it denied: three were set")
		}
		time.Sleep(time.Hour)
		if !take("action", "login") || take("action", "login") {
			t.Fatal("got no ban, want one")
		}
		refused := map[string]error{}
		for name, n := range map[string]int64{"logins": 0, "friends": 1, "flights": 1, "posts": -1} {
			_, refused[name] = e.Set(t.Context(), name, ann, n)
		}
		time.Sleep(time.Second)
		if err := e.Unban(t.Context(), "logins", ann); err != nil {
			t.Fatal(err)
		}
		if !take("action", "login") {
			t.Error("got a denial after the ban was lifted")
		}
		take("action", "chat")
		_, refused["tokens"] = e.Set(t.Context(), "tokens", ann, 0)
		for name, want := range map[string]string{
			"logins": "attributes: the key is banned", "friends": "rule: ", "flights": "rule: ", "posts": "hits: -1", "tokens": "attributes: the key has holds",
		} {
			if f, ok := errors.AsType[*fault.Fault](refused[name]); !ok || !strings.HasPrefix(f.Error(), "weir: "+want) {
				t.Errorf("%s: got %v, want a fault that begins with %s", name, refused[name], want)
			}
		}
		if _, err := e.Set(t.Context(), "calls", ann, 6); err == nil || !strings.Contains(err.Error(), "hits: 6: want at most 5") {
			t.Errorf("got %v for more than a bucket has room for, want a fault", err)
		}
		if r, err := e.Set(t.Context(), "calls", ann, 5); err != nil || r.Used != 5 {
			t.Errorf("got %+v, %v, want a full bucket", r, err)
		}
		if err := e.Unban(t.Context(), "posts", ann); err == nil || err.Error() != `weir: rule: "posts" has no ban` {
			t.Errorf("got %v for a rule without a ban, want a fault", err)
		}
		if err := e.Unban(t.Context(), "none", ann); !errors.Is(err, weir.ErrUnknownRule) {
			t.Errorf("got %v, want an unknown rule", err)
		}
		if err := e.Unban(t.Context(), "frends", ann); err == nil || err.Error() != `weir: no such rule that counts: "frends": did you mean "friends"?` {
			t.Errorf("got %v, want the name that is meant", err)
		}
		if err := e.Unban(t.Context(), strings.Repeat("x", 1<<20), ann); err == nil || len(err.Error()) > 200 {
			t.Errorf("got an error of %d bytes, want the beginning of the name", len(err.Error()))
		}
	})
}

package keyname_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/keyname"
)

// TestKeysOfNames reads the keys back from names.
func TestKeysOfNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 70)
	names := keyname.Names{Prefix: "w*"}
	for _, test := range []struct {
		namespace, key, together string
		whole                    bool
	}{
		{"", key("ann"), "", true},
		{"acme", key("ann", "10.0.0.1"), "", true},
		{"", key("2001:db8::1", "x"), "2001:db8::1", true},
		{"", key("a,b", "c%20", "{d}:posts:", "é\n\x00\xff"), "", true},
		{"", key("a", "", "c"), "", true},
		{"", key(""), "", true},
		{"", "", "", true},
		{"", key(long), "", false},
		{"", key(long[:64], long), "acme", false},
	} {
		space := store.NewSpace(test.namespace, "id", "po*sts", 0)
		op := store.Op{Space: space, Key: []byte(test.key), Together: []byte(test.together)}
		name := string(names.Append(nil, &op))
		got, ok := names.Key(space, name)
		want := ""
		if test.whole {
			want = test.key
		}
		if !ok || string(got) != want {
			t.Errorf("name %s: got key %q, ok %v, want %q", name, got, ok, want)
		}
		for _, other := range []string{name + keyname.MembersSuffix, "w" + name, strings.Replace(name, "po*sts:", "posts:", 1), "w*:{x}:po*sts:zz"} {
			if _, ok := names.Key(space, other); ok {
				t.Errorf("name %s: got a key of it", other)
			}
		}
		if _, ok := names.Key(store.NewSpace(test.namespace, "id2", "po*sts", 0), name); ok && test.whole {
			t.Errorf("name %s: got a key of it in another space of the same name", name)
		}
	}
	if got, want := names.Pattern(store.NewSpace("n", "id", "po*sts", 0)), `w\*:{*}:n/po\*sts:*`; got != want {
		t.Errorf("got pattern %s, want %s", got, want)
	}
}

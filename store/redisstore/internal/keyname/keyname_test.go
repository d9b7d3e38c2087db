package keyname_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/keyname"
)

// key returns the key of an op with these attributes in `per`.
func key(parts ...string) string {
	var b []byte
	for _, p := range parts {
		b = append(binary.AppendUvarint(b, uint64(len(p))), p...)
	}
	return string(b)
}

// TestKeyNames pins the names of keys: operators see them, and counters are found
// by them. When this test fails, all users lose all counters.
func TestKeyNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 70)
	for _, test := range []struct{ rule, key, together, want string }{
		{"posts-per-hour", key("ann"), "", "weir:{ann}:posts-per-hour:9b9cae472c9cec62"},
		{"posts-per-hour", "ann", "", "weir:{ann}:posts-per-hour:"},
		{"per-address", key("2001:db8::1"), "", "weir:{2001:db8::1}:per-address:"},
		{"two", key("ann", "10.0.0.1"), "", "weir:{ann,10.0.0.1}:two:"},
		{"global", "", "", "weir:{global}:global:"},
		{"", "", "", "weir:{6e340b9cffb37a98}::6e340b9cffb37a98"},
		{"posts", key("ann"), "acme", "weir:{acme}:posts:ann:"},
		{"a:b", key("{x} y%\n"), "", "weir:{%7Bx%7D%20y%25%0A}:a%3Ab:"},
		{"long", key(long), "", "weir:{" + long[:64] + "%E2%80%A6}:long:"},
	} {
		op := store.Op{Space: store.NewSpace("", test.rule, test.rule, 0), Key: []byte(test.key), Together: []byte(test.together)}
		got := string(keyname.Names{Prefix: "weir"}.Append(nil, &op))
		if !strings.HasPrefix(got, test.want) {
			t.Errorf("key %q of rule %q: got %s, want %s", test.key, test.rule, got, test.want)
		}
		if tag := string(keyname.Names{Prefix: "weir"}.AppendTag(nil, &op)); !strings.HasPrefix(got, "weir:{"+tag+"}:") {
			t.Errorf("key %q of rule %q: got the tag %s of %s", test.key, test.rule, tag, got)
		}
	}
}

// The keys of a namespace are other keys, in the same slots.
func TestKeyNamesInNamespaces(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ namespace, want string }{
		{"", "weir:{ann}:posts:4f94698d21c09dce"},
		{"acme", "weir:{ann}:acme/posts:"},
		{"a/b:c", "weir:{ann}:a/b%3Ac/posts:"},
	} {
		op := store.Op{Space: store.NewSpace(test.namespace, "posts", "posts", 0), Key: []byte(key("ann"))}
		if got := string(keyname.Names{Prefix: "weir"}.Append(nil, &op)); !strings.HasPrefix(got, test.want) {
			t.Errorf("namespace %q: got %s, want %s", test.namespace, got, test.want)
		}
	}
}

// Different counters have different keys, and those kept together have the same text in braces;
// nothing in a key ends or splits the braces.
func FuzzKeyNames(f *testing.F) {
	f.Add("rule", "ann", "rule", "bob", "")
	f.Add("a", "bc", "ab", "c", "acme")
	f.Add("", "", "", "\x00", "{}")
	f.Add("r", key("a", "b"), "r", key("a,b"), "t")
	f.Add("r", strings.Repeat("x", 100), "r", strings.Repeat("x", 101), "")
	f.Fuzz(func(t *testing.T, id1, key1, id2, key2, together string) {
		name := func(id, key string) string {
			op := store.Op{Space: store.NewSpace("", id, id, 0), Key: []byte(key), Together: []byte(together)}
			return string(keyname.Names{Prefix: "p"}.Append(nil, &op))
		}
		a, b := name(id1, key1), name(id2, key2)
		if same := id1 == id2 && key1 == key2; (a == b) != same {
			t.Errorf("%q of %q and %q of %q: got %s and %s, want the same: %v", key1, id1, key2, id2, a, b, same)
		}
		for _, name := range []string{a, b} {
			if strings.Count(name, "{") != 1 || strings.Count(name, "}") != 1 || strings.Contains(name, "{}") {
				t.Errorf("got %s, want one tag that is not empty", name)
			}
			if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
				t.Errorf("got %q, want plain text", name)
			}
		}
		tag := func(name string) string { return name[strings.Index(name, "{"):strings.Index(name, "}")] }
		if together != "" && tag(a) != tag(b) {
			t.Errorf("together by %q: got %s and %s, want the same text in braces", together, a, b)
		}
	})
}

// Two counters have the same keys exactly when namespace, rule and key are the same.
func FuzzNamespaceNames(f *testing.F) {
	f.Add("", "a/posts", "ann", "a", "posts", "ann")
	f.Add("a", "b/posts", "ann", "a/b", "posts", "ann")
	f.Add("a", "posts", "ann", "b", "posts", "ann")
	f.Add("a", "posts", "b", "ab", "posts", "")
	f.Add("", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01a", "", "a", "", "")
	f.Fuzz(func(t *testing.T, namespace1, id1, key1, namespace2, id2, key2 string) {
		name := func(namespace, id, key string) string {
			op := store.Op{Space: store.NewSpace(namespace, id, id, 0), Key: []byte(key)}
			return string(keyname.Names{Prefix: "weir"}.Append(nil, &op))
		}
		a, b := name(namespace1, id1, key1), name(namespace2, id2, key2)
		if same := namespace1 == namespace2 && id1 == id2 && key1 == key2; (a == b) != same {
			t.Errorf("%q %q %q and %q %q %q: got %s and %s", namespace1, id1, key1, namespace2, id2, key2, a, b)
		}
	})
}

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

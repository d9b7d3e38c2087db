package keyname_test

import (
	"testing"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/keyname"
)

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

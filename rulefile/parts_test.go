package rulefile_test

import (
	"bytes"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/weirhq/weir/rulefile"
)

// sameInParts fails t unless a file that can be read in parts of a few lines has the content that it has as a whole. It
// returns the number of parts.
func sameInParts(t testing.TB, src []byte, read func(string) ([]byte, error), lines int) int {
	t.Helper()
	got, parts := rulefile.ParseInParts("rules.yaml", src, read, lines)
	if parts == 0 {
		return 0
	}
	want, err := rulefile.Parse("rules.yaml", src, read)
	if err != nil {
		t.Fatalf("%q:\nread in %d parts, and as a whole it has a fault: %v", src, parts, err)
	}
	if got.Set.Len() != want.Set.Len() {
		t.Fatalf("%q:\ngot %d rules in parts, want %d", src, got.Set.Len(), want.Set.Len())
	}
	for i := range want.Set.Len() {
		if !reflect.DeepEqual(got.Set.Rule(i), want.Set.Rule(i)) {
			t.Fatalf("%q:\ngot %+v in parts, want %+v", src, got.Set.Rule(i), want.Set.Rule(i))
		}
	}
	if !reflect.DeepEqual(got.Lists, want.Lists) || got.Zone.String() != want.Zone.String() {
		t.Fatalf("%q:\ngot lists %v and zone %v, want %v and %v", src, got.Lists, got.Zone, want.Lists, want.Zone)
	}
	return parts
}

func TestPartsAreTheWhole(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, src string
		parts     int
	}{
		{"indented", "rules:\n  - name: a\n    limit: 1\n    window: 1h\n  - name: b\n    limit: 2\n    window: 1h\n", 2},
		{"at the edge", "# x\nrules: # y\n# z\n- name: a\n  limit: 1\n  window: 1h\n\n- {name: b, limit: 2, window: 1h}\n- {name: c, limit: 2, window: 1h}\ntimezone: Asia/Tokyo\n", 3},
		{"other keys around it", "outcomes:\n  slow: {allow: false}\nrules:\n  - name: a\n    limit: 1\n    window: 1h\n  - name: b\n    limit: 2\n    then: slow\n    window: 1h\n", 2},
		{"lists in items", "rules:\n  - name: a\n    per:\n    - x\n    - y\n    limit: 1\n    window: 1h\n  - name: b\n    per:\n      - z\n    limit: 2\n    window: 1h\n", 2},
		{"a text over lines", "rules:\n  - name: a\n    when: {x: \"1\n  - name: c\n  2\"}\n    limit: 1\n    window: 1h\n  - {name: b, limit: 2, window: 1h}\n", 0},
		{"twice", "rules:\n  - {name: a, limit: 1, window: 1h}\n  - {name: b, limit: 1, window: 1h}\nrules:\n  - {name: c, limit: 1, window: 1h}\n", 0},
		{"a fault in the last part", "rules:\n  - {name: a, limit: 1, window: 1h}\n  - {name: b, limit: 1, window: 1h}\n  - {name: c, limit: 1}\n", 0},
		{"a name twice", "rules:\n  - {name: a, limit: 1, window: 1h}\n  - {name: b, limit: 1, window: 1h}\n  - {name: a, limit: 1, window: 1h}\n", 0},
		{"a second document", "rules:\n  - {name: a, limit: 1, window: 1h}\n  - {name: b, limit: 1, window: 1h}\n---\nrules:\n", 0},
	} {
		if got := sameInParts(t, []byte(test.src), nil, 1); got != test.parts {
			t.Errorf("%s: got %d parts, want %d", test.name, got, test.parts)
		}
	}
}

// manyRules returns a rules file with n rules.
func manyRules(n int) []byte {
	var b bytes.Buffer
	b.WriteString("rules:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - name: rule-%d\n    when: {tenant: t%d}\n    per: [user]\n    limit: %d\n    window: 1h\n", i, i, i%100+1)
	}
	return b.Bytes()
}

// The faults and warnings of a long file have their places in it.
func TestLongFile(t *testing.T) {
	t.Parallel()
	src := manyRules(3000)
	file, err := rulefile.Parse("rules.yaml", append(src, "  - {name: last, per: [IP], limit: 1, window: 1h}\n"...), nil)
	if err != nil {
		t.Fatal(err)
	}
	if w := file.Warnings(); len(w) != 1 || w[0].Place.Line != 15002 {
		t.Errorf("got warnings %v, want one in line 15002", w)
	}
	_, err = rulefile.Parse("rules.yaml", append(src, "  - {name: last, limit: many, window: 1h}\n"...), nil)
	if err == nil || !strings.Contains(err.Error(), ":15002:") {
		t.Errorf("got %v, want a fault in line 15002", err)
	}
}

// A long file takes little more memory than its rules, though the YAML parser takes a hundred times the size of a
// text.
func TestLongFileTakesLittleMemory(t *testing.T) { // not parallel: it measures the heap
	src := manyRules(20_000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	file, err := rulefile.Parse("rules.yaml", src, nil)
	if err != nil || file.Set.Len() != 20_000 {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapSys-before.HeapSys) >> 20; grown > 120 {
		t.Errorf("the heap has grown by %d MiB for a file of %d MiB, want at most 120", grown, len(src)>>20)
	}
}

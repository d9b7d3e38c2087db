package koalafile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkLoad reads a rule file of 2,000 rules and two dicts of 1,000,000
// lines each: user ids in one, addresses in the other.
func BenchmarkLoad(b *testing.B) {
	path := large(b, b.TempDir(), 2000, 1_000_000)
	b.ReportAllocs()
	for b.Loop() {
		f, err := load(path)
		if err != nil {
			b.Fatal(err)
		}
		if f.Set.Len() != 2000 {
			b.Fatalf("got %d rules, want 2000", f.Set.Len())
		}
	}
}

// large writes a rule file with many rules, two dicts of lines each, and its
// path.
func large(t testing.TB, dir string, rules, lines int) string {
	t.Helper()
	write := func(name string, line func(i int) string, n int) {
		var s strings.Builder
		for i := range n {
			s.WriteString(line(i) + "\n")
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(s.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("users.dat", func(i int) string { return fmt.Sprint(200_000_000 + 7*i) }, lines)
	write("addresses.dat", func(i int) string {
		n := uint32(i) * 2654435761 // every address once, in no order
		return fmt.Sprintf("%d.%d.%d.%d", n>>24, n>>16&255, n>>8&255, n&255)
	}, lines)
	heads := []string{"[dicts]", "users : users.dat", "addresses : addresses.dat", "[rules]"}
	kinds := []string{
		"rule : [count] [act=post%[1]d;uid=+] [time=60; count=5;] [result=2; return=%[1]d]",
		"rule : [leak] [act=look%[1]d;ip=10.0.0.1-10.0.0.9,192.168.*.*] [time=100; count=10; erase1=2] [result=2; return=%[1]d]",
		"rule : [base] [act=ask%[1]d,answer%[1]d{~};uid>1000] [base=30; time=2; count=1;] [result=2; return=%[1]d]",
		"rule : [direct] [act=buy%[1]d;uid @ users] [time=1; count=0;] [result=2; return=%[1]d]",
		"rule : [direct] [act=sell%[1]d;ip !@ addresses] [time=1; count=0;] [result=2; return=%[1]d]",
	}
	write("koala_rule.conf", func(i int) string {
		switch {
		case i < len(heads):
			return heads[i]
		case i < len(heads)+rules:
			n := i - len(heads)
			return fmt.Sprintf(kinds[n%len(kinds)], n+1)
		case i == len(heads)+rules:
			return "[result]"
		}
		return `2 : {"Ret_type":2, "Err_no":10, "Str_reason":"Deny"}`
	}, len(heads)+rules+2)
	return filepath.Join(dir, "koala_rule.conf")
}

package envoyfile_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/envoyfile"
	"github.com/weirhq/weir/rulefile"
)

// randomFile returns a file of a few keys, values and patterns, and the descriptors
// that it may match. Patterns do not overlap.
func randomFile(r *rand.Rand) string {
	keys := []string{"user", "path", "tenant", "plan"}
	var b strings.Builder
	b.WriteString("domain: d\ndescriptors:\n")
	var level func(indent string, free []string)
	level = func(indent string, free []string) {
		seen := map[string]bool{}
		for range 1 + r.IntN(4) {
			i := r.IntN(len(free))
			value := []string{"", "a", "192.0.2.9", "/api/*", "*.org", "m*n"}[r.IntN(6)]
			if seen[free[i]+value] {
				continue
			}
			seen[free[i]+value] = true
			fmt.Fprintf(&b, "%s- key: %s\n", indent, free[i])
			if value != "" {
				fmt.Fprintf(&b, "%s  value: %q\n", indent, value)
			}
			if r.IntN(4) > 0 {
				fmt.Fprintf(&b, "%s  rate_limit: {unit: hour, requests_per_unit: %d}\n", indent, 1+r.IntN(9))
			}
			if rest := free[i+1:]; len(rest) > 0 && r.IntN(3) == 0 {
				fmt.Fprintf(&b, "%s  descriptors:\n", indent)
				level(indent+"    ", rest)
			}
		}
	}
	level("  ", keys)
	return b.String()
}

// Native rules match what the files match, for descriptors whose keys are in the
// order of the files.
func TestNativeAgrees(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	matched, checked := 0, 0
	for range 400 {
		text := randomFile(r)
		c, err := envoyfile.New([]envoyfile.Source{{Name: "f.yaml", Text: []byte(text)}}, envoyfile.Options{})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		native, _, err := c.Native("config")
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		file, err := rulefile.Parse("rules.yaml", native, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, native)
		}
		if w := file.Warnings(); len(w) > 0 && len(c.Limits()) > 0 {
			t.Fatalf("got warning %v\n%s\n%s", w[0], text, native)
		}
		for _, path := range paths(c, r) {
			found := c.Match("d", len(path), func(i int) (key, value string) { return path[i][0], path[i][1] })
			values := make([]string, file.Set.Compiled().Width())
			for _, e := range append(path, [2]string{"domain", "d"}) {
				if at, ok := file.Set.Compiled().Attribute(e[0]); ok {
					values[at] = e[1]
				}
			}
			var got []string
			for _, i := range file.Set.Compiled().Match(values, nil, false) {
				got = append(got, file.Set.Rule(i).Name)
			}
			want := ""
			if found.Limit != nil {
				want = found.Limit.Rule
			}
			if strings.Join(got, " ") != want {
				t.Fatalf("%v: got %v, want %q\n%s\n%s", path, got, want, text, native)
			}
			checked++
			if want != "" {
				matched++
			}
		}
	}
	if matched < checked/6 || matched > checked*9/10 {
		t.Errorf("got %d of %d descriptors with a limit, want some with and some without", matched, checked)
	}
}

// paths returns descriptors with the keys of limits, and with any values.
func paths(c *envoyfile.Config, r *rand.Rand) (all [][][2]string) {
	for _, l := range c.Limits() {
		for range 6 {
			var path [][2]string
			for _, part := range l.Path[1:] {
				key, _, _ := strings.Cut(part, "_")
				path = append(path, [2]string{key, []string{"a", "192.0.2.9", "c", "/api/x", "x.org", "mon", "mn"}[r.IntN(7)]})
			}
			all = append(all, path)
		}
	}
	return all
}

// example finds a file of envoyproxy/ratelimit in scripts and pages.
var example = regexp.MustCompile("(?s)\n(domain: .*?\n)(?:---|```|-- )")

// The rules of every example here pass weir check without a warning, except that a file
// without limits has no rules.
func TestNativeWithoutWarnings(t *testing.T) {
	t.Parallel()
	found := 0
	for _, pattern := range []string{"testdata/*.txt", "../envoyrls/testdata/files/*.txt", "../../../../cmd/weir/testdata/script/envoy.txt", "../../../../docs/guides/envoy.md"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: got %d files, %v", pattern, len(paths), err)
		}
		for _, path := range paths {
			src, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range example.FindAllStringSubmatch(string(src), -1) {
				text := m[1]
				c, err := envoyfile.New([]envoyfile.Source{{Name: "f.yaml", Text: []byte(text)}}, envoyfile.Options{})
				if err != nil {
					continue // an example of a fault
				}
				found++
				native, _, err := c.Native("config")
				if err != nil {
					t.Fatalf("%s: %v\n%s", path, err, text)
				}
				file, err := rulefile.Parse("rules.yaml", native, nil)
				if err != nil {
					t.Fatalf("%s: %v\n%s", path, err, native)
				}
				for _, w := range file.Warnings() {
					if w.Name != "no-rules" || file.Set.Len() > 0 {
						t.Errorf("%s: got warning %v\n%s\n%s", path, w, text, native)
					}
				}
			}
		}
	}
	if found < 15 {
		t.Errorf("got %d examples, want at least 15", found)
	}
}

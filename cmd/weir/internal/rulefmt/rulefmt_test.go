package rulefmt_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/rulefmt"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/rulefile"
)

// An odd file gets its usual form.
func TestFormat(t *testing.T) {
	t.Parallel()
	const odd = "\ufeff# Posts.\r\n\r\n\r\n" +
		"timezone:   Europe/Berlin   # summer time\r\n" +
		"rules:\r\n" +
		"# The first.\r\n" +
		"-   name:   posts\r\n" +
		"    when: { action : post,path: {prefix:  \"/a  b\" } }\r\n" +
		"    per:\r\n" +
		"    - user   \r\n" +
		"    -   ip\r\n" +
		"    limit: 5\r\n" +
		"    window:\r\n" +
		"          1h\r\n" +
		"    # The end of posts.\r\n" +
		"-\r\n" +
		"      name: pages\r\n" +
		"      per: [ page,\r\n" +
		"             user ]\r\n" +
		"      limit: 7\r\n" +
		"      window: {aligned:  1h}\r\n" +
		"# The end.\r\n\r\n"
	const want = `# Posts.

timezone: Europe/Berlin   # summer time
rules:
  # The first.
  - name: posts
    when: {action: post, path: {prefix: "/a  b"}}
    per:
      - user
      - ip
    limit: 5
    window:
      1h
    # The end of posts.
  -
    name: pages
    per: [page,
           user]
    limit: 7
    window: {aligned: 1h}
# The end.
`
	got, err := rulefmt.Format("f", []byte(odd))
	if err != nil || string(got) != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
}

// A value that would change is refused, with its place.
func TestFormatRefuses(t *testing.T) {
	t.Parallel()
	got, err := rulefmt.Format("f", []byte("a: 1\nb: |\n  x\n     \n  y\n"))
	if err == nil || !strings.HasPrefix(err.Error(), "f:2:") {
		t.Errorf("got %q, %v, want the place of the text", got, err)
	}
}

// Formatting keeps the rules, whatever the white space of a file was, and a formatted file stays as
// it is.
func TestFormatKeepsRules(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../../examples/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("got %d files, %v", len(files), err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, name := range files {
		if strings.HasSuffix(name, "_test.yaml") {
			continue // no rules
		}
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		rules := rulesOf(t, name, src)
		if got, err := rulefmt.Format("f", src); err != nil || !bytes.Equal(got, src) {
			t.Errorf("%s: got %v, want it unchanged\n%s", name, err, got)
		}
		for range 20 {
			text := mangled(random, string(src))
			if !reflect.DeepEqual(rulesOf(t, name, []byte(text)), rules) {
				t.Fatalf("%s: the test has changed the rules:\n%s", name, text)
			}
			got, err := rulefmt.Format("f", []byte(text))
			if err != nil || !reflect.DeepEqual(rulesOf(t, name, got), rules) {
				t.Fatalf("%s: got %v\n%s\nof\n%s", name, err, got, text)
			}
			if bare(string(got)) != bare(string(src)) {
				t.Fatalf("%s: got other text\n%s\nof\n%s", name, got, text)
			}
			if again, err := rulefmt.Format("f", got); err != nil || !bytes.Equal(again, got) {
				t.Fatalf("%s: got %v\n%s\nof the formatted\n%s", name, err, again, got)
			}
		}
	}
}

// bare returns a text without white space.
func bare(text string) string { return strings.Join(strings.Fields(text), "") }

// mangled returns a formatted text with other white space.
func mangled(random *rand.Rand, text string) string {
	width := 2 + random.IntN(5)
	var b strings.Builder
	for line := range strings.Lines(text) {
		rest := strings.TrimLeft(line, " ")
		b.WriteString(strings.Repeat(" ", (len(line)-len(rest))/2*width))
		if after, ok := strings.CutPrefix(rest, "- "); ok {
			b.WriteString("-" + strings.Repeat(" ", width-1))
			rest = after
		}
		if !strings.ContainsAny(rest, `"'#`) {
			for _, c := range []string{"{", "}", ", ", ": "} {
				if random.IntN(3) == 0 && strings.Contains(rest, "{") {
					rest = strings.ReplaceAll(rest, c, " "+strings.TrimSpace(c)+"  ")
				}
			}
		}
		rest = strings.TrimRight(rest, " \n")
		b.WriteString(rest + strings.Repeat(" ", random.IntN(3)) + "\n")
		if random.IntN(9) == 0 {
			b.WriteString("\n\n")
		}
	}
	return b.String()
}

func rulesOf(t testing.TB, name string, src []byte) (all []rule.Rule) {
	t.Helper()
	f, err := rulefile.Parse(name, src, func(path string) ([]byte, error) { return os.ReadFile(filepath.Join(filepath.Dir(name), path)) })
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	for i := range f.Set.Len() {
		all = append(all, *f.Set.Rule(i))
	}
	return all
}

// FuzzFormat formats any rules file without changing its rules.
func FuzzFormat(f *testing.F) {
	files, _ := filepath.Glob("../../../../examples/*.yaml")
	for _, name := range files {
		if src, err := os.ReadFile(name); err == nil {
			f.Add(string(src))
		}
	}
	for _, text := range []string{
		"rules:\n- {name: a, then: deny}\n", "rules: [{name: a,\n then: deny\n }]", "outcomes:\n  a:\n    body: |\n      x\n        y\n\n     # no comment\nrules: []\n",
		"rules:\n  -   name: >-\n        a\n      then: deny\n", "rules:\n  - name: \"a\n\n     b\"\n    then:\n     deny\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		none := func(string) ([]byte, error) { return []byte("a\n"), nil }
		before, err := rulefile.Parse("f", []byte(text), none)
		if err != nil {
			return
		}
		got, err := rulefmt.Format("f", []byte(text))
		if err != nil {
			return
		}
		after, err := rulefile.Parse("f", got, none)
		if err != nil || after.Set.Len() != before.Set.Len() {
			t.Fatalf("%q became %q: %v", text, got, err)
		}
		for i := range before.Set.Len() {
			if !reflect.DeepEqual(before.Set.Rule(i), after.Set.Rule(i)) {
				t.Fatalf("%q became %q: rule %d differs", text, got, i)
			}
		}
		if again, err := rulefmt.Format("f", got); err != nil || !bytes.Equal(again, got) {
			t.Fatalf("%q became %q and then %q, %v", text, got, again, err)
		}
	})
}

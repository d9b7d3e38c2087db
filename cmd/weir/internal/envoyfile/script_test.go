package envoyfile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/envoyfile"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/datatest"
)

// TestScripts runs scripts of files:
//
//	file name=NAME [escaped]    gives a file its text
//	load [merge]                reads all files, and prints their limits and warnings
//	match domain=NAME           finds the limit of a descriptor in each line: key=value key=value
//	dump                        writes the limits as that service's debug endpoint does
//	native                      writes weir's own rules, and what they mean otherwise
func TestScripts(t *testing.T) {
	t.Parallel()
	datatest.Walk(t, "testdata/*.txt", func(t *testing.T, path string) {
		var sources []envoyfile.Source
		var c *envoyfile.Config
		datatest.RunTest(t, path, func(t *testing.T, d *datatest.TestData) string {
			switch d.Cmd {
			case "file":
				sources = append(sources, envoyfile.Source{Name: d.Arg("name"), Text: []byte(d.Text())})
				return ""
			case "load":
				var err error
				c, err = envoyfile.New(sources, envoyfile.Options{MergeDomains: d.HasArg("merge")})
				sources = nil
				if err != nil {
					return datatest.Refusal(err)
				}
				return describe(c)
			case "match":
				return match(c, d.Arg("domain"), d.Input)
			case "dump":
				return c.Dump()
			case "native":
				text, differs, err := c.Native("config")
				if err != nil {
					return err.Error() + "\n"
				}
				return string(text) + "\n" + list(differs)
			}
			d.Fatalf(t, "unknown command")
			return ""
		})
	})
}

func describe(c *envoyfile.Config) string {
	var b strings.Builder
	for _, l := range c.Limits() {
		fmt.Fprintf(&b, "%s: %d per %v", l.Rule, l.Requests, l.Unit)
		if l.Shadow {
			b.WriteString(", shadow")
		}
		if l.Quota {
			b.WriteString(", quota")
		}
		if len(l.Replaces) > 0 {
			fmt.Fprintf(&b, ", replaces %s", strings.Join(l.Replaces, " "))
		}
		if l.Metadata != nil {
			fmt.Fprintf(&b, ", metadata %v", l.Metadata)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%d limits\n", len(c.Limits()))
	return b.String() + list(c.Warnings)
}

func list(faults fault.List) string {
	var b strings.Builder
	for _, f := range faults {
		fmt.Fprintf(&b, "warning: %s\n", f.Summary())
	}
	return b.String()
}

func match(c *envoyfile.Config, domain, input string) string {
	var b strings.Builder
	for line := range strings.Lines(input) {
		words := strings.Fields(line)
		f := c.Match(domain, len(words), func(i int) (key, value string) {
			key, value, _ = strings.Cut(words[i], "=")
			return key, value
		})
		switch l := f.Limit; {
		case !f.Domain:
			b.WriteString("unknown domain")
		case l == nil:
			b.WriteString("no limit")
		case l.Unlimited:
			b.WriteString("unlimited")
		case l.Rule == "":
			b.WriteString("a descriptor without a limit")
		default:
			b.WriteString(l.Rule)
		}
		if f.Patterns != nil {
			fmt.Fprintf(&b, ", shared by %q", f.Patterns)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// FuzzNew reads any text: it is a configuration or has faults with a place, and
// never more than a bounded number.
func FuzzNew(f *testing.F) {
	for _, text := range []string{
		"domain: d\n",
		"domain: d\ndescriptors:\n- key: a\n  value: b*\n  share_threshold: true\n  rate_limit: &r {unit: hour, requests_per_unit: 3, name: n, replaces: [{name: m}]}\n  metadata: {a: [1, {b: ~}]}\n- key: c\n  rate_limit: *r\n",
		"domain: d\ndescriptors:\n- {<<: {key: a}, descriptors: [{key: b, rate_limit: {unlimited: true}}]}\n",
		"a: &a [*a]\n", "a: &a [1]\nb: &b [*a,*a]\nc: [*b,*b]\n", "- - - -", "domain: {", "\t", "domain: d\x00",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := envoyfile.New([]envoyfile.Source{{Name: "f.yaml", Text: []byte(text)}}, envoyfile.Options{})
		if err != nil {
			faults := fault.Of(err)
			if len(faults) == 0 || len(faults) > 200 {
				t.Fatalf("got %d faults: %v", len(faults), err)
			}
			return
		}
		for _, l := range c.Limits() {
			entries := len(l.Path) - 1
			c.Match(l.Path[0], entries, func(i int) (key, value string) { return l.Path[i+1], "x" })
			if i, ok := c.Set.Find(l.Rule); !ok || c.Set.Rule(i).Quota.Value != int64(l.Requests) {
				t.Fatalf("got no rule %q", l.Rule)
			}
		}
		if _, _, err := c.Native("config"); err != nil {
			t.Fatalf("%q: native: %v", text, err)
		}
	})
}

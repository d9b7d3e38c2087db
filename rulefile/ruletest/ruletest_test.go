package ruletest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/datatest"
	"github.com/weirhq/weir/rulefile"
	"github.com/weirhq/weir/rulefile/ruletest"
)

// TestRun runs a test file as users do.
func TestRun(t *testing.T) {
	t.Parallel()
	ruletest.Run(t, "testdata/posts_test.yaml", "testdata/calendar_test.yaml")
}

// TestScripts runs testdata/scripts. `rules` is a rules file, and `tests` a test
// file for it, whose faults or failures it shows.
func TestScripts(t *testing.T) {
	t.Parallel()
	datatest.Walk(t, "testdata/scripts/*.txt", func(t *testing.T, path string) {
		var rules *rulefile.File
		datatest.RunTest(t, path, func(t *testing.T, d *datatest.TestData) string {
			switch d.Cmd {
			case "rules":
				file, err := rulefile.Parse("rules.yaml", []byte(d.Input+"\n"), nil)
				if err != nil {
					return err.Error()
				}
				rules = file
				return fmt.Sprintf("%d rules", file.Set.Len())
			case "tests":
				return outcome(t, d.Input+"\n", rules)
			}
			d.Fatalf(t, "unknown command %q", d.Cmd)
			return ""
		})
	})
}

func outcome(t *testing.T, src string, rules *rulefile.File) string {
	t.Helper()
	tests, err := rulefile.ParseTests("rules_test.yaml", []byte(src), func(string) (*rulefile.File, error) { return rules, nil })
	if err != nil {
		return err.Error() + "\n"
	}
	var b strings.Builder
	err = ruletest.Test(t.Context(), tests, func(c *ruletest.Case) {
		if len(c.Failures) == 0 {
			fmt.Fprintf(&b, "ok %s: %d requests in %v\n", c.Name, c.Requests, c.Covers)
		}
		for _, f := range c.Failures {
			fmt.Fprintln(&b, f)
		}
	})
	if err != nil {
		t.Error(err)
	}
	return b.String()
}

func TestStopsWhenDone(t *testing.T) {
	t.Parallel()
	tests, err := ruletest.Load("testdata/posts_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := ruletest.Test(ctx, tests, func(*ruletest.Case) { t.Error("got a case, want none") }); err == nil {
		t.Error("got no error, want one")
	}
}

package rulefile

import (
	"strings"

	"github.com/weirhq/weir/rulefile/internal/testfile"
)

// ParseTests reads src as a test file, for package ruletest, which runs it: requests
// at stated times, and the expected decisions of a rules file. name is the path of the
// test file. ParseTests calls load, such as [Load], with the path of the rules file.
// docs/guides/testing-rules.md describes the format.
//
// The error is a [fault.List] with the faults of the test file, or the error of
// load.
func ParseTests(name string, src []byte, load func(path string) (*File, error)) (*testfile.File, error) {
	p := pass{name: name, smallest: smallestTest}
	root := p.source(src)
	if root == nil {
		return nil, p.faults.Err()
	}
	if rules := root.get("rules"); rules != nil && rules.kind == aList {
		p.fault(root, "the file is a rules file, want a test file: weir check checks rules files")
		return nil, p.faults.Err()
	}
	t := testPass{pass: &p}
	f := p.fields(root, []string{"rules", "cases"})
	if f == nil {
		return nil, p.faults.Err()
	}
	if path := t.rulesPath(root, f["rules"]); path != "" {
		file, err := load(path)
		if err != nil {
			return nil, err
		}
		t.tests.Rules, t.zone = file.Set, file.Zone
		t.cases(root, f["cases"])
	}
	if len(p.faults) > 0 {
		p.faults.Sort(name)
		return nil, p.faults.Err()
	}
	return &t.tests, nil
}

// smallestTest is the example of a case in faults.
const smallestTest = `cases:, and under it "- {name: posts, steps: [{take: {user: 42}, expect: {allowed: true}}]}"`

// testSuffix is the suffix of the name of a test file: posts_test.yaml tests posts.yaml.
const testSuffix = "_test.yaml"

// rulesPath returns the path of the rules file.
func (t *testPass) rulesPath(root, n *node) string {
	if n != nil {
		if path := t.text(n); path != "" {
			return relativeTo(t.name, path)
		}
		return ""
	}
	if base, ok := strings.CutSuffix(t.name, testSuffix); ok {
		return base + ".yaml"
	}
	t.fault(root, "there is no rules: want the path of the rules file, or a test file called RULES%s", testSuffix)
	return ""
}

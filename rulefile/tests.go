package rulefile

import (
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rulefile/files"
)

//go:embed weir-test.schema.json
var testSchema []byte

// TestSchema returns the JSON Schema (draft-07) of test files. The caller owns the
// copy.
func TestSchema() []byte { return append([]byte(nil), testSchema...) }

// Tests is the content of a test file: requests at stated times, and the expected
// decisions of a rules file. Package ruletest runs it. docs/rules.md describes the
// format.
type Tests struct {
	Name  string // path of the test file, as the caller named it
	Rules *File  // the rules to test
	Path  string // path of the rules file
	Cases []TestCase
}

// TestCase is a list of steps. Each case starts with empty counters.
type TestCase struct {
	Name  string
	Start time.Time // in the zone of the case
	Steps []TestStep
	Place fault.Place
}

// TestStep is one request, or several equal ones.
type TestStep struct {
	Verb string    // take, check, record, refund, settle, cancel, renew or forget
	At   time.Time // of the first request

	// Attributes alternates names and values.
	Attributes []string

	Hits     int64         // 0 if the file sets none
	Feedback string        // in a refund
	Receipt  string        // the name of a take, in it and in a settle, cancel or renew
	Rule     string        // in a forget: the rule whose counter is dropped
	Repeat   int           // number of requests, at least 1
	Every    time.Duration // time between them

	Expect []TestField
	Place  fault.Place
}

// TestField is one expectation.
type TestField struct {
	// Key is the path of the field below expect, such as "allowed" or
	// "limits.posts.used".
	Key string

	// Want is the expected value as text: true or false, a name, a number, a
	// length of time as [time.Duration] prints it, "never", or a list of names
	// with blanks between them.
	Want string

	Place fault.Place
}

// LoadTests reads the test file at path, and the rules file that it names. If the
// test file can be read, any error is that of [ParseTests].
func LoadTests(path string) (*Tests, error) {
	src, err := files.Rules(path)
	if err != nil {
		return nil, fmt.Errorf("test file: %w", err)
	}
	return ParseTests(path, src, Load)
}

// ParseTests reads src as a test file. name is the path of the file. ParseTests
// calls load with the path of the rules file.
//
// The error is a [fault.List] with the faults of the test file, or the error of
// load.
func ParseTests(name string, src []byte, load func(path string) (*File, error)) (*Tests, error) {
	p := pass{name: name, smallest: smallestTest}
	root := p.source(src)
	if root == nil {
		return nil, p.faults.Err()
	}
	t := testPass{pass: &p, tests: Tests{Name: name}}
	f := p.fields(root, []string{"rules", "cases"})
	if f == nil {
		return nil, p.faults.Err()
	}
	if t.tests.Path = t.rulesPath(root, f["rules"]); t.tests.Path != "" {
		file, err := load(t.tests.Path)
		if err != nil {
			return nil, err
		}
		t.tests.Rules = file
		t.cases(root, f["cases"])
	}
	if len(p.faults) > 0 {
		p.faults.Sort(name)
		return nil, p.faults.Err()
	}
	return &t.tests, nil
}

// smallestTest is the case that faults show as an example.
const smallestTest = `cases:, and under it "- {name: posts, steps: [{take: {user: 42}, expect: {allowed: true}}]}"`

// testSuffix ends the name of the test file of a rules file: posts_test.yaml
// tests posts.yaml.
const testSuffix = "_test.yaml"

// rulesPath returns the path of the rules file.
func (t *testPass) rulesPath(root, n *node) string {
	if n != nil {
		if path := t.text(n); path != "" {
			return files.Beside(t.name, path)
		}
		return ""
	}
	if base, ok := strings.CutSuffix(t.name, testSuffix); ok {
		return base + ".yaml"
	}
	t.fault(root, "there is no rules: want the path of the rules file, or a test file called RULES%s", testSuffix)
	return ""
}

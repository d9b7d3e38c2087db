package rulefile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rulefile"
)

// validate checks a rules file against the schema.
func validate(t *testing.T, src []byte) error {
	t.Helper()
	return validateBy(t, rulesSchema, src)
}

// The program has the schemas of rules files and of test files.
const (
	rulesSchema = "../cmd/weir/weir.schema.json"
	testsSchema = "../cmd/weir/weir-test.schema.json"
)

func validateBy(t *testing.T, by string, src []byte) error {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(by)
	if err != nil {
		t.Fatal(err)
	}
	var content any
	if err := yaml.Unmarshal(src, &content); err != nil {
		return err
	}
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(value)
}

func TestSchemaAcceptsWhatParses(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("got files %v, %v, want some", paths, err)
	}
	for _, path := range append(paths, "../cmd/weir/example.yaml") {
		if _, err := rulefile.Load(path); err != nil {
			t.Errorf("%s: got\n%v\nwant no fault", path, err)
		}
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(t, src); err != nil {
			t.Errorf("%s: got %v, want a valid file", path, err)
		}
	}
}

// TestSchemaRefusesWhatDoesNotParse checks the structure of files. Only the
// parser can find faults such as an outcome that is not defined.
func TestSchemaRefusesWhatDoesNotParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, src string }{
		{"no rules", "timezone: UTC"},
		{"rules is a table", "rules: {a: b}"},
		{"unknown key at the top", "rules: []\nrulez: []"},
		{"list without values", "lists: {a: {}}\nrules: []"},
		{"list with file and values", "lists: {a: {file: x, values: [y]}}\nrules: []"},
		{"list is a list", "lists: {a: [b]}\nrules: []"},
		{"status is text", "outcomes: {a: {status: teapot}}\nrules: []"},
		{"status out of range", "outcomes: {a: {status: 99}}\nrules: []"},
		{"unknown key in an outcome", "outcomes: {a: {code: 429}}\nrules: []"},
		{"rule is text", "rules: [posts]"},
		{"no name", "rules: [{limit: 5, window: 1h}]"},
		{"unknown key in a rule", inRule("limt: 5")},
		{"when is text", inRule("when: post")},
		{"trim is a list", inRule("when: {a: b}\n    trim: [a]")},
		{"empty value", inRule(`when: {user: ""}`)},
		{"null value", inRule("when: {user: }")},
		{"empty list of values", inRule("when: {user: []}")},
		{"unknown test", inRule("when: {user: {equals: x}}")},
		{"no test", inRule("when: {user: {}}")},
		{"number in quotes", inRule(`when: {score: {above: "5"}}`)},
		{"absent is false", inRule("when: {user: {absent: false}}")},
		{"in is a list", inRule("when: {user: {in: [a, b]}}")},
		{"empty per", inRule("per: []")},
		{"limit in quotes", inRule(`limit: "5"`)},
		{"limit is a fraction", inRule("limit: 5.5")},
		{"negative limit", inRule("limit: -1")},
		{"limit out of range", inRule("limit: 9007199254740992")},
		{"limit without by", inRule("limit: {free: 5}")},
		{"limit by nothing", inRule("limit: {by: plan}")},
		{"limit of an attribute without most", inRule("limit: {of: customer_limit, else: 5}")},
		{"limit of an attribute with a case", inRule("limit: {of: customer_limit, most: 10, free: 5}")},
		{"limit of an attribute of at most 0", inRule("limit: {of: customer_limit, most: 0}")},
		{"window without unit", inRule("limit: 5\n    window: 60")},
		{"window is a word", inRule("limit: 5\n    window: daily")},
		{"two kinds of window", inRule("limit: 5\n    window: {sliding: 1h, fixed: 1h}")},
		{"window without kind", inRule("limit: 5\n    window: {burst: 5}")},
		{"burst of a sliding window", inRule("limit: 5\n    window: {sliding: 1h, burst: 5}")},
		{"starts on no weekday", inRule("limit: 5\n    window: {calendar: week, starts: mon}")},
		{"after without window", inRule("limit: 5\n    window: 1h\n    after: {count: 5}")},
		{"limit and trigger", inRule("limit: 5\n    trigger: 5\n    window: 1h")},
		{"sum and distinct", inRule("limit: 5\n    sum: a\n    distinct: b\n    window: 1h")},
		{"trigger of 0", inRule("trigger: 0\n    window: 1h")},
		{"once is yes", inRule("trigger: 1\n    once: yes\n    window: 1h")},
		{"unknown mode", inRule("mode: dark")},
		{"unknown rest", inRule("then: deny\n    rest: end")},
		{"feedback is a number", inRule("limit: 5\n    window: 1h\n    feedback: 2")},
		{"no feedback", inRule("limit: 5\n    window: 1h\n    feedback: {}")},
		{"feedback without name", inRule("limit: 5\n    window: 1h\n    feedback: {\"\": 2}")},
		{"feedback of nothing", inRule("limit: 5\n    window: 1h\n    feedback: {solved: 0}")},
		{"feedback is a word", inRule("limit: 5\n    window: 1h\n    feedback: {solved: everything}")},
		{"hold without unit", inRule("limit: 5\n    window: 1h\n    hold: 300")},
		{"unknown unsettled", inRule("limit: 5\n    window: 1h\n    hold: 5m\n    unsettled: forget")},
		{"too many holds", inRule("limit: 5\n    window: 1h\n    hold: 5m\n    max_holds: 10001")},
		{"ban without for", inRule("limit: 5\n    window: 1h\n    ban: {factor: 2}")},
		{"ban by a fraction", inRule("limit: 5\n    window: 1h\n    ban: {for: 1m, factor: 1.5}")},
		{"unknown key in ban", inRule("limit: 5\n    window: 1h\n    ban: {for: 1m, max: 1d}")},
		{"ever is a table", inRule("limit: 5\n    window: {ever: true}")},
		{"held and sliding", inRule("limit: 5\n    window: {held: 30s, sliding: 1h}")},
		{"allow is text", "outcomes: {a: {allow: sometimes}}\nrules: []"},
		{"unknown on_outage", inRule("on_outage: fail")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var faults fault.List
			if _, err := rulefile.Parse("rules.yaml", []byte(c.src), nil); !errors.As(err, &faults) {
				t.Errorf("parser: got %v, want faults", err)
			}
			if validate(t, []byte(c.src)) == nil {
				t.Error("schema: got a valid file, want it refused")
			}
		})
	}
}

func inRule(lines string) string {
	return "rules:\n  - name: a\n    " + lines + "\n"
}

// TestSchemaNamesTheParsersKeys compares the keys of each table in the schema and the parser.
func TestSchemaNamesTheParsersKeys(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile(rulesSchema)
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(src, &doc); err != nil {
		t.Fatal(err)
	}
	for place, want := range rulefile.Keys() {
		got := map[string]bool{}
		properties(at(doc, strings.Split(place, "/")), got)
		names := make([]string, 0, len(got))
		for name := range got {
			names = append(names, name)
		}
		slices.Sort(names)
		want = slices.Clone(want)
		slices.Sort(want)
		if !slices.Equal(names, want) {
			t.Errorf("schema at %q: got keys %v, want the parser's %v", place, names, want)
		}
	}
}

// TestSchemaNamesWarnings compares the warnings that a key ignore can have in the schema and in
// the parser.
func TestSchemaNamesWarnings(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile(rulesSchema)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Definitions struct {
			Warning struct {
				Enum []string `json:"enum"`
			} `json:"warning"`
		} `json:"definitions"`
	}
	if err := json.Unmarshal(src, &doc); err != nil {
		t.Fatal(err)
	}
	want := slices.Sorted(maps.Keys(rulefile.WarningTexts()))
	if got := slices.Sorted(slices.Values(doc.Definitions.Warning.Enum)); !slices.Equal(got, want) {
		t.Errorf("got warnings %v in the schema, want %v", got, want)
	}
}

// at returns the part of a schema that a path leads to.
func at(doc any, path []string) any {
	for _, step := range path {
		if table, ok := doc.(map[string]any); ok && step != "" {
			doc = table[step]
		}
	}
	return doc
}

// properties collects the keys that a schema gives a table in any of its forms.
func properties(schema any, to map[string]bool) {
	table, _ := schema.(map[string]any)
	keys, _ := table["properties"].(map[string]any)
	for key := range keys {
		to[key] = true
	}
	forms, _ := table["oneOf"].([]any)
	for _, form := range forms {
		properties(form, to)
	}
}

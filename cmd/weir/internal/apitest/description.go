// Package apitest checks calls over HTTP, and their answers, against the description in
// api/openapi.yaml. Only tests import it.
package apitest

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weirhq/weir/api"
)

// A Description is the OpenAPI document, and the set of its parts that a test has seen. Its schemas
// are stricter than those of the document: an answer may have no member that the document does not
// describe, and must satisfy the constraints. Make one with [Load]. It
// is safe for concurrent use.
type Description struct {
	*document

	mu   sync.Mutex
	seen map[string]bool // pointers to responses and examples; guarded by mu
}

// document is the OpenAPI document.
type document struct {
	root  map[string]any
	paths []string // in the order of the document

	compiling sync.Mutex
	compiler  *jsonschema.Compiler          // guarded by compiling
	schemas   map[string]*jsonschema.Schema // by pointer; guarded by compiling
}

// resource is the URL of the document for references.
const resource = "openapi.json"

// served is the document that the service serves, read once for all tests.
var served = sync.OnceValues(func() (*document, error) { return parse(api.OpenAPI()) })

// Load returns the description that the service serves, with nothing seen yet.
func Load(t testing.TB) *Description {
	t.Helper()
	doc, err := served()
	if err != nil {
		t.Fatalf("api/openapi.yaml: %v", err)
	}
	return &Description{document: doc, seen: map[string]bool{}}
}

func parse(text string) (*document, error) {
	root, err := decode(text)
	if err != nil {
		return nil, err
	}
	d := &document{root: root, compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	var ordered struct{ Paths yaml.MapSlice }
	if err := yaml.Unmarshal([]byte(text), &ordered); err != nil {
		return nil, err
	}
	for _, item := range ordered.Paths {
		d.paths = append(d.paths, item.Key.(string))
	}
	strict, err := decode(text)
	if err != nil {
		return nil, err
	}
	if err := tighten(strict); err != nil {
		return nil, err
	}
	d.compiler.AssertFormat()
	return d, d.compiler.AddResource(resource, strict)
}

// Rules returns the rules of the examples, which are in the text of the document.
func (d *document) Rules() string {
	text, _ := d.at("/info/description")
	_, rules, _ := strings.Cut(text.(string), "```yaml\n")
	rules, _, _ = strings.Cut(rules, "```")
	return rules
}

// decode decodes YAML in the form of package jsonschema, in which numbers are texts.
func decode(text string) (map[string]any, error) {
	var content any
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		return nil, err
	}
	asJSON, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		return nil, err
	}
	return value.(map[string]any), nil
}

// at returns the value at a pointer such as /components/schemas/Decision, and the
// pointer to what it refers to. The value is nil if there is none.
func (d *document) at(pointer string) (value any, real string) {
	value = d.root
	for _, token := range strings.Split(pointer, "/")[1:] {
		token = unescape.Replace(token)
		switch v := value.(type) {
		case map[string]any:
			value = v[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i >= len(v) {
				return nil, pointer
			}
			value = v[i]
		default:
			return nil, pointer
		}
	}
	if object, ok := value.(map[string]any); ok {
		if ref, ok := object["$ref"].(string); ok {
			return d.at(strings.TrimPrefix(ref, "#"))
		}
	}
	return value, pointer
}

// object returns the object at a pointer, or nil.
func (d *document) object(pointer string) (object map[string]any, real string) {
	value, real := d.at(pointer)
	object, _ = value.(map[string]any)
	return object, real
}

var (
	escape   = strings.NewReplacer("~", "~0", "/", "~1")
	unescape = strings.NewReplacer("~1", "/", "~0", "~")
)

// schema returns the schema at a pointer.
func (d *document) schema(t testing.TB, pointer string) *jsonschema.Schema {
	t.Helper()
	d.compiling.Lock()
	defer d.compiling.Unlock()
	s := d.schemas[pointer]
	if s == nil {
		var err error
		if s, err = d.compiler.Compile(resource + "#" + fragment.Replace(pointer)); err != nil {
			t.Fatalf("api/openapi.yaml: %v", err)
		}
		d.schemas[pointer] = s
	}
	return s
}

// fragment escapes characters that a pointer of the document may have and a URL may not.
var fragment = strings.NewReplacer("{", "%7B", "}", "%7D", "+", "%2B")

func (d *Description) mark(pointer string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen[pointer] = true
}

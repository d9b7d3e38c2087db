package apitest_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weirhq/weir/api"
	"github.com/weirhq/weir/cmd/weir/internal/apitest"
)

// The URLs of the schema for documents of OpenAPI 3.1, and of the one for the
// schemas in them.
const (
	metaSchema  = "https://spec.openapis.org/oas/3.1/schema/2022-10-07"
	jsonDialect = "https://json-schema.org/draft/2020-12/schema"
)

// compile returns the schema for documents. Its dynamic reference is bound to the
// dialect of JSON Schema, so that the schemas in a document are validated, too.
func compile(t *testing.T) *jsonschema.Schema {
	t.Helper()
	file, err := os.Open("testdata/openapi-3.1.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	meta, err := jsonschema.UnmarshalJSON(file)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(metaSchema, meta); err != nil {
		t.Fatal(err)
	}
	bound := map[string]any{
		"$ref": metaSchema,
		"$defs": map[string]any{"schema": map[string]any{
			"$dynamicAnchor": "meta", "$ref": jsonDialect,
		}},
	}
	if err := c.AddResource("bound.json", bound); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("bound.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// TestOpenAPIIsValid validates the description with the official schema, and shows
// that the schema finds faults.
func TestOpenAPIIsValid(t *testing.T) {
	t.Parallel()
	schema := compile(t)
	if err := schema.Validate(apitest.Document(t)); err != nil {
		t.Errorf("api/openapi.yaml: %v", err)
	}
	for name, spoil := range map[string]func(doc map[string]any){
		"a path without a slash":      func(doc map[string]any) { doc["paths"].(map[string]any)["v1"] = map[string]any{} },
		"an unknown member":           func(doc map[string]any) { doc["sever"] = "x" },
		"a schema of no known type":   func(doc map[string]any) { schemas(doc)["Hits"].(map[string]any)["type"] = "hits" },
		"a minimum that is no number": func(doc map[string]any) { schemas(doc)["Hits"].(map[string]any)["minimum"] = "0" },
	} {
		doc := apitest.Document(t)
		spoil(doc)
		if err := schema.Validate(doc); err == nil {
			t.Errorf("%s: got no fault", name)
		}
	}
}

func schemas(doc map[string]any) map[string]any {
	return doc["components"].(map[string]any)["schemas"].(map[string]any)
}

// TestOpenAPIRefersToAll follows each reference, and fails for a component to which
// nothing refers.
func TestOpenAPIRefersToAll(t *testing.T) {
	t.Parallel()
	refers := map[string]bool{}
	for _, m := range regexp.MustCompile(`\$ref: "(#/components/[^"]+)"`).FindAllStringSubmatch(api.OpenAPI(), -1) {
		refers[m[1]] = true
	}
	var doc struct {
		Components map[string]map[string]any
	}
	if err := yaml.Unmarshal([]byte(api.OpenAPI()), &doc); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for kind, parts := range doc.Components {
		for name := range parts {
			pointer := "#/components/" + kind + "/" + name
			known[pointer] = true
			if kind != "securitySchemes" && !refers[pointer] {
				t.Errorf("nothing refers to %s", pointer)
			}
		}
	}
	for pointer := range refers {
		if !known[pointer] {
			t.Errorf("a reference to %s, which does not exist", pointer)
		}
	}
	if strings.Count(api.OpenAPI(), "operationId: ") < 20 {
		t.Error("got fewer than 20 operations")
	}
}

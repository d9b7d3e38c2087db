package apitest

import (
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// constraints are constraints between the members of an object. The document states them
// in words, because many generators and linters do not read such schemas.
var constraints = map[string]string{
	"Decision": `{
		"dependentRequired": {"degraded": ["degraded_reason"], "degraded_reason": ["degraded"]},
		"if": {"properties": {"allowed": {"const": false}}},
		"then": {"required": ["retry_after"], "properties": {"receipt": false}},
		"else": {"properties": {"retry_after": false, "retry_rule": false}}}`,
	"Numbers": `{
		"if": {"required": ["kind"], "properties": {"kind": {"const": "counter"}}},
		"then": {"properties": {"quota": false, "remaining": false, "retry_after": false}},
		"else": {"required": ["quota", "remaining"]}}`,
	"KeyUsage": `{
		"if": {"required": ["kind"], "properties": {"kind": {"const": "counter"}}},
		"then": {"required": ["series"]}, "else": {"properties": {"series": false}}}`,
	"Denial": `{
		"if": {"properties": {"reason": {"enum": ["limit", "ban", "holds"]}}},
		"then": {"required": ["key", "hits", "used", "quota"], "properties": {"degraded_reason": false}},
		"else": {"properties": {"key": false, "hits": false, "used": false, "quota": false}}}`,
	"Reason": `{"enum": ["late", "refused", "circuit-open", "busy", "full", "foreign", "loading", "moving", "read-only", "closed", "unconfirmed", "unknown"]}`,
}

// tighten adds the constraints to the schemas of a document, and closes its objects to
// members that it does not describe.
func tighten(root map[string]any) error {
	bases := map[string]bool{}
	findBases(root, bases)
	closeObjects(root, bases, "", false)
	schemas := root["components"].(map[string]any)["schemas"].(map[string]any)
	for name, text := range constraints {
		constraint, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			return fmt.Errorf("constraint of %s: %w", name, err)
		}
		schema, ok := schemas[name].(map[string]any)
		if !ok {
			return fmt.Errorf("constraint of %s: no such schema", name)
		}
		all, _ := schema["allOf"].([]any)
		schema["allOf"] = append(all, constraint)
	}
	return nil
}

// findBases collects the pointers of the schemas that others extend with allOf.
// They stay open: the schema that extends one is closed instead.
func findBases(value any, bases map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		if all, ok := v["allOf"].([]any); ok {
			for _, part := range all {
				if ref, ok := part.(map[string]any)["$ref"].(string); ok {
					bases[strings.TrimPrefix(ref, "#")] = true
				}
			}
		}
		for _, member := range v {
			findBases(member, bases)
		}
	case []any:
		for _, element := range v {
			findBases(element, bases)
		}
	}
}

// closeObjects closes the schemas of objects in value, which is at a pointer.
// part reports whether value is an element of allOf.
func closeObjects(value any, bases map[string]bool, pointer string, part bool) {
	switch v := value.(type) {
	case map[string]any:
		_, properties := v["properties"].(map[string]any)
		_, all := v["allOf"].([]any)
		_, decided := v["additionalProperties"]
		if (properties || all) && !decided && !part && !bases[pointer] {
			v["unevaluatedProperties"] = false
		}
		for name, member := range v {
			if name != "example" && name != "examples" {
				closeObjects(member, bases, pointer+"/"+escape.Replace(name), false)
			}
		}
	case []any:
		for i, element := range v {
			closeObjects(element, bases, fmt.Sprintf("%s/%d", pointer, i), strings.HasSuffix(pointer, "/allOf"))
		}
	}
}

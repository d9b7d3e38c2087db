// Package rulefile reads rules files, YAML in, a [rule.Set] out, and writes them.
//
// A file is read strictly. Every fault in it, and in the list files that it
// names, is reported at once, each with its place, its source line and what
// was expected there; see [fault.List]. docs/rules.md is the manual of the format,
// [Schema] describes it to editors, and [Example] is a file to start from.
package rulefile

import (
	_ "embed"
	// Time zones are compiled in: a machine without its own reads the same file.
	_ "time/tzdata"
)

//go:embed weir.schema.json
var schema []byte

// Schema is the JSON Schema (draft-07) of rules files. The caller owns the copy.
func Schema() []byte { return append([]byte(nil), schema...) }

//go:embed example.yaml
var example []byte

// Example is a commented rules file to start from. The caller owns the copy.
func Example() []byte { return append([]byte(nil), example...) }

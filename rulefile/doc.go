// Package rulefile reads rules files, which are YAML, into a [rule.Set].
//
//	file, err := rulefile.Load("rules.yaml")
//	if err != nil {
//		return err // names every fault, with its line
//	}
//	e, err := weir.NewEngine(file.Set)
//
// [Load] reads from disk and [Parse] from memory. Reading is strict. It reports all
// faults in a rules file and in its list files together, each with its place, the
// source line and what was expected; see [fault.List]. A list file holds the entries
// of a list that rules test against, one a line.
//
// docs/rules.md is the manual of the format. [Schema] describes the format to
// editors.
package rulefile

import (
	_ "embed"
	// The time zone database is compiled in, so that a machine without one reads
	// the same rules.
	_ "time/tzdata"
)

//go:embed weir.schema.json
var schema []byte

// Schema returns the JSON Schema (draft-07) of rules files. The caller owns the
// copy.
func Schema() []byte { return append([]byte(nil), schema...) }

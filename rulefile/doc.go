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
// docs/reference/rules.md is the manual of the format. cmd/weir/weir.schema.json describes it to
// editors; the command weir schema prints that file.
package rulefile

// The time zone database is compiled in, so that a machine without one reads the
// same rules.
import _ "time/tzdata" // zones

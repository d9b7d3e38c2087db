package koala

import "github.com/weirhq/weir/fault"

// Fault is one thing that is wrong in a file of koala's, or, among
// [File.Warnings], one that weir takes otherwise than koala did.
type Fault = fault.Fault

// Faults is everything that is wrong, in the order of the file; faults in dict
// files come after those in the rule file. It is never empty as an error, and
// stops at a thousand.
type Faults = fault.Faults

// maxWarnings is where the reading of a hopeless file stops to note more.
const maxWarnings = 10_000

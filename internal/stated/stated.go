// Package stated has what the parts of weir share about limits that callers state in their calls. No rule bounds how
// many keys such limits have.
package stated

import (
	"strings"
	"time"
)

// Most is the longest that a key may be in use: nothing else frees the memory of a caller's keys.
const Most = 366 * 24 * time.Hour

// The names of the spaces of these counters.
const (
	Command    = "CL.THROTTLE"
	Descriptor = "envoy-override" // what the names begin with
)

// Named reports whether name is that of such a space.
func Named(name string) bool { return name == Command || strings.HasPrefix(name, Descriptor) }

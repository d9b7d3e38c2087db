package headers

import (
	"fmt"
	"slices"
	"strings"
)

// Dialect is a way to write limits as header fields. The zero value is [Draft].
type Dialect uint8

const (
	Draft       Dialect = iota // RateLimit-Policy and RateLimit of draft-ietf-httpapi-ratelimit-headers-10
	Draft03                    // RateLimit-Limit, -Remaining and -Reset of the third draft
	Legacy                     // X-RateLimit-Limit, -Remaining and -Reset in seconds from now
	LegacyEpoch                // as Legacy, with X-RateLimit-Reset as a Unix time in seconds
	RetryAfter                 // Retry-After alone
	None                       // no header fields
)

var dialects = []string{"draft", "draft-03", "legacy", "legacy-epoch", "retry-after", "none"}

// Dialects returns the names of all dialects, in the order of the constants.
func Dialects() []string { return slices.Clone(dialects) }

// String returns the dialect's name.
func (d Dialect) String() string {
	if int(d) < len(dialects) {
		return dialects[d]
	}
	return fmt.Sprintf("dialect(%d)", uint8(d))
}

// ParseDialect returns the dialect with a name.
func ParseDialect(name string) (Dialect, error) {
	at := slices.Index(dialects, name)
	if at < 0 {
		return 0, fmt.Errorf("headers: dialect %q: want %s", name, strings.Join(dialects, ", "))
	}
	return Dialect(at), nil
}

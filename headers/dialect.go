package headers

// Dialect is a way to write limits as header fields. The zero value is [Draft]. A dialect
// that is not in the list writes no fields.
type Dialect string

const (
	Draft       Dialect = "draft"        // RateLimit-Policy and RateLimit of draft-ietf-httpapi-ratelimit-headers-10
	Draft03     Dialect = "draft-03"     // RateLimit-Limit, -Remaining and -Reset of the third draft
	Legacy      Dialect = "legacy"       // X-RateLimit-Limit, -Remaining and -Reset in seconds from now
	LegacyEpoch Dialect = "legacy-epoch" // as Legacy, with X-RateLimit-Reset as a Unix time in seconds
	RetryAfter  Dialect = "retry-after"  // only Retry-After
	None        Dialect = "none"         // no header fields
)

// Dialects returns the names of all dialects, in the order of the constants.
func Dialects() []string {
	return []string{string(Draft), string(Draft03), string(Legacy), string(LegacyEpoch), string(RetryAfter), string(None)}
}

package access

import "time"

// Reason says why a caller was refused. It is a label of metrics.
type Reason string

// Reasons.
const (
	Missing   Reason = "missing"   // no token and no certificate that is known
	Unknown   Reason = "unknown"   // a token that is not in force
	Slowed    Reason = "slowed"    // too many wrong tokens from the address
	NoScope   Reason = "scope"     // the holder lacks a right
	Elsewhere Reason = "namespace" // the holder belongs to another namespace
	Host      Reason = "host"      // the request names a host that is not this one
	Origin    Reason = "origin"    // the request comes from a web page of another origin
)

// Refusal is the error for a caller that may not do what it asks for. Nothing
// was counted. It holds no secret.
type Refusal struct {
	Reason Reason

	// Detail states what is wrong and what to do.
	Detail string

	// RetryAfter is how long to wait before another token is read; 0 unless
	// Reason is Slowed.
	RetryAfter time.Duration
}

func (r *Refusal) Error() string { return r.Detail }

// Package weirv1 is the generated code of weir.v1, and the reasons of its errors.
package weirv1

// ErrorDomain is the domain of the reasons of errors, in the detail ErrorInfo of a
// status.
const ErrorDomain = "weir"

// Reasons of errors, in the detail ErrorInfo of a status and in Problem. A caller who lacks
// a permission gets a reason that starts with ACCESS_.
const (
	ReasonInvalid   = "INVALID"           // the request is wrong
	ReasonRule      = "UNKNOWN_RULE"      // no rule that counts has the name
	ReasonNamespace = "UNKNOWN_NAMESPACE" // the service has no such namespace
	ReasonNoRules   = "NO_RULES"          // the rules of the namespace have faults
	ReasonLarge     = "TOO_LARGE"         // the answer would be too large
	ReasonOverload  = "OVERLOAD"          // the service is at one of its resource limits
	ReasonOutage    = "OUTAGE"            // the store does not answer
	ReasonClosed    = "CLOSED"            // the store is closed
	ReasonStopping  = "STOPPING"          // the service is stopping
)

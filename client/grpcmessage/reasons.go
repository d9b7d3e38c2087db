package grpcmessage

// Domain is the domain of the reasons of errors.
const Domain = "weir"

// Reasons of errors, in the detail ErrorInfo of a status. A caller without the right
// has a reason of its own, which starts with ACCESS_.
const (
	ReasonInvalid   = "INVALID"           // the request is wrong
	ReasonRule      = "UNKNOWN_RULE"      // no rule that counts has the name
	ReasonNamespace = "UNKNOWN_NAMESPACE" // the service has no such namespace
	ReasonNoRules   = "NO_RULES"          // the rules of the namespace have faults
	ReasonLarge     = "TOO_LARGE"         // the answer would be too large
	ReasonOverload  = "OVERLOAD"          // the service is at one of its bounds
	ReasonOutage    = "OUTAGE"            // the store does not answer
	ReasonClosed    = "CLOSED"            // the store is closed
	ReasonStopping  = "STOPPING"          // the service is stopping
)

package store

// Reason is the class of the cause of an outage, in one word for logs, metrics and
// answers.
type Reason string

const (
	// ReasonLate is for a call that got no answer before its deadline, or that
	// reached the server after it.
	ReasonLate Reason = "late"
	// ReasonRefused is for a server that refuses the connection or the login:
	// no program listens there, or a password, a certificate or a permission is
	// wrong.
	ReasonRefused Reason = "refused"
	// ReasonCutOff is for a call that was not sent, because the last calls to the
	// server got no answer, or the server is not known yet.
	ReasonCutOff Reason = "cut-off"
	// ReasonBusy is for a call that was not sent because too many calls wait for
	// the server already, and for a server that is busy with a long script.
	ReasonBusy Reason = "busy"
	// ReasonFull is for a lack of room: [ErrFull], or a server that is out of
	// memory.
	ReasonFull Reason = "full"
	// ReasonForeign is for a key whose value is not a counter.
	ReasonForeign Reason = "foreign"
	// ReasonLoading is for a server that is not ready: it is still loading its
	// data, or its part of a cluster has no primary.
	ReasonLoading Reason = "loading"
	// ReasonReadOnly is for a server that accepts no writes.
	ReasonReadOnly Reason = "read-only"
	// ReasonClosed is for a connection that broke before the answer.
	ReasonClosed Reason = "closed"
	// ReasonUnknown is for all other causes.
	ReasonUnknown Reason = "unknown"
)

// Reasons returns all reasons. The caller owns the slice.
func Reasons() []Reason {
	return []Reason{
		ReasonLate, ReasonRefused, ReasonCutOff, ReasonBusy, ReasonFull, ReasonForeign,
		ReasonLoading, ReasonReadOnly, ReasonClosed, ReasonUnknown,
	}
}

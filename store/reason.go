package store

// Reason is why a store could not answer: one word, for fields of logs, metrics
// and answers.
type Reason string

const (
	// ReasonLate is for a call without an answer in its time, or one that reached
	// the server only after that.
	ReasonLate Reason = "late"
	// ReasonRefused is for a server that refuses: no program listens there, or the
	// login, the certificate or a right is wrong.
	ReasonRefused Reason = "refused"
	// ReasonCutOff is for a call that was not sent, because the server has not
	// answered lately or is not known yet.
	ReasonCutOff Reason = "cut-off"
	// ReasonBusy is for a call that was not sent because too many wait already,
	// and for a server that runs a long script.
	ReasonBusy Reason = "busy"
	// ReasonFull is for a lack of room: [ErrFull], or a server without memory.
	ReasonFull Reason = "full"
	// ReasonForeign is for a key that holds something else than a counter.
	ReasonForeign Reason = "foreign"
	// ReasonLoading is for a server that is not ready yet: it reads its data, or
	// its part of a cluster has no primary.
	ReasonLoading Reason = "loading"
	// ReasonReadOnly is for a server that accepts no writes.
	ReasonReadOnly Reason = "read-only"
	// ReasonClosed is for a connection that broke before the answer.
	ReasonClosed Reason = "closed"
	// ReasonUnknown is for all others.
	ReasonUnknown Reason = "unknown"
)

// Reasons returns all reasons.
func Reasons() []Reason {
	return []Reason{
		ReasonLate, ReasonRefused, ReasonCutOff, ReasonBusy, ReasonFull, ReasonForeign,
		ReasonLoading, ReasonReadOnly, ReasonClosed, ReasonUnknown,
	}
}

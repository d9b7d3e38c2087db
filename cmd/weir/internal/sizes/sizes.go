// Package sizes has the resource limits of a request, which all listeners of weir's own protocols
// share.
package sizes

const (
	// Attributes is the maximum number of attributes of a request.
	Attributes = 64

	// Text is the maximum size of the name or the value of an attribute, in bytes.
	Text = 1 << 10

	// Message is the maximum size of a body or a message, in bytes.
	Message = 1 << 20

	// Batch is the maximum number of requests of a batch.
	Batch = 1000
)

// Package sizes has the resource limits of a request, which are the same for every
// listener that speaks weir's own terms.
package sizes

const (
	// Attributes is the most attributes of a request.
	Attributes = 64

	// Text is the most bytes of the name or of the value of an attribute.
	Text = 1 << 10

	// Message is the most bytes of a body or of a message.
	Message = 1 << 20

	// Batch is the most requests of a batch.
	Batch = 1000
)

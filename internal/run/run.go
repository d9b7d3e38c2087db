// Package run has the options of weir.Engine.Run, by which weir's service calls an engine: whether
// requests are decided as one action or each by itself, and how large the decisions may be.
package run

import "errors"

// Options are options of weir.Engine.Run. The zero value decides each request by itself,
// without a limit.
type Options struct {
	// Together takes the requests as one action, in one atomic step.
	Together bool

	// Caller is whose idempotency keys those of the requests are: different callers may use the same ones.
	Caller string

	// MaxSize is the maximum size ([Size.Bytes]) of the decisions together. 0 means no
	// limit. It protects a service from requests that match thousands of rules.
	MaxSize int64

	// Escapes, if it is not nil, returns how many bytes longer a key is in the answer. Size then counts these, too.
	Escapes func(key string) int

	// Admit, if it is not nil, is called with the size of the decisions before anything
	// is counted. If it returns an error, nothing is counted.
	Admit func(Size) error

	// Assign, if it is not nil, has an assignment for each item. Nothing is decided then: parts of quotas are
	// granted to somebody who decides such requests, and what was admitted is recorded.
	Assign []Assignment
}

// ErrLarge is the error for decisions that are larger than MaxSize allows.
var ErrLarge = errors.New("weir: the answer would be too large: too many rules match, or their keys are too long")

// Size is how much one or several decisions will hold.
type Size struct {
	// Usages is the number of their usages, and Text the bytes of their rules and keys.
	Usages int
	Text   int64
}

// usageBytes is about the size of a usage as JSON, without its rule and its key.
const usageBytes = 160

// Bytes returns about how many bytes the decisions take as text.
func (s Size) Bytes() int64 { return int64(s.Usages)*usageBytes + s.Text }

// Key is the key of [Options] in the context of an Explain. They are no parameter, because clients of the service have the
// same method.
type Key struct{}

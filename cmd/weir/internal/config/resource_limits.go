package config

// ResourceLimits limits what the service does at the same time. 0 in a field means no
// bound.
type ResourceLimits struct {
	// Connections is the most connections of the API, of gRPC and of koala's
	// calls, for each of the three. The admin address has some of its own.
	Connections int

	// Requests is the most requests that are decided at the same time.
	Requests int64

	// RequestMemory is the most bytes that large bodies, batches and their
	// answers take at the same time.
	RequestMemory Bytes

	// Answer is the most bytes of an answer.
	Answer Bytes

	// Memory is the most bytes of all counters in memory. Negative: half of the
	// memory that this process may use.
	Memory Bytes
}

// AutoMemory is the value of [ResourceLimits.Memory] that stands for half of the memory.
const AutoMemory Bytes = -1

// defaultResources returns the resource limits of [Default].
func defaultResources() ResourceLimits {
	return ResourceLimits{
		Connections:   4096,
		Requests:      1024,
		RequestMemory: 64 << 20,
		Answer:        8 << 20,
		Memory:        AutoMemory,
	}
}

// resources checks the resource limits.
func (f *faults) resources(c *Config) {
	b := &c.Resources
	if b.Connections < 0 {
		f.Addf("max-connections", "%d: negative", b.Connections)
	}
	if b.Requests < 0 {
		f.Addf("max-requests", "%d: negative", b.Requests)
	}
	// The largest answer takes about eight times its size: with the structures
	// from which it is written.
	if b.RequestMemory != 0 && (b.Answer == 0 || b.RequestMemory < 8*b.Answer) {
		f.Addf("max-request-memory", "%v: want at least eight times max-answer, %v, so that the largest answer fits", b.RequestMemory, 8*b.Answer)
	}
	if m := b.Memory; m > 0 && m < 16<<20 {
		f.Addf("memory", "%v: want at least 16MiB", m)
	}
}

package envoyfile

// Limits returns the limits that count, in the order of the files.
func (c *Config) Limits() []*Limit { return c.limits }

package trial

// Wait waits until no trial runs.
func Wait(r *Runner) { r.working.Wait() }

// MaxResult is the maximum size of a result, and MostBytes that of all that are kept.
const (
	MaxResult = maxResult
	MostBytes = mostBytes
)

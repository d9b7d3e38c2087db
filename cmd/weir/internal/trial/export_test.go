package trial

// Wait waits until no trial runs.
func Wait(r *Runner) { r.working.Wait() }

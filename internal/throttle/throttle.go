// Package throttle names the counters of limits that callers state in their calls.
package throttle

// Name is the name of the spaces of these counters.
const Name = "CL.THROTTLE"

package apitest

import "testing"

// Faults returns what in x is not as d describes it.
func (d *Description) Faults(t testing.TB, x *Exchange) []string { return d.faults(t, x) }

//go:build race

package rolling_test

// The race detector is slow, and checks every access whatever their number.
const rotations = 4_000

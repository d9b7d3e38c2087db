//go:build race

package rolling_test

// The race detector is slow, and looks at every access whatever their number.
const rotations = 4_000

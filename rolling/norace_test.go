//go:build !race

package rolling_test

const rotations = 100_000

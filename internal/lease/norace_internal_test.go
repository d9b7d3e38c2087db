//go:build !race

package lease

// raced reports whether the race detector is on.
const raced = false

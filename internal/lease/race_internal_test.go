//go:build race

package lease

// raced reports whether the race detector is on: the model takes ten times as long with it.
const raced = true

//go:build race

package main

// memoryFactor is how much more memory a process takes for the way in which the
// tests were built. The race detector needs five to ten times as much.
const memoryFactor = 10

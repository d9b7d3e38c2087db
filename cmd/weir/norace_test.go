//go:build !race

package main

// memoryFactor is how much more memory a process takes for the way in which the
// tests were built.
const memoryFactor = 1

// Package compose is for tests only: they read the manifest in this directory as Docker
// Compose does.
package compose

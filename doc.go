// Package weir counts how often something happens and decides whether it may
// happen again.
package weir

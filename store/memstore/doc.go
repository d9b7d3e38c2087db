// Package memstore keeps counters in this process's memory. It is the store
// that weir uses unless it is told otherwise.
package memstore

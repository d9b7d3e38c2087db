package weir

import (
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
)

// memoryBehind returns the store in memory whose calls have the effect of those of s: s
// itself, or what a store such as [durable.Store] counts in. It returns nil for any other
// store, also for one that embeds one of these: its own Do would be passed by.
func memoryBehind(s store.Store) *memstore.Store {
	if m, ok := s.(*memstore.Store); ok {
		return m
	}
	if b, ok := s.(interface {
		MemoryOf(s store.Store) *memstore.Store
	}); ok {
		return b.MemoryOf(s)
	}
	return nil
}

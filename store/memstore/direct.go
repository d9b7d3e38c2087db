package memstore

import "github.com/weirhq/weir/store"

// Direct is an optional interface of a [store.Store] that counts in a Store of this
// package, such as the one of package durable. A caller that uses [Store.OneKey] and
// [Store.Few] asks [Behind] for that Store.
type Direct interface {
	store.Caller

	// Direct returns the Store whose calls have the same effect as those of this
	// store, or nil if they lack something.
	Direct() *Store
}

// Behind returns the Store that decides the calls of s: s itself, or what a [Direct]
// returns. It returns nil if s is neither, or has inherited its methods from a store
// that it embeds.
func Behind(s store.Store) *Store {
	if m, ok := s.(*Store); ok {
		return m
	}
	if d, ok := s.(Direct); ok && store.CallerOf(s) != nil {
		return d.Direct()
	}
	return nil
}

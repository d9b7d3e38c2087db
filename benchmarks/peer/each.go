package peer

import "sync"

// each keeps one limiter per key in a sync.Map, as programs do with a limiter
// that has no keys. It never removes one.
func each[T any](make func() T, allow func(T) bool) Limiter {
	return eachKey(func(string) T { return make() }, allow)
}

// eachKey is like each, for limiters that need their key.
func eachKey[T any](make func(key string) T, allow func(T) bool) Limiter {
	var limiters sync.Map
	return Limiter{Allow: func(key string) bool {
		l, ok := limiters.Load(key)
		if !ok {
			l, _ = limiters.LoadOrStore(key, make(key))
		}
		return allow(l.(T))
	}}
}

package peer

import (
	"context"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore"
	"github.com/weirhq/weir/window"
)

// Doors returns the ways to a decision in weir's library. They count in memory.
func Doors() []Peer {
	limiter := weirPeer("library, Limiter", sliding)
	return []Peer{limiter, engineDoor("library, Engine with one rule", func(Config) (store.Store, error) { return nil, nil })}
}

// RedisDoors returns the same ways over Redis.
func RedisDoors() []Peer {
	return []Peer{engineDoor("library, Engine with one rule, over Redis", func(c Config) (store.Store, error) {
		return redisstore.Open(context.Background(), "redis://"+c.Redis+"?timeout=1s")
	})}
}

// engineDoor returns an engine with one sliding rule per user. open opens its store,
// or returns nil for memory.
func engineDoor(name string, open func(Config) (store.Store, error)) Peer {
	return Peer{Name: name, Keys: true, New: func(c Config) (Limiter, error) {
		set, err := rule.New([]rule.Rule{{
			Name: "posts", Per: []string{"user"}, Quota: &rule.Quota{Value: c.Quota}, Window: window.Sliding(c.Window),
			When: []rule.Condition{{Attribute: "action", Test: rule.Equal("post")}},
		}}, nil)
		if err != nil {
			return Limiter{}, err
		}
		s, err := open(c)
		if err != nil {
			return Limiter{}, err
		}
		var options []weir.EngineOption
		closes := func() {}
		if s != nil {
			options, closes = append(options, weir.WithStore(s)), func() { _ = s.Close() } // nothing is lost
		}
		e, err := weir.NewEngine(set, options...)
		if err != nil {
			return Limiter{}, err
		}
		ctx := context.Background()
		return Limiter{Allow: func(key string) bool {
			d, err := e.Take(ctx, weir.Request{Attributes: weir.Attributes("action", "post", "user", key)})
			return err == nil && d.Allowed
		}, Close: func() { _ = e.Close(); closes() }}, nil
	}}
}

package peer

import (
	"context"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/store/redisstore"
	"github.com/weirhq/weir/window"
)

// limitOf returns weir's limit for c.
type limitOf func(Config) weir.Limit

func sliding(c Config) weir.Limit  { return weir.Sliding(c.Quota, c.Window) }
func bucket(c Config) weir.Limit   { return weir.Bucket(c.Quota, c.Window, 0) }
func fixed(c Config) weir.Limit    { return weir.Fixed(c.Quota, c.Window) }
func calendar(c Config) weir.Limit { return weir.Calendar(c.Quota, window.Day, nil) }

// weirHot returns the windows for one key. With a quota that is never used up, a
// sliding window counts in groups. The exact one has a quota of 100, and a window
// so short that hits leave as fast as they come.
func weirHot() []Peer {
	exact := weirPeer("weir sliding, exact, in motion", func(c Config) weir.Limit {
		return weir.Sliding(100, min(c.Window, 5*time.Microsecond))
	})
	exact.Note = "100 in 5 µs, so that a log of up to 100 instants turns over while it is measured; " +
		"two cores exceed it, and are denied part of the time"
	exact.Kind = Flows
	groups := weirPeer("weir sliding", sliding)
	groups.Note = "in groups where it admits, of 10⁷ hits each; exact where it denies"
	return []Peer{
		exact,
		groups,
		weirPeer("weir bucket", bucket),
		weirPeer("weir fixed", fixed),
		weirPeer("weir calendar day", calendar),
	}
}

func weirMillion() []Peer {
	bucket := weirPeer("weir bucket", bucket)
	bucket.Note = "a hit drains within 0.6 s, so keys expire all the time, and are reclaimed and made anew while they are measured"
	three := weirPeer("weir sliding, exact, 3 hits a key", sliding)
	three.Hits = 3
	three.Note = "each key has three hits when its bytes are taken, then the same traffic as all"
	return []Peer{
		weirPeer("weir sliding, exact", sliding),
		three,
		bucket,
		weirPeer("weir fixed", fixed),
	}
}

func weirAccuracy() []Peer {
	cells := func(c Config) weir.Limit { return weir.Cells(c.Quota, c.Window) }
	exact := func(c Config) weir.Limit {
		return weir.Limit{Quota: c.Quota, Window: window.Window{
			Kind: window.KindSliding, Length: c.Window, Precision: int(c.Quota),
		}}
	}
	return []Peer{
		weirPeer("weir sliding, precision 100 (default)", sliding),
		weirPeer("weir sliding, precision 1000", exact),
		weirPeer("weir cells", cells),
		weirPeer("weir bucket", bucket),
		weirPeer("weir fixed", fixed),
	}
}

func weirRedis() []Peer {
	on := func(name string, limit limitOf) Peer {
		return Peer{Name: name, Keys: true, New: func(c Config) (Limiter, error) {
			s, err := c.store()
			if err != nil {
				return Limiter{}, err
			}
			l, err := weir.NewLimiter(limit(c), weir.WithStore(s), weir.WithName(name))
			return Limiter{Allow: allow(l), Close: func() { _ = s.Close() }}, err // nothing is lost
		}}
	}
	return []Peer{on("weir sliding", sliding), on("weir bucket", bucket), on("weir fixed", fixed)}
}

// weirThree returns a limiter of three rules of one key: three ops in one call.
func weirThree() Peer {
	return Peer{Name: "weir sliding, three rules", Keys: true, New: func(c Config) (Limiter, error) {
		s, err := c.store()
		if err != nil {
			return Limiter{}, err
		}
		var rules [3]store.Op
		for i := range rules {
			limit, err := window.Compile(window.Limit{Quota: c.Quota, Window: window.Sliding(c.Window * time.Duration(i+1))})
			if err != nil {
				return Limiter{}, err
			}
			rules[i] = store.Op{Space: store.NewSpace("", limit.Limit().Window.ID(), "rule", 0), Limit: limit, N: 1}
		}
		ctx := context.Background()
		room := sync.Pool{New: func() any { return new([3]store.Op) }}
		return Limiter{Allow: func(key string) bool {
			ops := room.Get().(*[3]store.Op)
			defer room.Put(ops)
			*ops = rules
			own := []byte(key)
			for i := range ops {
				ops[i].Key = own
			}
			err := store.Do(ctx, s, store.Take, ops[:])
			return err == nil && ops[0].Result.Allowed && ops[1].Result.Allowed && ops[2].Result.Allowed
		}, Close: func() { _ = s.Close() }}, nil // nothing is lost
	}}
}

// store opens a store in Redis.
func (c Config) store() (*redisstore.Store, error) {
	scheme := "redis"
	if c.Cluster {
		scheme = "redis+cluster"
	}
	return redisstore.Open(context.Background(), scheme+"://"+c.Redis+"?timeout=1s")
}

// weirPeer returns a Limiter with a store of its own. The store has the given
// clock, if there is one.
func weirPeer(name string, limit limitOf) Peer {
	return Peer{Name: name, Keys: true, Clock: true, New: func(c Config) (Limiter, error) {
		var options []weir.LimiterOption
		if c.Now != nil {
			tell := func() window.Instant { return window.Instant(c.Now().UnixMicro()) }
			options = []weir.LimiterOption{weir.WithStore(memstore.New(memstore.WithClock(tell))), weir.WithName(name)}
		}
		l, err := weir.NewLimiter(limit(c), options...)
		if err != nil {
			return Limiter{}, err
		}
		return Limiter{Allow: allow(l), Close: func() { _ = l.Close() }}, nil // a store in memory closes without error
	}}
}

func allow(l *weir.Limiter) func(string) bool {
	ctx := context.Background()
	return func(key string) bool {
		r, err := l.Allow(ctx, key)
		return err == nil && r.Allowed
	}
}
